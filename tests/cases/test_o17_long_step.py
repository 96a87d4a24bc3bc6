"""O17: a step that is longer than a lease is done once, as long as its worker lives."""

import asyncio
from pathlib import Path

import msgspec

from reattach.core.settings import Settings

from ..support.agents import count, lines
from ..support.calls import ended, new_script
from ..support.launch import Launcher
from ..support.scale import rounds, seconds
from ..support.service import Service


async def check_once(service: Service, run_id: str, effects: int, *counters: str) -> None:
    """One attempt, every effect once, one gapless log with one end."""
    shown = await ended(service.client, run_id)
    assert (shown["state"], shown["attempt"], shown["unresolved"]) == ("succeeded", 1, [])
    assert [count(counter) for counter in counters] == [effects] * len(counters)
    follower = await service.follow(run_id).open()
    assert await follower.until_end() == "clean"
    follower.check(1, shown["sequence"])
    assert "run.retrying" not in follower.types and follower.types.count("run.succeeded") == 1


async def test_a_long_idle_step_stays_with_its_worker(launch: Launcher, settings: Settings, service: Service, tmp_path: Path) -> None:
    """A: six leases between two effects, another worker idle beside it: nobody takes the run over."""
    short = msgspec.structs.replace(settings, lease=1.0)
    launch.worker(short)
    launch.worker(short)
    counter = str(tmp_path / "counter")
    run_id = await new_script(service.client, ["effect", counter], ["sleep", seconds(6)], ["effect", counter], ["finish", 1])
    await check_once(service, run_id, 2, counter)
    assert len(set(lines(counter))) == 2


async def test_a_step_that_blocks_the_loop_keeps_its_lease(launch: Launcher, settings: Settings, service: Service, tmp_path: Path) -> None:
    """B: a handler that never yields for two and a half leases: renewal survives it, and its neighbour in the same worker too."""
    short = msgspec.structs.replace(settings, lease=2.0)
    launch.worker(short)
    counter, beside = str(tmp_path / "counter"), str(tmp_path / "beside")
    neighbour = await new_script(service.client, ["effect", beside], ["sleep", 1.0], ["finish", 2])
    run_id = await new_script(service.client, ["effect", counter], ["block", seconds(5)], ["emit", "step.done", {}], ["finish", 1])
    launch.worker(short)
    await check_once(service, run_id, 1, counter)
    await check_once(service, neighbour, 1, beside)


async def test_a_worker_frozen_for_longer_than_its_lease_can_do_nothing_more(
    launch: Launcher, settings: Settings, service: Service, tmp_path: Path
) -> None:
    """B, the other way: the whole process stops, another takes over, and what the first one still tries is refused."""
    short = msgspec.structs.replace(settings, lease=1.0)
    first = launch.worker(short)
    counter = str(tmp_path / "counter")
    talk = [step for n in range(8) for step in (["emit", "step.done", {"n": n}], ["sleep", 0.2])]
    run_id = await new_script(service.client, ["effect", counter], *talk, ["effect", counter], ["finish", 1])
    follower = await service.follow(run_id).open()
    await follower.until("step.done")
    first.freeze()
    launch.worker(short)
    await follower.until("run.retrying")
    first.thaw()
    first.wait_for_output("run.given_up")
    shown = await ended(service.client, run_id)
    assert (shown["state"], shown["attempt"], count(counter)) == ("succeeded", 2, 2)
    assert await follower.until_end() == "clean"
    follower.check(1, shown["sequence"])
    assert [e["payload"]["n"] for e in follower.events if e["type"] == "step.done"] == list(range(8)), "nothing twice, nothing late"


async def test_waiting_for_a_slot_is_not_idleness(launch: Launcher, settings: Settings, service: Service, tmp_path: Path) -> None:
    """C: many more runs than slots, waiting for several leases: each is worked on once, in its first attempt.

    8 runs by default, more than the case's 50 with REATTACH_TEST_LONG=7.
    """
    launch.worker(msgspec.structs.replace(settings, lease=1.0, concurrency=2))
    counters = [str(tmp_path / f"counter{n}") for n in range(rounds(8))]
    runs = [await new_script(service.client, ["effect", counter], ["sleep", 1.5], ["finish", 1]) for counter in counters]
    await asyncio.gather(*(check_once(service, run_id, 1, counter) for run_id, counter in zip(runs, counters, strict=True)))
