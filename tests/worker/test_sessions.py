"""Runs of one session on real workers: they take turns where their session says so, and start at once when it is theirs."""

import asyncio
import time
from itertools import pairwise
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.core.session import NewSession, Policy
from reattach.store import Store

from ..support.drive import new_run
from ..support.factories import Workers
from ..support.waiting import wait_until

agents = Agents()
RUNNING: dict[str, tuple[float, float]] = {}


@agents.agent("talker")
async def talker(run: Run) -> dict[str, Any]:
    """Says something for a moment."""
    began = time.monotonic()
    async with run.message() as message:
        for _ in range(5):
            await message.write("word ")
            await asyncio.sleep(0.02)
    RUNNING[run.run_id] = began, time.monotonic()
    return {}


async def talk(store: Store, policy: Policy, count: int) -> list[str]:
    """Runs of a session with this policy, created one after the other."""
    await store.sessions.create(NewSession(session_id=policy, tenant="dev", initiator="developer", policy=policy))
    return [(await store.runs.create(new_run("talker", session_id=policy), key=None, fingerprint="")).record.run_id for _ in range(count)]


async def finished(store: Store, runs: list[str]) -> bool:
    """Whether all of them have ended."""
    return all([(await store.runs.load(run_id)).terminal for run_id in runs])


async def test_runs_that_take_turns(store: Store, workers: Workers) -> None:
    """Two workers have room for all of them, and work on one after the other, in order, without waiting for a sweep in between."""
    for name in ("one", "two"):
        await workers(agents, name=name)
    runs = await talk(store, "queue", 5)
    await wait_until(lambda: finished(store, runs), "all runs to end", timeout=15)
    spans = [RUNNING[run_id] for run_id in runs]
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans)), "two of them at the same time"
    assert spans[-1][1] - spans[0][0] < 6, "between two runs somebody waited for the next round of a sweep"


@pytest.mark.parametrize("policy", ["parallel", "replace"])
async def test_runs_that_do_not_wait(store: Store, workers: Workers, policy: Policy) -> None:
    """In parallel all of them are worked on; where a run replaces the one before it, the last one is."""
    await workers(agents)
    runs = await talk(store, policy, 4)
    await wait_until(lambda: finished(store, runs), "all runs to end", timeout=15)
    states = [(await store.runs.load(run_id)).state for run_id in runs]
    assert states[-1] == "succeeded" and (policy == "replace" or states == ["succeeded"] * 4)
