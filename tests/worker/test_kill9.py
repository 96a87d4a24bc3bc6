"""kill -9 at every Redis command of a whole run: another worker goes on, and the story stays one. One test for each command.

What counts is every command that the worker's process sends from the creation of the run on, not only those that name the run: taking it
from the queue, the hints in between, the clock and the timers of the sweep that seals it are part of its path, and a process can die at
each of them. A run with messages, events, two effects, a wait and an end is over and sealed within fewer commands than there are tests;
the last of them kill a worker that has nothing to do any more, and that must do no harm either.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach import Agents, Run
from reattach.core.run import RunRecord
from reattach.core.settings import Settings
from reattach.store import Store

from ..conftest import SETTINGS
from ..support.agents import count, lines, script
from ..support.calls import new_script, snapshot
from ..support.client import Follower
from ..support.deadly import Deadly
from ..support.factories import Replicas, Workers
from ..support.launch import AGENTS, environment
from ..support.nursery import Newborn, Nursery
from ..support.waiting import wait_until
from .seen import ends, says, submit, texts, value

COMMANDS = 36
"""Tests of each kind; one of them sees to it that no run has more commands."""


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """One shard, so that no command is about another; a short lease, so that a death is noticed soon."""
    request.node.stash[SETTINGS] = changed = msgspec.structs.replace(settings, shards=1, lease=1.0)
    return changed


class Ward:
    """One run on a worker process that will die, and the worker that takes over.

    Attributes:
        proxy: Between the first worker and Redis.
        process: The first worker.
        run_id: The run.
        counters: What its two tools did.
    """

    def __init__(self, settings: Settings, store: Store, folder: Path) -> None:
        self.settings, self.store, self.folder = settings, store, folder
        self.counters = [folder / "probed", folder / "asked"]
        self.proxy = Deadly(int(str(settings.redis).rpartition(":")[2].partition("/")[0]))
        self.process: Newborn
        self.run_id = ""
        self._released = asyncio.Event()

    @asynccontextmanager
    async def open(self, nursery: Nursery, workers: Workers) -> AsyncGenerator["Ward"]:
        """Both workers are there, the second one with its only slot taken, so that it is the first one that gets the run."""
        second = Agents()
        second.agent("script", attempts=5, backoff=0.1)(script)
        second.agent("busy")(self._busy)
        await workers(second, self.settings, concurrency=1)
        self.busy = await submit(self.store, "busy")
        await says(self.store, self.busy, "run.started")
        await self.proxy.start()
        behind = msgspec.structs.replace(self.settings, redis=self.proxy.redis)
        self.process = nursery.start("work", AGENTS, env=environment(behind), log=self.folder / "worker.log")
        self.proxy.kill = self.process.kill9
        try:
            await wait_until(lambda: any(b"XREAD\r\n" in command for command in self.proxy.commands), "the worker to listen")
            yield self
        finally:
            self._released.set()
            self.process.close()
            await self.proxy.close()

    async def _busy(self, run: Run) -> str:
        await self._released.wait()
        return "undisturbed"

    def release(self) -> None:
        """Let the second worker have its slot."""
        self._released.set()

    async def live(self, api: Any) -> Follower:
        """Create the run and see it to its end, whoever works on it; its viewer, from the first event on."""
        self.proxy.commands.clear()
        self.run_id = await new_script(api.client, *self.steps())
        follower = await api.follow(self.run_id).open()
        await wait_until(self._answered, f"{self.run_id} to end", timeout=20)
        return follower

    def steps(self) -> list[list[Any]]:
        """Everything a run can do."""
        probed, asked = map(str, self.counters)
        return [
            ["text", "one two"],
            ["emit", "step.done", {"n": 1}],
            ["effect", probed, {"on_unresolved": "probe"}],
            ["wait", "go"],
            ["effect", asked, {"on_unresolved": "stop"}],
            ["emit", "step.done", {"n": 2}],
            ["text", "three four"],
            ["finish", "whole"],
        ]

    async def _answered(self) -> RunRecord | None:
        """Free the second worker when the first one is dead; be the person whenever the run waits for one."""
        if self.proxy.killed:
            self.release()
        record = await self.store.runs.load(self.run_id)
        if record.wait_id is not None:
            answer = b"true"
            if record.wait_id != "go_1":
                # Somebody looks whether the tool took effect, and says so.
                answer = json.dumps({"happened": count(self.counters[1]) == 1, "receipt_id": "seen"}).encode()
            await self.store.runs.answer(self.run_id, wait_id=record.wait_id, value=answer, by="anna", key=None, fingerprint="")
        return record if record.terminal and (record.sealed or self.proxy.killed) else None

    @property
    def sent(self) -> list[str]:
        """What the first worker sent, by its first words."""
        return [words[0].decode() for words in self.proxy.words()]

    async def check(self, follower: Follower, apis: list[Any]) -> None:
        """The run ended right, each effect happened once, and one story is told everywhere."""
        shown = await ends(self.store, self.run_id)
        assert (shown.state, value(shown.outcome)) == ("succeeded", "whole"), value(shown.error)
        assert [count(counter) for counter in self.counters] == [1, 1], [lines(counter) for counter in self.counters]
        assert await follower.until_end() == "clean"
        follower.check(1, shown.sequence)
        kinds = Counter(follower.types)
        assert kinds["run.succeeded"] == kinds["run.created"] == 1 and kinds["run.started"] <= 2, kinds
        assert kinds["tool.completed"] == 2 and kinds["tool.unresolved"] <= 1, kinds
        assert kinds["run.waiting"] == kinds["input.received"] == 1 + self._asked(follower), kinds
        assert [e["payload"]["n"] for e in follower.events if e["type"] == "step.done"] == [1, 2]
        said = [text for status, text in texts(shown) if status == "completed"]
        assert said == ["one two", "three four"] and not shown.unresolved, texts(shown)
        first, *others = [await snapshot(api.client, self.run_id) for api in apis]
        assert first["state"] == "succeeded" and first["sequence"] == shown.sequence and all(first == other for other in others)
        beside = await ends(self.store, self.busy)
        assert (value(beside.outcome), beside.attempt) == ("undisturbed", 1), "a run beside it was disturbed"

    @staticmethod
    def _asked(follower: Follower) -> int:
        return sum(e["payload"].get("reason") == "effect_unresolved" for e in follower.events if e["type"] == "run.waiting")


async def run_through(
    settings: Settings, store: Store, nursery: Nursery, workers: Workers, replicas: Replicas, folder: Path, nth: int, *, forward: bool
) -> Ward:
    """One run whose first worker dies at its nth command; None of a trap: 0."""
    apis = [await replicas(), await replicas()]
    async with Ward(settings, store, folder).open(nursery, workers) as ward:
        if nth:
            ward.proxy.set_trap(nth, forward=forward)
        follower = await ward.live(apis[0])
        if nth:
            await wait_until(lambda: ward.proxy.killed, "the worker to die", timeout=5)
            await wait_until(lambda: not ward.process.alive, "it to be gone")
        ward.release()
        await ward.check(follower, apis)
    return ward


@pytest.mark.parametrize("forward", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, COMMANDS + 1))
async def test_kill9(
    settings: Settings, store: Store, nursery: Nursery, workers: Workers, replicas: Replicas, tmp_path: Path, nth: int, forward: bool
) -> None:
    """Killed before this command reaches Redis, or after it was carried out and before the answer is read."""
    await run_through(settings, store, nursery, workers, replicas, tmp_path, nth, forward=forward)


async def test_every_command_has_its_test(
    settings: Settings, store: Store, nursery: Nursery, workers: Workers, replicas: Replicas, tmp_path: Path
) -> None:
    """A whole run without a death has fewer commands than there are tests above, and not many fewer."""
    ward = await run_through(settings, store, nursery, workers, replicas, tmp_path, 0, forward=True)
    assert COMMANDS - 12 <= len(ward.sent) <= COMMANDS, ward.sent
