"""Counts and rates as Redis keeps them: for all processes together, once however often, and nothing for ever."""

from typing import Any

import msgspec
import pytest

from reattach.core.errors import PayloadTooLarge, TooManyRequests
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.store.limits import Who

from ..support import drive
from ..support.admin import Admin
from ..support.invariants import all_keys
from ..support.waiting import wait_until

STEP: tuple[str, dict[str, Any]] = ("step.done", {})
ANN, BOB = Who("acme", "ann"), Who("acme", "bob")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Small limits."""
    return msgspec.structs.replace(
        settings, tenant_runs=4, subject_runs=3, tenant_run_rate=0, subject_run_rate=0, tenant_agents=2, tenant_ticket_rate=5,
        subject_ticket_rate=3, tenant_streams=5, subject_streams=3, run_events=10, run_bytes=1000, run_event_rate=0, run_byte_rate=0,
    )  # fmt: skip


async def create(store: Store, who: Who = ANN, *, key: str | None = None, agent: str = "support", **facts: Any) -> str:
    """Create a run that counts; its id."""
    new = drive.new_run(agent, tenant=who.tenant, initiator=who.subject, **facts)
    return (await store.runs.create(new, key=key, fingerprint="f", limited=True)).record.run_id


async def refused(store: Store, who: Who = ANN, **facts: Any) -> TooManyRequests:
    """A run that is one too many."""
    with pytest.raises(TooManyRequests) as caught:
        await create(store, who, **facts)
    return caught.value


async def test_unfinished_runs_are_counted_once(store: Store) -> None:
    """A key sent again is the same run, also where the limit is reached; another run is one too many, and leaves no trace of its key."""
    first = await create(store, key="k1")
    for _ in range(3):
        assert await create(store, key="k1") == first
    await create(store, key="k2")
    await create(store)
    assert "3 unfinished runs of you" in (await refused(store, key="k4")).detail
    assert await create(store, key="k1") == first
    await create(store, BOB)
    assert "4 unfinished runs of your tenant" in (await refused(store, BOB)).detail
    await create(store, Who("globex", "ann"))
    # The key was not taken: with room it names a run.
    await store.runs.cancel(first, by="me", reason=None, key=None, fingerprint="")
    await store.sweep.once()
    await create(store, key="k4")


async def test_a_run_that_ends_makes_room(store: Store) -> None:
    """However it ends, whoever sees to it, and as soon as it matters; a sent-again key of an ended run takes none."""
    keyed = await create(store, key="k")
    others = [await create(store) for _ in range(2)]
    await refused(store)
    for run_id in (keyed, *others):
        await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")

    async def room() -> bool:
        try:
            await create(store)
        except TooManyRequests:
            return False
        return True

    # No sweep has come by: the list is compared with the runs, once a second at most.
    await wait_until(room, "room", timeout=3)
    await create(store)
    await create(store)
    assert await create(store, key="k") == keyed
    await refused(store)


async def test_what_was_not_created_is_not_counted(store: Store) -> None:
    """A refused session, a parent that is none, a key with another body, a process that died in between."""
    from reattach.core.errors import IdempotencyKeyReused, InvalidRequest

    await create(store, key="k")
    for _ in range(4):
        with pytest.raises(InvalidRequest):
            await create(store, parent_run_id="run_00" + "0" * 24)
        with pytest.raises(IdempotencyKeyReused):
            await store.runs.create(drive.new_run(tenant="acme", initiator="ann"), key="k", fingerprint="other", limited=True)
    for n in range(2):
        await store.limits.charge(ANN, "support", f"run_00{n:024d}")
    await create(store)
    await create(store)
    await refused(store)


async def test_rates(store: Store, settings: Settings) -> None:
    """By the minute of the server's clock, with the time that is left of it; each subject's and the tenant's."""
    waits: list[float] = []
    for who, count in ((ANN, 3), (BOB, 2)):
        for _ in range(count):
            await store.limits.count(who, "tickets")
        with pytest.raises(TooManyRequests) as caught:
            await store.limits.count(who, "tickets")
        waits.append(caught.value.retry_after or 0)
    assert all(0 < wait <= 60 for wait in waits)
    await store.limits.count(Who("globex", "ann"), "tickets")
    rated = Store(msgspec.structs.replace(settings, subject_run_rate=2, subject_runs=0, tenant_runs=0, tenant_agents=0))
    for n in range(2):
        await create(rated, agent=f"a{n}")
    assert "2 runs of you are allowed in a minute" in (await refused(rated)).detail
    await rated.close()


