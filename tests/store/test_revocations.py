"""Revocations as they are kept: one hash for all processes, with a version and an end."""

from reattach.store import Ring, Store
from reattach.store.revocations import NEWS, Target

from ..support.admin import Admin
from ..support.waiting import wait_until

ANN = Target(kind="subject", tenant="acme", name="ann")
ALL = Target(kind="tenant", tenant="acme")


async def test_what_is_revoked_is_read_with_its_version(store: Store, admin: Admin) -> None:
    """A version that is known costs no list; each change is a new one, also a repeat, which counts from the later moment."""
    assert await store.revocations.read() == ("0", ())
    assert await store.revocations.read("0") is None
    first = await store.revocations.revoke(ANN, seconds=60, by="me", reason="left the company")
    known = await store.revocations.read("0")
    assert known is not None
    version, (found, *others) = known
    assert others == []
    assert (found.target, found.at, found.until, found.by, found.reason) == (ANN, first, first + 60_000, "me", "left the company")
    assert await store.revocations.read(version) is None
    assert await store.revocations.revoke(ANN, seconds=60, by="me") >= first
    await store.revocations.revoke(ALL, seconds=7200, by="me")
    newer, both = await store.revocations.read(version) or ("", ())
    assert newer != version and {each.target for each in both} == {ANN, ALL}
    # The key itself goes with the last of them.
    assert 7_100_000 < int(admin.pttl(store.keys.revoked())) <= 7_200_000


async def test_what_is_given_back(store: Store) -> None:
    """Once; what was never taken away is nothing to give back, and changes nothing."""
    assert not await store.revocations.restore(ANN)
    assert await store.revocations.read("0") is None
    await store.revocations.revoke(ANN, seconds=60, by="me")
    assert await store.revocations.restore(ANN)
    assert not await store.revocations.restore(ANN)
    assert (await store.revocations.read() or ("", None))[1] == ()


async def test_it_is_forgotten_when_its_time_is_over(store: Store) -> None:
    """Each by itself."""
    await store.revocations.revoke(ANN, seconds=0.05, by="me")
    await store.revocations.revoke(ALL, seconds=60, by="me")

    async def only_all() -> bool:
        found = await store.revocations.read()
        return found is not None and [each.target for each in found[1]] == [ALL]

    await wait_until(only_all, "the first one to be forgotten")


async def test_names_do_not_run_into_each_other(store: Store) -> None:
    """Every kind and every tenant for itself, whatever characters are in a name."""
    targets = [
        Target(kind="subject", tenant="a", name="b c"), Target(kind="subject", tenant="a b", name="c"),
        Target(kind="run", tenant="a", name="b c"),
        Target(kind="tenant", tenant="a"), Target(kind="login", tenant="a", name='x"} \u2028'),
    ]  # fmt: skip
    for target in targets:
        await store.revocations.revoke(target, seconds=60, by="me")
    found = await store.revocations.read()
    assert found is not None and sorted(map(repr, targets)) == sorted(repr(each.target) for each in found[1])


async def test_a_bell_tells_of_it(store: Store) -> None:
    """As it does of runs."""
    import asyncio

    heard: list[Ring] = []
    task = asyncio.create_task(store.bells(heard.append).run())
    try:
        await wait_until(lambda: heard, "the listener")
        await store.revocations.revoke(ANN, seconds=60, by="me")
        await wait_until(lambda: any(NEWS in ring.runs for ring in heard), "the bell")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
