"""Cancelling what a worker works on: at boundaries, within a second, never inside a mutating effect, and told as it was."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.store import Lease, Parked, Store, Wake
from reattach.store.work import Work
from reattach.worker.worker import Worker

from ..support.agents import agents as scripted
from ..support.agents import count
from .seen import ends, events, says, submit, submit_script, texts, types, value

agents = Agents()


async def cancel(store: Store, run_id: str) -> str:
    """Ask for it; what the answer says."""
    return (await store.runs.cancel(run_id, by="anna", reason=None, key=None, fingerprint="")).disposition


async def check_promptness(store: Store, run_id: str) -> None:
    """At most a second between the request and the end, by the clock that both were written with, whatever the test's own pace."""
    at = {event.type: event.at for event in await events(store, run_id)}
    assert at["run.cancelled"] - at["run.cancel_requested"] <= 1000


@agents.agent("stubborn")
async def stubborn(run: Run) -> Any:
    """Swallows its cancellation, then does what the input says."""
    await run.emit("handler.began", {})
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(30)
    if run.input == "raise":
        raise ValueError("while stopping")
    if run.input == "emit":
        await run.emit("step.done", {})
    return "finished anyway"


@agents.agent("streaming")
async def streaming(run: Run) -> Any:
    """Streams for ever."""
    while True:
        yield "word "
        await asyncio.sleep(0.01)


@agents.agent("reading")
async def reading(run: Run) -> Any:
    """A read-only tool that takes long."""
    await run.effect("a.read", lambda: time.sleep(3), read_only=True)


@agents.agent("tidy")
async def tidy(run: Run) -> Any:
    """Cleans up, with awaits, and notices whether it was disturbed."""
    await run.emit("handler.began", {})
    try:
        await asyncio.sleep(30)
    finally:
        await asyncio.sleep(0.3)
        await run.emit("never.seen", {})


STEPS: dict[str, list[Any]] = {
    "sleeping": ["sleep", 30],
    "streaming": ["say", "a b c d e f g h i j k l m n o p", 0.2],
    "blocked for a moment": ["together", ["sleep", 30], ["block", 0.3]],
    "in parallel": ["together", ["sleep", 30], ["say", "a b c d e f g", 5]],
}


@pytest.mark.parametrize("what", STEPS)
async def test_a_running_handler_stops_within_a_second(store: Store, workers: Callable[..., Any], what: str) -> None:
    """Whatever it awaits; nothing after it is done; an open message is interrupted."""
    await workers(scripted)
    run_id = await submit_script(store, ["emit", "step.done", {}], STEPS[what], ["emit", "too.late", {}])
    await says(store, run_id, "step.done")
    assert await cancel(store, run_id) == "cancellation_pending"
    snapshot = await ends(store, run_id)
    await check_promptness(store, run_id)
    assert (snapshot.state, snapshot.cancel.disposition) == ("cancelled", "cancelled_before_effect")
    assert "too.late" not in await types(store, run_id)
    assert not [status for status, _ in texts(snapshot) if status == "streaming"]


