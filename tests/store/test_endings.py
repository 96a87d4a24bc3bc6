"""Ending a run: cancel and finish. Every branch of every reply; two calls in a row are one call whose reply was lost."""

from typing import Any

import pytest

from reattach.core.errors import (
    IdempotencyKeyReused,
    LeaseLost,
    RunClosed,
    RunNotFound,
)
from reattach.store import Lease, Store
from reattach.store.scripts import GROUP, load_scripts

from ..support.drive import claim, create, draft, start
from .hands import NOBODY, call, log, lost, receipt, types


async def test_cancel_of_a_queued_run_ends_it_at_once(store: Store) -> None:
    """Nobody will ever be handed it; the same key hears the same answer, any other that it had ended."""
    run_id = await create(store)
    ask: dict[str, Any] = {"by": "me", "reason": "changed my mind", "fingerprint": "f"}
    first = await store.runs.cancel(run_id, key="k", **ask)
    assert (first.disposition, first.sequence) == ("cancelled_before_effect", 3)
    assert await store.runs.cancel(run_id, key="k", **ask) == first
    assert (await store.runs.cancel(run_id, key="k2", **ask)).disposition == "already_terminal"
    with pytest.raises(IdempotencyKeyReused):
        await store.runs.cancel(run_id, key="k", by="me", reason=None, fingerprint="g")
    assert await types(store, run_id) == ["run.created", "run.cancel_requested", "run.cancelled"]
    assert await store.work.take("support", "c") == []


async def test_cancel_of_a_waiting_run_ends_it_at_once(store: Store) -> None:
    """With the truth about what had been done before it waited."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.work.commit(hand.lease, receipt())
    await store.work.park(hand.lease, wait_id="w", reason="r", timeout_ms=60_000)
    reply = await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert reply.disposition == "cancelled_after_effect"


async def test_cancel_of_a_running_run_is_recorded_once(store: Store) -> None:
    """Pending until the worker reaches a boundary; asking again adds nothing."""
    hand = await start(store)
    for _ in range(3):
        reply = await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
        assert reply.disposition == "cancellation_pending"
    assert (await types(store, hand.run_id)).count("run.cancel_requested") == 1
    assert (await hand.finish("cancelled")).disposition == "cancelled_before_effect"


async def test_cancel_of_a_run_whose_worker_died_ends_it(store: Store) -> None:
    """A stop that nobody is left to obey is obeyed by the sweep, and an effect of unknown fate is named."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    await lost(store, hand)
    assert (await types(store, hand.run_id))[-3:] == ["run.cancel_requested", "tool.unresolved", "run.cancelled"]
    assert b"cancelled_after_effect" in (await log(store, hand.run_id))[-1].payload


async def test_cancel_of_nothing_leaves_nothing(store: Store) -> None:
    """An unknown run is not found and no mark stays behind."""
    with pytest.raises(RunNotFound):
        await store.runs.cancel(NOBODY, by="me", reason=None, key="k", fingerprint="f")
    assert not await store.door.call("EXISTS", *(k for k in store.keys.of_run(NOBODY).values() if k and "run:" in k))


async def test_first_terminal_writer_wins(store: Store) -> None:
    """A second ending, also with another outcome, is told the stored one."""
    hand = await start(store)
    first = await hand.finish("succeeded", outcome={"a": 1})
    second = await hand.finish("failed")
    assert (first.state, second.state, second.sequence) == ("succeeded", "succeeded", first.sequence)
    assert (await types(store, hand.run_id))[-1] == "run.succeeded"


async def test_a_run_that_succeeds_although_a_stop_was_asked_for_says_so(store: Store) -> None:
    """The handler was done before it saw the request: the outcome stands."""
    hand = await start(store)
    await store.runs.cancel(hand.run_id, by="me", reason=None, key="k", fingerprint="f")
    assert (await hand.finish()).disposition == "already_terminal"
    assert (await store.runs.cancel(hand.run_id, by="me", reason=None, key="k", fingerprint="f")).disposition == "already_terminal"


async def test_nobody_is_cancelled_unasked(store: Store) -> None:
    """A worker cannot end a run as cancelled without a request."""
    hand = await start(store)
    with pytest.raises(RunClosed):
        await hand.finish("cancelled")


async def test_a_lease_is_only_its_fence(store: Store) -> None:
    """A lease with a made-up fence can do nothing, whatever else in it is right."""
    hand = await start(store)
    forged = Lease(run_id=hand.run_id, agent="support", fence="0" * 32, entry=hand.lease.entry, consumer="hand", attempt=1)
    with pytest.raises(LeaseLost):
        await store.work.append(forged, 1, [draft("step.done", {})])
    with pytest.raises(LeaseLost):
        await store.work.finish(forged, state="succeeded")


async def test_an_effect_its_owner_could_not_tell_of_counts_as_one_that_may_have_happened(store: Store) -> None:
    """A tool that timed out before the stop: the run was not cancelled before its effect, and the record counts it."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.work.commit(hand.lease, receipt(status="unresolved", receipt_id=None, result_version=None, result=None), why="timeout")
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert (await hand.finish("cancelled")).disposition == "cancelled_after_effect"
    assert (await store.runs.load(hand.run_id)).unresolved == 1
    assert (await types(store, hand.run_id)).count("tool.unresolved") == 1


async def test_an_effect_the_next_owner_found_unresolved_counts_too(store: Store) -> None:
    """Its first owner died, the second one saw that nobody knows, then the run ended: an operator has to look at it."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await lost(store, hand)
    again = await claim(store)
    await store.work.intend(again.lease, call())
    await again.finish()
    record = await store.runs.load(hand.run_id)
    assert (record.state, record.unresolved) == ("succeeded", 1)


async def test_a_run_given_back_after_a_cancel_request_is_cancelled_at_once(store: Store) -> None:
    """The owner had not noticed the request: the run does not wait in the queue for somebody to start it and stop it."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    for _ in range(2):
        await store.work.release(hand.lease, cause="drain")
    assert (await types(store, hand.run_id))[-3:] == ["run.cancel_requested", "tool.unresolved", "run.cancelled"]
    assert await store.work.take("support", "c") == []
    with pytest.raises(LeaseLost):
        await hand.renew()


async def test_a_slow_sweeper_leaves_a_run_alone_that_pauses_before_its_retry(store: Store) -> None:
    """Two sweepers saw the same dead owner; when the slower one reads what carries the run, nothing does."""
    await create(store)
    for pause in (0, 60_000):
        delivery = (await store.work.take("support", "c"))[0]
        claimed = await store.work.claim(delivery, consumer="c", worker="c", max_losses=3, backoff_ms=60_000)
        assert claimed is not None
        keys, ask = store.keys.of_run(delivery.run_id, "support"), (delivery.run_id, GROUP, "support")
        await store.door.call("HSET", keys["run"], "lease_until", 1)
        reply = await store.door.run(load_scripts()["reclaim"], keys, *ask, delivery.entry, 1000)
        assert reply.word == "RETRY" and pause <= reply.integer(1) <= pause * 1.25
    slow = await store.door.run(load_scripts()["reclaim"], keys, *ask, "", 1000)
    assert slow.word == "GONE"
    assert (await types(store, delivery.run_id)).count("run.retrying") == 2
