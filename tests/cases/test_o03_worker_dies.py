"""O03: a worker dies hard: another one goes on within three leases, whatever else lies in the dead one's hands."""

import asyncio
from pathlib import Path
from typing import Any

from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.agents import count
from ..support.calls import ended, new_script, snapshot
from ..support.factories import Replicas
from ..support.launch import Launcher
from ..support.waiting import wait_until

GROUP = "workers"


def queues(admin: Admin, settings: Settings) -> list[str]:
    """The scripted agent's queues."""
    return sorted(key.decode() for key in admin.scan_iter(match=f"{settings.prefix}:*:queue:script"))


def readers(admin: Admin, settings: Settings) -> set[bytes]:
    """Names of all consumers of these queues."""
    return {about["name"] for queue in queues(admin, settings) for about in admin.xinfo_consumers(queue, GROUP)}


def pending(admin: Admin, settings: Settings) -> int:
    """Entries that somebody was handed."""
    return sum(admin.xpending(queue, GROUP)["pending"] for queue in queues(admin, settings))


async def test_five_runs_of_a_dead_worker_go_on(
    launch: Launcher, replicas: Replicas, admin: Admin, settings: Settings, tmp_path: Path
) -> None:
    """Killed while it holds five runs and an entry nobody can read: all five end elsewhere in the same log, and open viewers see it."""
    api2 = await replicas()
    first = launch.worker()
    steps = [*(["emit", "step.done", {"n": n}] for n in range(2)), ["sleep", 2.5]]
    counters = [str(tmp_path / f"counter{n}") for n in range(5)]
    runs = [await new_script(api2.client, ["effect", counter], *steps) for counter in counters]
    followers = [await api2.follow(run_id).open() for run_id in runs]
    for follower in followers:
        await follower.until(lambda f: f.types.count("step.done") == 2)
    [dead] = readers(admin, settings)

    # Two entries without a run: one was handed to the worker that is about to die, one lies at the head of what comes next.
    queue = queues(admin, settings)[0]
    held = admin.xadd(queue, {"nonsense": "1"})
    admin.xreadgroup(GROUP, dead, {queue: ">"}, count=1)
    waiting = admin.xadd(queue, {"run": "run_nonsense"})
    first.kill9()
    assert pending(admin, settings) == 6
    assert await api2.store.sweep.readers.tidy(["script"], idle_ms=0) == 0, "what the dead worker has must not be dropped with its name"
    assert pending(admin, settings) == 6

    second = launch.worker()
    async with asyncio.timeout(3 * settings.lease):
        for follower in followers:
            await follower.until("run.retrying")
    for run_id, follower, counter in zip(runs, followers, counters, strict=True):
        shown = await ended(api2.client, run_id)
        assert (shown["state"], shown["attempt"], shown["unresolved"], count(counter)) == ("succeeded", 2, [], 1)
        assert await follower.until_end() == "clean"
        follower.check(1, shown["sequence"])
        assert follower.types.count("tool.requested") == 1
        assert [e["payload"]["cause"] for e in follower.events if e["type"] == "run.retrying"] == ["worker_lost"]

    poison = queue.replace(":queue:", ":poison:")
    await wait_until(lambda: admin.xlen(poison) == 2, "both unreadable entries to be set aside", timeout=3 * settings.lease)
    assert {held, waiting}.isdisjoint(entry for entry, _ in admin.xrange(queue))
    second.wait_for_output("queue.entry_set_aside")
    await wait_until(lambda: second.output().count("queue.entry_set_aside") == 2, "both to be reported")
    await wait_until(lambda: pending(admin, settings) == 0, "nothing to be pending")


async def test_names_of_dead_workers_do_not_pile_up(
    launch: Launcher, replicas: Replicas, admin: Admin, settings: Settings, tmp_path: Path
) -> None:
    """Every restart is a new reader; the tidying that workers do forgets those that have nothing, and keeps what one still has."""
    api = await replicas()
    counter = str(tmp_path / "counter")
    gone: set[bytes] = set()
    for turn in range(3):
        worker = launch.worker()
        run_id = await new_script(api.client, ["effect", counter], ["sleep", 30 if turn == 2 else 0], ["finish", turn])
        if turn < 2:
            await ended(api.client, run_id)
        else:

            async def running(run_id: str = run_id) -> bool:
                return bool((await snapshot(api.client, run_id))["tools"])

            await wait_until(running, "the last run to be worked on")
        worker.kill9()
        gone = readers(admin, settings)
    assert len(gone) == 3
    assert await api.store.sweep.readers.tidy(["script"], idle_ms=0) >= 2
    [left] = readers(admin, settings)
    owners: list[Any] = [e for q in queues(admin, settings) for e in admin.xpending_range(q, GROUP, "-", "+", 10)]
    assert [entry["consumer"] for entry in owners] == [left], "the one that was killed at work keeps its entry until it is taken back"
