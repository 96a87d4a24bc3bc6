"""A worker that has nothing to do costs Redis next to nothing."""

import time
from pathlib import Path
from typing import Any

from reattach.core.settings import Settings

from ..support.admin import Admin, connect
from ..support.factories import OwnRedis
from ..support.launch import Launcher
from ..support.scale import seconds
from ..support.waiting import wait_until_sync

MOST = 5.0
"""Commands a second."""


def commands(admin: Admin) -> dict[str, int]:
    """How often the server ran each command so far, those of scripts included; not what this looks with."""
    stats: Any = admin.info("commandstats")
    return {name.removeprefix("cmdstat_"): about["calls"] for name, about in stats.items() if not name.startswith("cmdstat_info")}


def test_an_idle_worker_asks_for_little(own_redis: OwnRedis, tmp_path: Path) -> None:
    """With default settings, less than five commands a second, of which none blocks anybody but itself."""
    server = own_redis()
    launch = Launcher(Settings(redis=server.url), tmp_path)
    admin = connect(server.url)
    try:
        launch.worker().wait_for_output("worker.started")
        # What it does once at its start is over; a round of its sweep will lie within what is counted.
        wait_until_sync(lambda: commands(admin).get("xread", 0) >= 1, "it to listen")
        wait_until_sync(lambda: commands(admin).get("zrange", 0) >= 16, "it to have looked around once")
        before, began = commands(admin), time.monotonic()
        time.sleep(seconds(8.0))
        spent, after = time.monotonic() - began, commands(admin)
        done = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        assert sum(done.values()) / spent < MOST, done
        assert done.get("zrange", 0) >= 16, f"it looks after leases all the time: {done}"
    finally:
        launch.close()
        admin.close()
