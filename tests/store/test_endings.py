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

from ..support.drive import create, draft, start
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
