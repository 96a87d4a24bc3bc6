"""A worker that is told to stop: what can finish does, the rest goes on elsewhere at once, nothing is failed."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reattach import Agents, Run
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count
from .seen import outcome, payloads, reaches, says, submit, submit_script, types

agents = Agents()


@agents.agent("swallowing")
async def swallowing(run: Run) -> Any:
    """Takes an interruption for the end of its work."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(30 if run.attempt == 1 else 0)
    return run.attempt


@agents.agent("stuck")
async def stuck(run: Run) -> Any:
    """Does not stop when it should, in its first attempt."""
    await run.emit("attempt.began", {})
    until = time.monotonic() + 4
    while run.attempt == 1 and time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue
    await run.emit("step.done", {"attempt": run.attempt})
    return run.attempt


async def test_runs_may_finish_within_the_grace(store: Store, workers: Callable[..., Any]) -> None:
    """In the same attempt, and the worker is gone right after."""
    worker = await workers(scripted, grace=5.0)
    run_id = await submit_script(store, ["emit", "step.done", {}], ["sleep", 0.5])
    await says(store, run_id, "step.done")
    began = time.monotonic()
    await worker.close()
    assert time.monotonic() - began < 2.0
    assert await outcome(store, run_id) == {"attempt": 1, "answers": []}


async def test_the_rest_goes_on_elsewhere_faster_than_a_lease(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Handed back with its receipts; the next worker starts at once; no loss is counted."""
    first = await workers(scripted, grace=0.5, lease=30.0)
    counter = str(tmp_path / "counter")
    runs = [await submit_script(store, ["effect", counter], ["sleep", 3]) for _ in range(3)]
    for run_id in runs:
        await says(store, run_id, "tool.completed")
    await workers(scripted, lease=30.0)
    began = time.monotonic()
    await first.close()
    for run_id in runs:
        await says(store, run_id, "run.started", 2)
    assert time.monotonic() - began < 3.0
    for run_id in runs:
        assert await outcome(store, run_id) == {"attempt": 2, "answers": []}
        assert await payloads(store, run_id, "run.retrying") == [{"attempt": 2, "cause": "drain"}]
        assert (await store.runs.load(run_id)).losses == 0
    assert count(counter) == 3


async def test_asked_twice_it_does_not_wait_for_the_grace(store: Store, workers: Callable[..., Any]) -> None:
    """As a person does who presses Ctrl-C again."""
    worker = await workers(scripted, grace=60.0)
    run_id = await submit_script(store, ["emit", "step.done", {}], ["sleep", 1])
    await says(store, run_id, "step.done")
    worker.stop()
    worker.stop()
    began = time.monotonic()
    await worker.close()
    assert time.monotonic() - began < 3.0
    assert (await store.runs.load(run_id)).state == "queued"
    await workers(scripted)
    assert (await outcome(store, run_id))["attempt"] == 2


async def test_a_mutating_effect_is_not_interrupted(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Its receipt is recorded before the run is handed back."""
    worker = await workers(scripted, grace=0.5)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter, {"before": 0.35}], ["sleep", 0.2])
    await says(store, run_id, "tool.requested")
    worker.stop()
    await worker.close()
    await workers(scripted)
    assert (await outcome(store, run_id))["attempt"] in (1, 2)
    assert count(counter) == 1 and "tool.unresolved" not in await types(store, run_id)


async def test_nothing_is_taken_after_the_stop(store: Store, workers: Callable[..., Any]) -> None:
    """New runs wait for another worker."""
    worker = await workers(scripted, grace=3.0)
    busy = await submit_script(store, ["emit", "step.done", {}], ["sleep", 0.6])
    await says(store, busy, "step.done")
    worker.stop()
    late = await submit_script(store, ["finish", "late"])
    await outcome(store, busy)
    assert (await reaches(store, late, "queued")).attempt == 0
    await workers(scripted)
    assert await outcome(store, late) == "late"


async def test_an_interrupted_handler_is_not_taken_for_finished(store: Store, workers: Callable[..., Any]) -> None:
    """It swallowed the interruption and returned: nobody knows whether its work is done, so it is done again."""
    worker = await workers(agents, grace=0.5)
    run_id = await submit(store, "swallowing")
    await says(store, run_id, "run.started")
    await worker.close()
    await workers(agents)
    assert await outcome(store, run_id) == 2


async def test_a_handler_that_does_not_stop_is_left_behind(store: Store, workers: Callable[..., Any]) -> None:
    """The run goes on elsewhere; what the old handler still says is not taken."""
    worker = await workers(agents, grace=0.5, lease=30.0)
    run_id = await submit(store, "stuck")
    await says(store, run_id, "attempt.began")
    await workers(agents, lease=30.0)
    await worker.close()
    assert await outcome(store, run_id) == 2
    assert await payloads(store, run_id, "step.done") == [{"attempt": 2}]


@agents.agent("clinging")
async def clinging(run: Run) -> Any:
    """Its tool does not stop when it should, in its first attempt."""

    async def tool() -> str:
        until = time.monotonic() + 4
        while run.attempt == 1 and time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(until - time.monotonic())
        return "done"

    return (await run.effect("a.cling", tool, on_unresolved="retry")).result


async def test_a_tool_that_does_not_stop_does_not_hold_the_worker(store: Store, workers: Callable[..., Any]) -> None:
    """A mutating one is given the whole grace; then its run is left to the lease, and its effect to the next attempt's policy."""
    worker = await workers(agents, grace=0.5)
    run_id = await submit(store, "clinging")
    await says(store, run_id, "tool.requested")
    began = time.monotonic()
    await worker.close()
    assert time.monotonic() - began < 3.5
    await workers(agents)
    assert await outcome(store, run_id) == "done"
    assert [p["cause"] for p in await payloads(store, run_id, "run.retrying")] == ["worker_lost"]
    assert "tool.unresolved" in await types(store, run_id)
