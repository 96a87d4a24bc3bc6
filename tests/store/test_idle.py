"""Queues of agents that nobody creates runs for any more go, and whoever needs one again finds one."""

from reattach.store import Store
from reattach.store.scripts import GROUP, lua_folder

from ..support import drive
from ..support.admin import Admin
from ..support.invariants import all_keys


def queues(store: Store, admin: Admin) -> int:
    """How many there are."""
    return sum(b":queue:" in key for key in all_keys(admin, store.settings.prefix))


def names(store: Store, admin: Admin) -> set[bytes]:
    """The agents that are known to have one."""
    found: set[bytes] = set()
    for tag in store.keys.tags:
        members: set[bytes] = admin.smembers(store.keys.agents(tag))
        found |= members
    return found


async def test_made_up_names_leave_nothing(store: Store, admin: Admin) -> None:
    """Once their runs have ended; a queue with a run in it stays, whoever has the run."""
    for n in range(5):
        run_id = await drive.create(store, f"made-up-{n}")
        await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    await drive.create(store, "queued")
    hand = await drive.start(store, "running")
    assert queues(store, admin) == 7
    assert await store.sweep.idle.retire() == 5
    assert queues(store, admin) == 2 and names(store, admin) == {b"queued", b"running"}
    assert await store.sweep.idle.retire() == 0
    await hand.finish()
    assert await store.sweep.idle.retire() == 1


async def test_a_run_that_comes_back_finds_a_queue(store: Store, admin: Admin) -> None:
    """One that waited while its agent's queue was taken away, and the next one that is created."""
    hand = await drive.start(store)
    await store.work.park(hand.lease, wait_id="w", reason="approval", timeout_ms=None)
    assert await store.sweep.idle.retire() == 1 and queues(store, admin) == 0
    assert await store.work.take("support", "w1") == []
    assert await store.sweep.readers.tidy(["support"], idle_ms=0) == 0
    await store.runs.answer(hand.run_id, wait_id="w", value=b"1", by="me", key=None, fingerprint="")
    again = await drive.claim(store)
    assert again.run_id == hand.run_id
    await again.finish()
    await store.sweep.idle.retire()
    await (await drive.start(store)).finish()


def test_the_group_has_one_name() -> None:
    """In the commands and outside."""
    assert f"'{GROUP}'" in (lua_folder() / "include" / "enqueue.lua").read_text()
