"""A worker that has nothing to do costs Redis next to nothing, however many agents and shards it looks after."""

import itertools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach.core.settings import Settings
from reattach.store.sweep import longest_pause

from ..support.admin import Admin, connect
from ..support.factories import OwnRedis
from ..support.launch import AGENTS, Launcher
from ..support.scale import LONG
from ..support.waiting import wait_until_sync

MOST = 5.0
"""Commands a second."""
MANY = "tests.worker.many:agents"
DEPLOYMENTS = [(AGENTS, 16), (MANY, 16), (MANY, 40 if LONG == 1 else 100)]
"""Agents and shards; with 100 shards a round of the sweep, and with it what is measured here, takes half a minute."""


def commands(admin: Admin) -> dict[str, int]:
    """How often the server ran each command so far, those of scripts included; not what this looks with."""
    stats: Any = admin.info("commandstats")
    return {name.removeprefix("cmdstat_"): about["calls"] for name, about in stats.items() if not name.startswith("cmdstat_info")}


def measure(admin: Admin, shards: int) -> tuple[float, dict[str, int]]:
    """Seconds from the end of one round of the sweep to the end of the next, and what was asked meanwhile.

    Of three such times the one that cost least: a worker that the machine did not let run for a while looks around once more.
    """

    def rounds_done(count: int) -> None:
        wait_until_sync(lambda: commands(admin).get("zrange", 0) >= count * shards, f"round {count} of the sweep", timeout=60)

    best: tuple[float, dict[str, int]] | None = None
    for number in range(1, 4):
        rounds_done(number)
        before, began = commands(admin), time.monotonic()
        rounds_done(number + 1)
        after, spent = commands(admin), time.monotonic() - began
        done = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        if best is None or sum(done.values()) / spent < sum(best[1].values()) / best[0]:
            best = spent, done
        if sum(done.values()) / spent < MOST:
            break
    assert best is not None
    return best


@pytest.mark.timeout(60 + 100 * (LONG > 1))
def test_an_idle_worker_asks_for_little(own_redis: OwnRedis, tmp_path: Path) -> None:
    """With the default lease, less than five commands a second, with one agent and with twenty, with few shards and with many."""
    servers = [own_redis() for _ in DEPLOYMENTS]
    launchers: list[Launcher] = []
    admins = [connect(server.url) for server in servers]
    try:
        for (agents, shards), server in zip(DEPLOYMENTS, servers, strict=True):
            launchers.append(Launcher(Settings(redis=server.url, shards=shards), tmp_path))
            launchers[-1].worker(agents=agents)
        with ThreadPoolExecutor(len(admins)) as pool:
            measured = list(pool.map(measure, admins, [shards for _, shards in DEPLOYMENTS]))
        for (agents, shards), (spent, done) in zip(DEPLOYMENTS, measured, strict=True):
            print(f"{agents}, {shards} shards: {sum(done.values()) / spent:.2f} a second, {done}")
            assert sum(done.values()) / spent < MOST, (agents, shards, spent, done)
            assert done["zrange"] == shards, f"it looks after leases all the time: {done}"
    finally:
        for launcher in launchers:
            launcher.close()
        for admin in admins:
            admin.close()


def test_looking_rarely_enough_is_looking_often_enough() -> None:
    """For every number of shards: what a round costs is spread over its pause, and a dead owner is replaced within three leases."""
    for shards, lease in itertools.product(range(1, 101), (0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 3600.0)):
        pause = longest_pause(msgspec.structs.replace(Settings(), shards=shards, lease=lease))
        assert lease + pause < 2.9 * lease
        if lease >= 15.0:
            # The pause is jittered down to 90 %; the clock, the queues and their readers are looked at beside the timers.
            beside = 3 + math.ceil(0.2 * pause)
            assert (shards + beside) / (0.9 * pause) + 0.2 < MOST
