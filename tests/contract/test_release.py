"""A run that is over holds nothing any more, anywhere."""

import asyncio
from collections import Counter
from typing import Any

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import cancel, new_run_id
from ..support.factories import Replicas, Workers
from ..support.invariants import queued_without_reason, read_runs, unexplained_keys
from ..support.leaks import OWN_CONNECTIONS, client_count
from ..support.service import Service
from ..support.waiting import wait_until


async def test_13_a_terminal_run_releases_everything(replicas: Replicas, workers: Workers, admin: Admin, settings: Settings) -> None:
    """Succeeded, failed, cancelled, each with viewers: no task, follower, connection, queue entry or key without expiry is left."""
    agents = Agents()

    @agents.agent("ending")
    async def ending(run: Run) -> str:
        await run.emit("step.done", {"n": 1})
        if run.input.get("how") == "fail":
            raise RuntimeError("as asked")
        if run.input.get("how") == "stop":
            await run.sleep(25)
        return "fine"

    clients = client_count(admin)
    apis: list[Service] = [await replicas(), await replicas()]
    worker = await workers(agents, lease=15.0)
    # The first wave starts what stays for the next ones.
    await wave(apis)
    tasks = kinds_of_tasks()
    await wave(apis)

    for api in apis:
        await wait_until(lambda api=api: api.hub.stats().followers == 0, "no follower to be left")
        await wait_until(lambda api=api: api.hub.stats().runs == 0, "no ring to be left")
    await wait_until(lambda: worker.worker.active == 0, "the worker to be idle")
    await wait_until(
        lambda: client_count(admin) <= clients + 3 * OWN_CONNECTIONS, "no Redis connection to be anybody's but a process's own"
    )
    await wait_until(lambda: kinds_of_tasks() <= tasks, "no task to be left")
    await wait_until(lambda: not unexplained_keys(admin, settings.prefix), "every key to expire")
    assert queued_without_reason(admin, settings.prefix) == []
    for run in read_runs(admin, settings.prefix):
        ttls: list[Any] = [admin.pttl(key) for key in run.owned() if admin.exists(key)]
        assert run.ended and min(ttls) > 0


async def wave(apis: list[Service]) -> None:
    """Runs of every kind of ending, each watched on every replica until it is over."""
    runs = [await new_run_id(apis[0].client, "ending", {"how": how}) for how in ("go", "fail", "stop") for _ in range(4)]
    followers = [await api.follow(run_id).open() for run_id in runs for api in apis]
    for run_id in runs[-4:]:
        await cancel(apis[1].client, run_id)
    for follower in followers:
        assert await follower.until_end() == "clean"
        follower.check()
    assert {follower.types[-1] for follower in followers} == {"run.succeeded", "run.failed", "run.cancelled"}


def kinds_of_tasks() -> "Counter[str]":
    """How many tasks of each kind there are: those of a process come and go, but they do not become more."""
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks() if not task.done()]
    return Counter(coroutine.__qualname__ for coroutine in coroutines)
