"""Owning a run: claim, renew, release, reclaim. Every branch of every reply; two calls in a row are one call whose reply was lost."""

from typing import Any

import pytest

from reattach.core.errors import (
    LeaseLost,
    RunClosed,
)
from reattach.store import Store
from reattach.store.scripts import GROUP, load_scripts

from ..support.drive import claim, create, start
from ..support.waiting import wait_until
from .hands import call, held, log, lost, receipt, types


async def test_claim_starts_the_first_attempt(store: Store) -> None:
    """A claimed run runs, its attempt is 1, and the log says who works on it."""
    hand = await start(store)
    record = await store.runs.load(hand.run_id)
    assert (record.state, record.attempt, record.fence) == ("running", 1, hand.lease.fence)
    assert (await log(store, hand.run_id))[-1].payload == b'{"attempt":1,"worker":"hand"}'


async def test_claim_of_an_owned_run_is_refused(store: Store) -> None:
    """Whoever holds the same entry without the fence gets nothing while the lease lasts."""
    hand = await start(store)
    delivery = held(hand)
    assert await store.work.claim(delivery, consumer="other", worker="other", max_losses=3, backoff_ms=0) is None
    assert (await store.work.renew(hand.lease)).cancel_version == 0


async def test_claim_whose_reply_was_lost_is_the_same_acquisition(store: Store) -> None:
    """The same fence again: the same attempt, no second event."""
    hand = await start(store)
    keys = store.keys.of_run(hand.run_id, "support")
    args = (hand.run_id, GROUP, hand.lease.entry, "hand", hand.lease.fence, 1000, '"hand"', 3, 0)
    reply = await store.door.run(load_scripts()["claim"], keys, *args)
    assert (reply.word, reply.integer(0), reply.integer(1)) == ("OK", 1, 2)
    assert len(await log(store, hand.run_id)) == 2


async def test_claim_of_an_ended_run_drops_the_entry(store: Store) -> None:
    """An entry that outlived its run is acknowledged and says nothing."""
    run_id = await create(store)
    delivery = (await store.work.take("support", "c"))[0]
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    assert await store.work.claim(delivery, consumer="c", worker="c", max_losses=3, backoff_ms=0) is None
    assert await store.work.take("support", "c") == []


async def test_renew_branches(store: Store) -> None:
    """OK with the cancel version; fenced after release; closed after the end."""
    hand = await start(store)
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert (await hand.renew()).cancel_version == 1
    await hand.finish("cancelled")
    with pytest.raises(RunClosed):
        await hand.renew()
    other = await start(store)
    await store.work.release(other.lease, cause="drain")
    with pytest.raises(LeaseLost):
        await other.renew()


async def test_release_hands_over_at_once(store: Store) -> None:
    """A released run is queued with the next attempt; it is not a loss, and the old owner is fenced."""
    hand = await start(store)
    await store.work.release(hand.lease, cause="drain")
    await store.work.release(hand.lease, cause="drain")
    assert (await types(store, hand.run_id)).count("run.retrying") == 1
    again = await claim(store)
    assert (again.run_id, again.lease.attempt) == (hand.run_id, 2)
    assert (await store.runs.load(hand.run_id)).losses == 0
    with pytest.raises(LeaseLost):
        await hand.emit(("step.done", {}))


async def test_reclaim_takes_a_dead_owners_run_back(store: Store) -> None:
    """After the lease the run is queued again with the next attempt; every write of the old owner is refused."""
    hand = await start(store)
    await lost(store, hand)
    assert (await log(store, hand.run_id))[-1].payload == b'{"attempt":2,"cause":"worker_lost"}'
    again = await claim(store)
    assert again.lease.attempt == 2 and again.lease.fence != hand.lease.fence
    for refused in (
        hand.emit(("step.done", {})),
        hand.renew(),
        hand.finish(),
        store.work.intend(hand.lease, call()),
        store.work.commit(hand.lease, receipt()),
        store.work.release(hand.lease, cause="drain"),
        store.work.park(hand.lease, wait_id="w", reason="r", timeout_ms=None),
    ):
        with pytest.raises(LeaseLost):
            await refused


async def test_reclaim_leaves_a_living_owner_alone(store: Store) -> None:
    """While the lease is renewed a sweep changes nothing, also with no event for longer than a lease."""
    hand = await start(store)
    for _ in range(4):
        await hand.renew()
        assert (await store.sweep.once()).reclaimed == 0
    await hand.finish()


async def test_reclaim_fails_a_run_whose_owners_keep_dying(store: Store) -> None:
    """After the last loss the run has failed with worker_lost."""
    run_id = await create(store)
    for _ in range(2):
        await lost(store, await claim(store, max_losses=2))
    last = (await log(store, run_id))[-1]
    assert last.type == "run.failed" and b'"code":"worker_lost"' in last.payload


async def test_reclaim_returns_an_entry_that_was_delivered_and_never_claimed(store: Store) -> None:
    """A reader that dies between delivery and claim costs time only: no attempt, no event."""
    run_id = await create(store)
    assert await store.work.take("support", "dies")

    async def returned() -> Any:
        await store.sweep.readers.deliveries(["support"])
        return await store.work.take("support", "lives")

    await wait_until(returned, "the entry to come back", timeout=10)
    assert await types(store, run_id) == ["run.created"]


async def test_sweeps_at_once_reclaim_once(store: Store) -> None:
    """Several sweepers find the same dead owner: one retry is written."""
    import asyncio

    hand = await start(store)

    async def reclaimed() -> bool:
        await asyncio.gather(*(store.sweep.once() for _ in range(5)))
        return (await store.runs.load(hand.run_id)).state == "queued"

    await wait_until(reclaimed, "the lease to end", timeout=10)
    assert (await types(store, hand.run_id)).count("run.retrying") == 1


@pytest.mark.expects_errors("a poisoned entry is reported as one")
@pytest.mark.parametrize("fields", [1, 9_000])
async def test_a_queue_entry_that_names_no_run_is_set_aside(store: Store, fields: int) -> None:
    """It blocks nothing and an operator finds it, whatever else it is."""
    run_id = await create(store)
    tag = run_id[4:6]
    await store.door.call("XADD", store.keys.queue(tag, "support"), "*", *("nonsense", "1") * fields)

    async def taken() -> Any:
        return await store.work.take("support", "c", limit=2) or await store.door.call("XLEN", store.keys.poison(tag, "support"))

    await wait_until(taken, "the entries to be read")
    await store.work.take("support", "c", limit=2)
    assert await store.door.call("XLEN", store.keys.poison(tag, "support")) == 1
