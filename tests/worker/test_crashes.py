"""A worker process dies, freezes or is told to go: the run's story stays one. How it dies at each of its commands is in `test_kill9`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count
from ..support.launch import Launcher
from ..support.waiting import wait_until
from .seen import outcome, payloads, says, submit_script


async def test_a_killed_process_is_replaced(store: Store, launch: Launcher, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Killed hard between the effect and its receipt, by the handler itself: the probe finds what happened."""
    counter = str(tmp_path / "counter")
    worker = launch.worker()
    run_id = await submit_script(
        store, ["text", "one two"], ["effect", counter, {"after": 30, "on_unresolved": "probe"}], ["finish", "whole"]
    )
    await wait_until(lambda: count(counter) == 1, "the effect", timeout=20)
    worker.kill9()
    await workers(scripted)
    assert await outcome(store, run_id) == "whole"
    assert count(counter) == 1
    assert [p["result"]["found"] for p in await payloads(store, run_id, "tool.completed")] == [True]


async def test_a_frozen_process_wakes_up_without_its_lease(
    settings: Settings, store: Store, launch: Launcher, workers: Callable[..., Any], tmp_path: Path
) -> None:
    """STOP for longer than the lease, CONT after another worker went on: the first one does and writes nothing more."""
    counter = str(tmp_path / "counter")
    frozen = launch.worker(msgspec.structs.replace(settings, lease=1.0))
    run_id = await submit_script(
        store, ["emit", "step.done", {"n": 1}], ["sleep", 1.5], ["effect", counter], ["sleep", 1.5], ["finish", "whole"]
    )
    await says(store, run_id, "step.done", timeout=20)
    frozen.freeze()
    await workers(scripted, lease=1.0)
    await says(store, run_id, "run.started", 2)
    frozen.thaw()
    assert await outcome(store, run_id) == "whole"
    assert count(counter) == 1
    assert [p["attempt"] for p in await payloads(store, run_id, "run.started")] == [1, 2]


async def test_a_terminated_process_hands_over(
    settings: Settings, store: Store, launch: Launcher, workers: Callable[..., Any], tmp_path: Path
) -> None:
    """TERM with a grace of a second: it ends by itself with code 0, and its runs go on elsewhere faster than a lease."""
    counter = str(tmp_path / "counter")
    leaving = launch.worker(msgspec.structs.replace(settings, grace=1.0, lease=30.0))
    runs = [await submit_script(store, ["effect", counter], ["sleep", 3], ["finish", n]) for n in range(3)]
    for run_id in runs:
        await says(store, run_id, "tool.completed", timeout=20)
    await workers(scripted, lease=30.0)
    leaving.term()
    assert await asyncio.to_thread(leaving.wait, 5) == 0
    assert [await outcome(store, run_id) for run_id in runs] == [0, 1, 2]
    assert count(counter) == 3
    for run_id in runs:
        assert [p["cause"] for p in await payloads(store, run_id, "run.retrying")] == ["drain"]
