"""A worker dies at every command it sends, and in every hard way a process can die: the run's story stays one."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach import Agents
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count, lines, script
from ..support.launch import Launcher
from ..support.proxy import Proxy, Trap
from ..support.waiting import wait_until
from .seen import ends, events, outcome, payloads, says, submit, submit_script, texts, types, value

COMMANDS = 40
"""More than a worker sends before one run of the script below has ended."""


def steps(counter: str) -> list[list[Any]]:
    """Everything a run can do."""
    return [
        ["text", "one two"],
        ["emit", "step.done", {"n": 1}],
        ["effect", counter, {"on_unresolved": "probe"}],
        ["wait", "go"],
        ["emit", "step.done", {"n": 2}],
        ["text", "three four"],
        ["finish", "whole"],
    ]


class Fragile(Proxy):
    """The dying worker's link: nothing passes any more once its trap has sprung."""

    def spring(self, command: bytes) -> Trap | None:
        """A command that springs the trap is the last one."""
        trap = super().spring(command)
        if trap is not None:
            self.refusing = True
        return trap


class Death:
    """One run, and a worker that dies at its n-th command about it."""

    def __init__(self, settings: Settings, store: Store, nth: int, counter: Path) -> None:
        self.name, self.counter, self.nth = f"dying-{nth}", counter, nth
        self._store = store
        self._settings = settings
        self.crashed = False

    async def live(self, workers: Callable[..., Any], *, forward: bool) -> str:
        """Start the worker and the run; the run's id, once the worker is dead or the run waits or ended."""
        proxy = Fragile(int(str(self._settings.redis).rpartition(":")[2].partition("/")[0]), counting=True)
        await proxy.start()
        try:
            agents = Agents()
            agents.agent(self.name, attempts=5, backoff=0.05)(script)
            worker = await workers(agents, redis=proxy.redis, lease=2.0)
            trap = proxy.set_trap(self.nth, forward=forward, match=b":run:run_")
            run_id = await submit(self._store, self.name, {"steps": steps(str(self.counter))})
            async with asyncio.TaskGroup() as group:
                answering = group.create_task(answer(self._store, run_id))

                async def over() -> bool:
                    return trap.sprung or (await self._store.runs.load(run_id)).terminal

                await wait_until(over, f"the death of {self.name}", timeout=20)
                self.crashed = trap.sprung
                await worker.crash()
                answering.cancel()
        finally:
            await proxy.close()
        return run_id


async def answer(store: Store, run_id: str) -> None:
    """Answer the run whenever it waits."""

    async def waits() -> bool:
        record = await store.runs.load(run_id)
        if record.wait_id is not None:
            await store.runs.answer(run_id, wait_id=record.wait_id, value=b"true", by="anna", key=None, fingerprint="")
        return record.terminal

    await wait_until(waits, f"{run_id} to end", timeout=30)


@pytest.mark.parametrize("forward", [True, False], ids=["after the command", "before the command"])
async def test_a_worker_dies_at_every_command(
    settings: Settings, store: Store, workers: Callable[..., Any], tmp_path: Path, forward: bool
) -> None:
    """Many workers, each dead at another command; one that goes on with all their runs. Everything happened once, and is told once."""
    deaths = [Death(settings, store, nth, tmp_path / f"counter-{nth}") for nth in range(1, COMMANDS + 1)]
    runs: list[str] = []
    for batch in range(0, COMMANDS, 8):
        runs += await asyncio.gather(*(death.live(workers, forward=forward) for death in deaths[batch : batch + 8]))
    rescuers = Agents()
    for death in deaths:
        rescuers.agent(death.name, attempts=5, backoff=0.05)(script)
    await workers(rescuers, concurrency=COMMANDS)
    await asyncio.gather(*(answer(store, run_id) for run_id in runs))
    assert sum(death.crashed for death in deaths) > 15
    assert "run.retrying" not in await types(store, runs[-1]), "more commands than were counted: some were never the last one"
    for death, run_id in zip(deaths, runs, strict=True):
        await check_story(store, run_id, death)


async def check_story(store: Store, run_id: str, death: Death) -> None:
    """Contiguous, one end, the effect once, everything said once."""
    snapshot = await ends(store, run_id)
    assert (snapshot.state, value(snapshot.outcome)) == ("succeeded", "whole"), (death.nth, value(snapshot.error))
    log = await events(store, run_id)
    assert [e.sequence for e in log] == list(range(1, len(log) + 1))
    assert [json.loads(e.payload)["n"] for e in log if e.type == "step.done"] == [1, 2], death.nth
    assert count(death.counter) == 1, (death.nth, lines(death.counter))
    kinds = Counter(e.type for e in log)
    assert kinds["tool.completed"] == kinds["run.waiting"] == kinds["input.received"] == kinds["run.succeeded"] == 1, (death.nth, kinds)
    said = [text for status, text in texts(snapshot) if status == "completed"]
    assert said == ["one two", "three four"] and not snapshot.unresolved, (death.nth, texts(snapshot))


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