async def test_a_mutating_effect_is_finished_first(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Its receipt is in the log before the end, and the end says so."""
    await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter, {"before": 0.2, "after": 0.6}], ["emit", "too.late", {}])
    await says(store, run_id, "tool.requested")
    assert await cancel(store, run_id) == "cancellation_pending"
    snapshot = await ends(store, run_id)
    assert count(counter) == 1
    assert (snapshot.state, snapshot.cancel.disposition) == ("cancelled", "cancelled_after_effect")
    assert (await types(store, run_id))[-3:] == ["run.cancel_requested", "tool.completed", "run.cancelled"]
    assert [t.status for t in snapshot.tools] == ["completed"]


async def test_a_mutating_effect_beside_other_work_is_finished_too(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """The other branch stops, the effect's receipt is recorded."""
    await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(
        store, ["together", ["effect", counter, {"after": 0.6, "thread": True}], ["say", "a b c d e f g h i", 0.1]]
    )
    await says(store, run_id, "message.delta")
    await says(store, run_id, "tool.requested")
    await cancel(store, run_id)
    snapshot = await ends(store, run_id)
    assert (snapshot.cancel.disposition, count(counter)) == ("cancelled_after_effect", 1)
    assert [t.status for t in snapshot.tools] == ["completed"]


async def test_a_request_before_the_effect_prevents_it(store: Store, workers: Callable[..., Any]) -> None:
    """The gate in front of the tool sees it even where the handler did not hear of it yet."""
    calls: list[str] = []
    own = Agents()

    @own.agent("asks")
    async def asks(run: Run) -> None:
        await cancel(store, run.run_id)
        await run.effect("a.b", lambda: calls.append("called"))

    await workers(own)
    for _ in range(20):
        snapshot = await ends(store, await submit(store, "asks"))
        assert (snapshot.state, snapshot.cancel.disposition) == ("cancelled", "cancelled_before_effect")
    assert calls == []


async def test_a_read_only_tool_does_not_hold_a_cancel_up(store: Store, workers: Callable[..., Any]) -> None:
    """Not even one that blocks in its thread; it does not count as an effect."""
    await workers(agents)
    run_id = await submit(store, "reading")
    await says(store, run_id, "tool.requested")
    await cancel(store, run_id)
    snapshot = await ends(store, run_id)
    await check_promptness(store, run_id)
    assert snapshot.cancel.disposition == "cancelled_before_effect"


async def test_a_generator_stops(store: Store, workers: Callable[..., Any]) -> None:
    """The stream of words ends where it is."""
    await workers(agents)
    run_id = await submit(store, "streaming")
    await says(store, run_id, "message.delta", 5)
    await cancel(store, run_id)
    snapshot = await ends(store, run_id)
    await check_promptness(store, run_id)
    assert snapshot.state == "cancelled" and texts(snapshot)[0][0] == "interrupted"


async def test_a_handler_that_returns_nevertheless_is_believed(store: Store, workers: Callable[..., Any]) -> None:
    """It finished its work: succeeded, and the request is told as too late."""
    await workers(agents)
    run_id = await submit(store, "stubborn", "return")
    await says(store, run_id, "handler.began")
    await cancel(store, run_id)
    snapshot = await ends(store, run_id)
    assert (snapshot.state, value(snapshot.outcome), snapshot.cancel.disposition) == ("succeeded", "finished anyway", "already_terminal")


@pytest.mark.parametrize("then", ["emit", "raise"])
async def test_a_handler_that_goes_on_is_stopped_at_its_next_boundary(store: Store, workers: Callable[..., Any], then: str) -> None:
    """And an exception while it stops does not turn a cancel into a failure."""
    await workers(agents)
    run_id = await submit(store, "stubborn", then)
    await says(store, run_id, "handler.began")
    await cancel(store, run_id)
    assert (await ends(store, run_id)).state == "cancelled"
    assert "step.done" not in await types(store, run_id)


async def test_cleaning_up_is_not_disturbed(store: Store, workers: Callable[..., Any]) -> None:
    """The handler is cancelled once; its `finally` may await, but write no more."""
    await workers(agents)
    run_id = await submit(store, "tidy")
    await says(store, run_id, "handler.began")
    asked = time.monotonic()
    await cancel(store, run_id)
    assert (await ends(store, run_id)).state == "cancelled"
    assert time.monotonic() - asked >= 0.3
    assert "never.seen" not in await types(store, run_id)


async def test_cancel_races_the_start(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Whichever comes first, one story: cancelled before the effect means that it never happened."""
    # Where the request came after the end, the snapshot has none.
    await workers(scripted, concurrency=8)
    counters = [tmp_path / f"counter{n}" for n in range(60)]
    runs = [await submit_script(store, ["effect", str(counter)], ["sleep", 0.1]) for counter in counters]
    await asyncio.gather(*(cancel(store, run_id) for run_id in runs))
    for run_id, counter in zip(runs, counters, strict=True):
        snapshot = await ends(store, run_id)
        expected = {"cancelled_before_effect": 0, "cancelled_after_effect": 1, "already_terminal": 1, "None": 1}[
            str(snapshot.cancel.disposition)
        ]
        assert count(counter) == expected, (snapshot.state, snapshot.cancel)


async def test_a_request_that_only_parking_tells_of_cancels(
    store: Store, workers: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint was lost and the request came a moment before the wait: the run is cancelled, not failed by its own interruption."""
    heard, park = Worker._heard, Work.park  # pyright: ignore[reportPrivateUsage]

    def deaf(self: Worker, wake: Wake) -> None:
        heard(self, Wake(wake.work, frozenset(), wake.everything))

    async def overtaken(self: Work, lease: Lease, **about: Any) -> Parked:
        await cancel(store, lease.run_id)
        return await park(self, lease, **about)

    monkeypatch.setattr(Worker, "_heard", deaf)
    monkeypatch.setattr(Work, "park", overtaken)
    own = Agents()

    @own.agent("asks")
    async def asks(run: Run) -> None:
        await run.wait_for("approval")

    await workers(own)
    snapshot = await ends(store, await submit(store, "asks"))
    assert (snapshot.state, snapshot.cancel.disposition) == ("cancelled", "cancelled_before_effect")
    assert "run.waiting" not in await types(store, snapshot.run_id)