async def test_names_of_agents(store: Store) -> None:
    """A tenant cannot fill the store with queues of agents that nobody runs."""
    await create(store, agent="a")
    await create(store, agent="b")
    error = await refused(store, agent="c")
    assert error.extra == {"field": "agent"} and "2 different agents" in error.detail
    await create(store, agent="a")
    await create(store, Who("globex", "x"), agent="c")


async def test_what_is_open_in_all_processes(store: Store, admin: Admin) -> None:
    """Each process says what it has; one that says no more counts for no longer than its lease; said again it counts once."""

    async def hold(process: str, count: int, *, who: Who = ANN, tenant: int | None = None, lease: float = 60.0) -> None:
        await store.limits.hold(who, process, count if tenant is None else tenant, count, lease=lease, bounded=True)

    for _ in range(3):
        await hold("p1", 2)
    await hold("p2", 1, lease=0.3)
    with pytest.raises(TooManyRequests, match="3 streams and held requests of you"):
        await hold("p3", 1)
    await hold("p1", 2, who=BOB, tenant=4)
    with pytest.raises(TooManyRequests, match="5 streams and held requests of your tenant"):
        await hold("p3", 1, who=BOB, tenant=1)

    async def room() -> bool:
        try:
            await hold("p3", 1)
        except TooManyRequests:
            return False
        return True

    await wait_until(room, "the lease of the dead process to end", timeout=2)
    for process, who in (("p1", ANN), ("p1", BOB), ("p3", ANN)):
        await hold(process, 0, who=who, tenant=0)
    assert [key for key in all_keys(admin, store.settings.prefix) if b":open" in key] == []


async def test_what_one_run_may_append(store: Store) -> None:
    """Events and bytes altogether: whole batches, with a typed refusal; a batch that was sent again is answered as before."""
    hand = await drive.start(store)
    await hand.emit(*(("step.done", {"n": n}) for n in range(8)))
    with pytest.raises(PayloadTooLarge, match="10 events"):
        await hand.emit(*(("step.done", {"n": n}) for n in range(3)))
    hand.batch -= 1
    await hand.emit(("step.done", {}), ("step.done", {}))
    hand.batch -= 1
    assert (await hand.emit(("step.done", {}), ("step.done", {}))).sequence == 12
    await hand.finish()
    wordy = await drive.start(store)
    with pytest.raises(PayloadTooLarge, match="1000 bytes"):
        await wordy.emit(*(("step.done", {"text": "x" * 400}) for _ in range(3)))
    await wordy.finish()


async def test_effects_count_too(store: Store) -> None:
    """A tool is not begun without room for it; what became of one that was is always recorded."""
    from reattach.core.receipt import Effect, EffectCall

    hand = await drive.start(store)
    await hand.emit(*[STEP] * 9)
    call = EffectCall(call_id="c1", tool="t.x", arguments=b"{}", mutating=True)
    assert (await store.work.intend(hand.lease, call)).kind == "go"
    await store.work.commit(hand.lease, Effect(call_id="c1", tool="t.x", status="receipt", mutating=True, result=b"1"))
    with pytest.raises(PayloadTooLarge):
        await store.work.intend(hand.lease, msgspec.structs.replace(call, call_id="c2"))
    assert (await store.work.intend(hand.lease, call)).kind == "receipt"
    await hand.finish()


async def test_what_one_run_may_append_in_a_minute(store: Store, settings: Settings) -> None:
    """The same batch later; what is more than a minute's worth by itself goes into an empty one."""
    rated = Store(msgspec.structs.replace(settings, run_events=0, run_bytes=0, run_event_rate=5, run_byte_rate=0))
    hand = await drive.start(rated)
    await hand.emit(*[STEP] * 6)
    with pytest.raises(TooManyRequests) as caught:
        await hand.emit(("step.done", {}))
    assert 0 < (caught.value.retry_after or 0) <= 60
    await hand.finish()
    await rated.close()


async def test_everything_expires(store: Store, admin: Admin) -> None:
    """No count is kept for ever."""
    await create(store)
    await store.limits.count(ANN, "tickets")
    await store.limits.hold(ANN, "p", 1, 1, lease=5.0, bounded=True)
    limits = [key for key in all_keys(admin, store.settings.prefix) if b":limit:" in key]
    assert len(limits) == 7
    ttls: list[Any] = [admin.pttl(key) for key in limits]
    assert all(0 < ttl <= 30 * 86_400_000 for ttl in ttls)
