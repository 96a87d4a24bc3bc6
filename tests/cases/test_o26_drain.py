"""O26, the workers' half: a deploy hands runs over faster than a lease, and fails none of them."""

import time
from pathlib import Path
from typing import Any

import msgspec

from reattach.core.settings import Settings

from ..support.agents import count
from ..support.calls import ended, new_script
from ..support.factories import Replicas
from ..support.launch import Launcher

LEASE = 15.0


async def test_a_stopped_worker_finishes_or_hands_over(launch: Launcher, replicas: Replicas, settings: Settings, tmp_path: Path) -> None:
    """TERM at a worker with three runs: one ends within the grace, one is handed over at once, one first records its effect."""
    calm = msgspec.structs.replace(settings, lease=LEASE, grace=2.0)
    api = await replicas(lease=LEASE)
    first = launch.worker(calm)
    counter = str(tmp_path / "counter")
    scripts: list[list[Any]] = [
        [["emit", "step.done", {}], ["sleep", 0.8], ["finish", "short"]],
        [["emit", "step.done", {}], ["sleep", 2.5], ["finish", "long"]],
        [["emit", "step.done", {}], ["effect", counter, {"before": 1.7}], ["sleep", 2.0], ["finish", "effect"]],
    ]
    runs = [await new_script(api.client, *script) for script in scripts]
    followers = [await api.follow(run_id).open() for run_id in runs]
    for follower in followers:
        await follower.until("step.done")
    await followers[2].until("tool.requested")
    second = launch.worker(calm)
    second.wait_for_output("worker.started")
    stopped = time.monotonic()
    first.term()
    assert first.wait(calm.grace + 2) == 0
    assert time.monotonic() - stopped < calm.grace + 1

    for follower in followers[1:]:
        await follower.until(lambda f: f.types.count("run.started") == 2, timeout=3)
    assert time.monotonic() - stopped < LEASE / 2, "handing over must be faster than a lease"
    for run_id, follower, attempts, outcome in zip(runs, followers, (1, 2, 2), ("short", "long", "effect"), strict=True):
        shown = await ended(api.client, run_id)
        assert (shown["state"], shown["outcome"], shown["attempt"], shown["unresolved"]) == ("succeeded", outcome, attempts, [])
        assert await follower.until_end() == "clean"
        follower.check(1, shown["sequence"])
        causes = [event["payload"]["cause"] for event in follower.events if event["type"] == "run.retrying"]
        assert causes == ["drain"] * (attempts - 1)
    assert count(counter) == 1
