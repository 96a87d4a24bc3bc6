"""Waiting: park, signal, expire. Every branch of every reply; two calls in a row are one call whose reply was lost."""

from typing import Any

import pytest

from reattach.core.errors import (
    IdempotencyKeyReused,
    RunNotFound,
    WaitNotOpen,
)
from reattach.store import Store

from ..support.drive import claim, start
from ..support.waiting import wait_until
from .hands import NOBODY, log, types


async def test_a_parked_run_is_answered_once_and_goes_on(store: Store) -> None:
    """Waiting holds no lease; the answer resumes the same attempt; the wait is then answered from the record."""
    hand = await start(store)
    for _ in range(2):
        assert (await store.work.park(hand.lease, wait_id="w1", reason="approval", prompt="ok?", timeout_ms=60_000)).kind == "parked"
    assert (await store.runs.load(hand.run_id)).state == "waiting"
    sequences = {await store.runs.answer(hand.run_id, wait_id="w1", value=b"true", by="me", key="k", fingerprint="f") for _ in range(2)}
    assert sequences == {4}
    again = await claim(store)
    assert (again.lease.attempt, again.claim.resumed, again.claim.answers) == (1, True, {"w1": b"true"})
    parked = await store.work.park(again.lease, wait_id="w1", reason="approval", timeout_ms=None)
    assert (parked.kind, parked.value) == ("answered", b"true")
    assert await types(store, hand.run_id) == ["run.created", "run.started", "run.waiting", "input.received", "run.resumed"]


async def test_an_answer_that_does_not_fit_is_refused(store: Store) -> None:
    """Not waiting, another wait, another answer under the same key, a second answer, no such run."""
    hand = await start(store)
    answer: dict[str, Any] = {"value": b"1", "by": "me", "key": "k", "fingerprint": "f"}
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w1", **answer)
    await store.work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=None)
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w2", **answer)
    await store.runs.answer(hand.run_id, wait_id="w1", **answer)
    changed: dict[str, Any] = {**answer, "fingerprint": "g"}
    with pytest.raises(IdempotencyKeyReused):
        await store.runs.answer(hand.run_id, wait_id="w1", **changed)
    second: dict[str, Any] = {**answer, "key": "k2"}
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w1", **second)
    with pytest.raises(RunNotFound):
        await store.runs.answer(NOBODY, wait_id="w1", **answer)


@pytest.mark.parametrize(("sleep", "state"), [(False, "failed"), (True, "queued")])
async def test_the_limit_of_a_wait_fires_once(store: Store, sleep: bool, state: str) -> None:
    """A wait that nobody answered fails the run with its own code; a sleep goes on."""
    hand = await start(store)
    await store.work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=50, sleep=sleep)

    async def fired() -> bool:
        await store.sweep.once()
        return (await store.runs.load(hand.run_id)).state == state

    await wait_until(fired, "the limit to pass")
    await store.sweep.once()
    names = await types(store, hand.run_id)
    assert names[3:] == (["input.received"] if sleep else ["run.failed"])
    if not sleep:
        assert b"wait_expired" in (await log(store, hand.run_id))[-1].payload
