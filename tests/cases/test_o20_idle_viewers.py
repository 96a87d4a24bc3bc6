"""O20: idle viewers starve everything else: more viewers than any pool has connections change nothing for anybody."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import quantiles
from typing import Any, NamedTuple

from ..support.admin import Admin
from ..support.calls import cancel, new_run_id, new_script, reaches, snapshot
from ..support.client import Follower
from ..support.drive import Hand, start
from ..support.factories import Replicas
from ..support.launch import Launcher
from ..support.leaks import OWN_CONNECTIONS, client_count
from ..support.scale import LONG, rounds
from ..support.service import Service
from ..support.stalled import Stalled
from ..support.waiting import wait_until

POOL = 100
"""Connections that redis-py's pool has by default."""
VIEWERS, SILENT = POOL + 50, 20
MEASUREMENTS = 3
EVENTS = min(2_000, 500 * LONG)


async def measured(count: int, call: Callable[[], Awaitable[Any]]) -> float:
    """The 95th percentile of a call's time, one call after the other, seconds."""
    took: list[float] = []
    for _ in range(count):
        began = time.monotonic()
        await call()
        took.append(time.monotonic() - began)
    return quantiles(took, n=20)[-1]


async def best(call: Callable[[], Awaitable[Any]], enough: float) -> float:
    """The best of a few measurements: what viewers cost is in each of them, what else the machine does is not."""
    found = float("inf")
    for _ in range(MEASUREMENTS):
        found = min(found, await measured(rounds(40), call))
        if found < enough:
            break
    return found


async def test_control_calls_stay_fast(replicas: Replicas, admin: Admin) -> None:
    """With fifty viewers more than a pool has connections: create, read, cancel and append are quick, and each viewer gets its event."""
    before = client_count(admin)
    service = await replicas(max_streams=VIEWERS, keepalive=15.0, lease=60.0)
    hands: list[Hand] = []
    for n in range(SILENT):
        hands.append(await start(service.store, f"silent-{n}"))
    viewers = [service.follow(hands[n % SILENT].run_id) for n in range(VIEWERS)]
    await asyncio.gather(*(viewer.open() for viewer in viewers))
    await wait_until(lambda: all(viewer.sequences == [1, 2] for viewer in viewers), "all viewers to have caught up")
    assert client_count(admin) <= before + OWN_CONNECTIONS
    made: list[str] = []

    async def post() -> None:
        made.append(await new_run_id(service.client, "nobody"))

    async def stop() -> None:
        assert (await cancel(service.client, made.pop())).json()["disposition"] == "cancelled_before_effect"

    busy = await start(service.store, "busy")
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "POST": post,
        "GET": lambda: snapshot(service.client, made[-1]),
        "cancel": stop,
        "append": lambda: busy.emit(("step.done", {"n": 1})),
    }
    for name, call in calls.items():
        while name == "cancel" and len(made) < MEASUREMENTS * rounds(40):
            await post()
        assert await best(call, 0.2) < 0.2, f"{name} waits for viewers"
    appended = time.monotonic()
    await asyncio.gather(*(hand.emit(("step.done", {"n": 1})) for hand in hands))
    await asyncio.gather(*(viewer.until(3) for viewer in viewers))
    assert max(viewer.frames[-1].at for viewer in viewers) - appended < 1.0
    await one_too_many(service.follow(hands[0].run_id))
    await asyncio.gather(*(hand.finish() for hand in [*hands, busy]))
    for viewer in viewers:
        assert await viewer.until_end() == "clean" and len(viewer.streams) == 1
        viewer.check(1, 4)


async def one_too_many(viewer: Follower) -> None:
    """The stated limit: refused with a time to come back at."""
    await viewer.open()
    assert viewer.stream.status == 503 and viewer.stream.problem()["code"] == "too_many_streams"
    assert 1 <= int(viewer.stream.headers["retry-after"]) <= 4


class Measured(NamedTuple):
    """A run that a worker in a process of its own emitted as fast as it could."""

    rate: float
    commands: int


async def emitted(service: Service, admin: Admin, viewers: int, base_url: str) -> Measured:
    """Emit a long run; events a second by the server's clock, and how many commands Redis ran for it and its viewers."""
    run_id = await new_script(service.client, ["wait", "go"], *(["emit", "step.done", {"n": n}] for n in range(EVENTS)))
    waiting = await reaches(service.client, run_id, "waiting")
    # They do not look at what they get before the end: it is the writer that is measured.
    readers = [await Stalled(base_url, f"/agent-runs/{run_id}/events").open() for _ in range(viewers)]
    reading = [asyncio.create_task(reader.read(timeout=60)) for reader in readers]
    await wait_until(lambda: all(b"run.waiting" in reader.seen for reader in readers), "the viewers to have caught up")
    ran = int(admin.info("stats")["total_commands_processed"])
    answer = {"wait_id": waiting["waiting"]["wait_id"], "value": True}
    assert (await service.client.post(f"/agent-runs/{run_id}/inputs", json=answer)).status_code == 202
    await wait_until(lambda: admin.hget(service.store.keys.run(run_id), "state") == b"succeeded", "the run to end", timeout=30)
    ran = int(admin.info("stats")["total_commands_processed"]) - ran
    await asyncio.gather(*reading)
    for reader in readers:
        assert reader.ended == "clean" and reader.sequences == list(range(1, EVENTS + 7))
        reader.close()
    log = [event for event in await service.store.events.after(run_id, 0, 2 * EVENTS) if event.type == "step.done"]
    return Measured(EVENTS * 1000 / max(1, log[-1].at - log[0].at), ran)


async def test_viewers_do_not_slow_down_a_writer(launch: Launcher, service: Service, admin: Admin) -> None:
    """Fifty viewers of a run: Redis is asked no more for fifty than for one, and the worker emits as fast as alone."""
    api = launch.api()
    launch.worker()
    rates: dict[int, list[float]] = {0: [], 1: [], 50: []}
    asked: dict[int, list[int]] = {0: [], 1: [], 50: []}
    for _ in range(rounds(1)):
        for viewers in rates:
            found = await emitted(service, admin, viewers, api.base_url)
            rates[viewers].append(found.rate)
            asked[viewers].append(found.commands)
    assert min(asked[50]) < 1.2 * max(asked[1]), asked
    # One short round is over in milliseconds and says nothing of speed; in longer ones worker, API and viewers share the processors.
    assert LONG == 1 or max(rates[50]) > 0.6 * max(rates[0]), rates
