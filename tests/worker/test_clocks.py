"""What the clocks of hosts say decides nothing: worker processes that are hours apart, and whose clocks jump meanwhile."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.agents import count
from ..support.launch import Launcher, WorkerProcess
from ..support.scale import seconds
from .seen import events, outcome, payloads, says, submit_script, types

LIBRARY: Final = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
LEASE: Final = 1.5
HOUR: Final = 3600

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="needs libfaketime: apt-get install faketime")


class Clock:
    """The wall clock of one process, so many seconds off the true one; what counts elapsed time is as it is."""

    def __init__(self, file: Path, off: int) -> None:
        self._file = file
        self.step(off)

    def step(self, off: int) -> None:
        """Set it, also while the process runs."""
        spare = self._file.with_suffix(".new")
        spare.write_text(f"{off:+d}\n", "utf-8")
        spare.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """Gives a process this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


Start = Callable[[str, int], tuple[WorkerProcess, Clock]]


@pytest.fixture
def start(launch: Launcher, settings: Settings, tmp_path: Path) -> Start:
    """Start a worker with a clock of its own."""

    def started(name: str, off: int) -> tuple[WorkerProcess, Clock]:
        clock = Clock(tmp_path / f"{name}.clock", off)
        worker = launch.worker(msgspec.structs.replace(settings, lease=LEASE), **clock.environment)
        worker.wait_for_output("worker.started")
        return worker, clock

    return started


def years(worker: WorkerProcess) -> set[int]:
    """In which years a process believes to be: what its log says."""
    lines = [line for line in worker.output().splitlines() if line.startswith("{")]
    return {int(json.loads(line)["timestamp"][:4]) for line in lines}


async def check_times(store: Store, run_id: str, began: float) -> None:
    """Every event has the server's time, in order."""
    times = [event.at / 1000 for event in await events(store, run_id)]
    assert times == sorted(times) and began - 1 < times[0] <= times[-1] < time.time() + 1


@pytest.mark.parametrize("off", [(0, 9000 * HOUR), (0, -9000 * HOUR), (-9000 * HOUR, 9000 * HOUR)], ids=["ahead", "behind", "both off"])
async def test_a_dead_worker_is_replaced_in_time(store: Store, start: Start, tmp_path: Path, off: tuple[int, int]) -> None:
    """Killed: the other goes on within three leases of its death, whichever of them has which time."""
    began = time.time()
    counter = str(tmp_path / "counter")
    first, _ = start("first", off[0])
    run_id = await submit_script(store, ["effect", counter], ["emit", "step.done", {}], ["sleep", 2 * LEASE], ["finish", "whole"])
    await says(store, run_id, "step.done")
    other, _ = start("other", off[1])
    assert years(first) | years(other) != {time.gmtime().tm_year}, "no clock was off"
    first.kill9()
    died = time.monotonic()
    await says(store, run_id, "run.started", 2, timeout=3 * LEASE)
    assert time.monotonic() - died < 3 * LEASE
    assert await outcome(store, run_id) == "whole" and count(counter) == 1
    await check_times(store, run_id, began)


async def test_a_living_worker_keeps_its_run_whatever_jumps(store: Store, start: Start, tmp_path: Path) -> None:
    """Its clock and that of who waits for it to fall jump by hours, to and fro, for many leases: one attempt, one effect, no takeover."""
    began = time.time()
    counter = str(tmp_path / "counter")
    owner, its_clock = start("owner", 0)
    run_id = await submit_script(store, ["effect", counter], ["sleep", seconds(6 * LEASE)], ["effect", counter], ["finish", "whole"])
    await says(store, run_id, "tool.completed")
    waiting, other_clock = start("waiting", -HOUR)
    for jump in (HOUR, -HOUR, 9000 * HOUR, -9000 * HOUR, 0, 30):
        its_clock.step(jump)
        other_clock.step(-jump)
        await asyncio.sleep(0.7 * LEASE)
    assert await outcome(store, run_id, timeout=30) == "whole"
    assert "run.retrying" not in await types(store, run_id) and count(counter) == 2
    assert [p["attempt"] for p in await payloads(store, run_id, "run.started")] == [1]
    await check_times(store, run_id, began)
    assert owner.alive and waiting.alive


async def test_the_limit_of_a_wait_is_the_servers(store: Store, start: Start) -> None:
    """Two sweepers that are a year apart: a parked sleep ends when the server says so, not at once and not never."""
    _, clock = start("early", 9000 * HOUR)
    start("late", -9000 * HOUR)
    run_id = await submit_script(store, ["pause", 2.5], ["finish", "awake"])
    await says(store, run_id, "run.waiting")
    clock.step(18_000 * HOUR)
    assert await outcome(store, run_id) == "awake"
    at = {event.type: event.at for event in await events(store, run_id)}
    assert 2500 <= at["input.received"] - at["run.waiting"] < 2500 + 3000 * LEASE
