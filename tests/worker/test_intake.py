"""Taking work: only into free slots, in turn, and quietly while there is none."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.store import Store
from reattach.store.scripts import GROUP
from reattach.worker import intake
from reattach.worker.worker import Worker

from ..support.drive import create
from .seen import ends, outcome, submit

agents = Agents()
AT_WORK: set[str] = set()
MOST: list[int] = []
ORDER: list[str] = []
RUNS: list[str] = []


async def work(run: Run) -> str:
    """Notices how many work at the same time, and in which order."""
    AT_WORK.add(run.run_id)
    MOST.append(len(AT_WORK))
    ORDER.append(run.agent)
    RUNS.append(run.run_id)
    try:
        await asyncio.sleep(0.05)
    finally:
        AT_WORK.discard(run.run_id)
    return run.run_id


for name in ("a", "b", "c"):
    agents.agent(name)(work)


def pending(admin: Any, store: Store, agent: str) -> int:
    """Entries that somebody holds."""
    found = 0
    for tag in store.keys.tags:
        key = store.keys.queue(tag, agent)
        found += admin.xpending(key, GROUP)["pending"] if admin.exists(key) else 0
    return found


async def test_no_more_is_taken_than_can_be_worked_on(store: Store, workers: Callable[..., Any], admin: Any) -> None:
    """What waits for a slot waits in the queue, where another worker can take it."""
    MOST.clear()
    runs = [await create(store, "a") for _ in range(20)]
    await workers(agents, concurrency=3)
    most_held = 0
    while len(MOST) < len(runs) or AT_WORK:
        most_held = max(most_held, pending(admin, store, "a"))
        await asyncio.sleep(0.005)
    assert max(MOST) == 3 and most_held <= 3
    assert [await outcome(store, run_id) for run_id in runs] == runs


async def test_a_busy_agent_does_not_starve_the_others(store: Store, workers: Callable[..., Any]) -> None:
    """Agents are asked in turn."""
    ORDER.clear()
    busy = [await create(store, "a") for _ in range(40)]
    others = [await create(store, name) for name in ("b", "c")]
    await workers(agents, concurrency=2)
    for run_id in [*busy, *others]:
        await ends(store, run_id)
    assert {"b", "c"} <= set(ORDER[:8]), ORDER


async def test_a_busy_shard_does_not_starve_the_others(store: Store, workers: Callable[..., Any]) -> None:
    """A session with many runs, all in one shard, is not the only one that is worked on."""
    RUNS.clear()
    busy = [await create(store, "a", session_id="long") for _ in range(40)]
    others: list[str] = []
    while len(others) < 2:
        run_id = await create(store, "a")
        if run_id[4:6] != busy[0][4:6]:
            others.append(run_id)
        else:
            busy.append(run_id)
    await workers(agents, concurrency=2)
    for run_id in [*busy, *others]:
        await ends(store, run_id)
    assert {run_id[4:6] for run_id in busy} == {busy[0][4:6]}
    assert set(others) <= set(RUNS[:10]), [run_id[4:6] for run_id in RUNS]


async def test_work_is_taken_at_once(store: Store, workers: Callable[..., Any]) -> None:
    """A wake, not a poll, brings it."""
    await workers(agents)
    await ends(store, await create(store, "a"))
    began = time.monotonic()
    for _ in range(10):
        await ends(store, await create(store, "a"))
    assert time.monotonic() - began < 3.0


async def test_a_hint_that_nobody_heard_costs_time_only(store: Store, workers: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A look around now and then finds what no hint told of, for all agents with one command."""
    monkeypatch.setattr(intake, "LOOK_AROUND", 0.3)
    monkeypatch.setattr(Worker, "_heard", lambda self, wake: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    await workers(agents)
    for agent in ("a", "b", "c"):
        run_id = await create(store, agent)
        assert await outcome(store, run_id) == run_id


async def test_runs_of_unknown_agents_are_left_alone(store: Store, workers: Callable[..., Any]) -> None:
    """They wait for a worker that knows them."""
    await workers(agents)
    stranger = await submit(store, "stranger")
    await ends(store, await create(store, "a"))
    assert (await store.runs.load(stranger)).state == "queued"


@pytest.mark.expects_errors("a queue that cannot be read is reported")
async def test_a_queue_that_cannot_be_read_ends_no_worker(store: Store, workers: Callable[..., Any]) -> None:
    """Whatever an operator did to one agent's queues, the others are worked on."""
    queues = [store.keys.queue(tag, "a") for tag in store.keys.tags]
    for queue in queues:
        await store.door.call("SET", queue, "not a queue")
    await workers(agents)
    for agent in ("b", "c"):
        await outcome(store, await submit(store, agent))
    await store.door.call("DEL", *queues)
