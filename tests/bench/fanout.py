"""One run, many viewers: what a delivery costs, as a ratio to bare uvicorn writing prepared frames."""

import asyncio
import contextlib
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from reattach.core.event import Draft
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import start
from ..support.launch import Api
from ..support.processes import ROOT, Child, free_port
from ..support.servers import RedisServer
from .measure import cpu_seconds, median, now_ns, percentile, spent, table
from .payload import payload
from .viewers import Viewers


@dataclass(frozen=True)
class Load:
    """How events come: `count` of them in batches, `rate` per second or (0) as fast as it goes."""

    name: str
    rate: float
    count: int
    batch: int


LOADS = (Load("steady, 50 events/s", 50, 200, 1), Load("flat out, batches of 32", 0, 1920, 32))


@dataclass(frozen=True)
class Delivered:
    """One measurement: per delivery CPU of the server in seconds, deliveries per second, and the 99th percentile of the delay."""

    cpu: float
    rate: float
    p99: float


class Floor(Child):
    """Bare uvicorn."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        options = ["--port", str(self.port), "--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"]
        command = [sys.executable, "-m", "uvicorn", "tests.bench.floor:app", *options]
        super().__init__("floor", command, log=folder / "floor.log", env={"PYTHONPATH": f"{ROOT / 'service'}:{ROOT}"})


async def _floor(server: Floor, load: Load, count: int) -> Delivered:
    viewers = Viewers(server.port, "/events", count)
    await viewers.connect()
    before, begun = cpu_seconds(server.process.pid), now_ns()
    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
        query = f"rate={load.rate}&count={load.count}&batch={load.batch}"
        times: list[int] = (await client.post(f"http://127.0.0.1:{server.port}/go?{query}")).json()
    await viewers.finished()
    return _result(viewers, load, count, spent(before, cpu_seconds(server.process.pid)), begun, times, first=1, last=load.count)


async def _product(server: Api, settings: Settings, load: Load, count: int) -> Delivered:
    store = await Store.open(settings)
    try:
        hand = await start(store, "bench")
        viewers = Viewers(server.port, f"/agent-runs/{hand.run_id}/events", count)
        await viewers.connect(2)
        loop, times = asyncio.get_running_loop(), list[int]()
        before, begun, began_at = cpu_seconds(server.process.pid), now_ns(), loop.time()
        for number, first in enumerate(range(0, load.count, load.batch), 1):
            if load.rate and (pause := began_at + first / load.rate - loop.time()) > 0:
                await asyncio.sleep(pause)
            drafts = [Draft("message.delta", payload(n + 1)) for n in range(first, min(load.count, first + load.batch))]
            times += [now_ns()] * len(drafts)
            await store.work.append(hand.lease, number, drafts)
        last = (await hand.finish()).sequence
        await viewers.finished()
        return _result(viewers, load, count, spent(before, cpu_seconds(server.process.pid)), begun, times, first=3, last=last)
    finally:
        await store.close()


def _result(viewers: Viewers, load: Load, count: int, cpu: float, begun: int, times: list[int], *, first: int, last: int) -> Delivered:
    seconds = (viewers.last_arrival() - begun) / 1e9
    viewers.close()
    delays = viewers.check(last, times, first)
    deliveries = load.count * count
    return Delivered(cpu / deliveries, deliveries / seconds, percentile(delays, 0.99))


@contextlib.contextmanager
def _servers(redis: RedisServer, folder: Path) -> Generator[tuple[Floor, Api, Settings]]:
    settings = Settings(redis=redis.url, prefix="bench", shards=4, port=free_port(), data=str(folder / "data"))
    floor, api = Floor(folder), Api(settings, folder)
    try:
        floor.start()
        api.start()
        yield floor, api, settings
    finally:
        floor.close()
        api.close()


def run(redis: RedisServer, folder: Path, *, repetitions: int, viewers: int, loads: Sequence[Load] = LOADS) -> str:
    """Measure in turn; a table of medians and ratios."""
    rows: list[list[str]] = []
    with _servers(redis, folder) as (floor, api, settings):
        for load in loads:
            asyncio.run(_product(api, settings, load, viewers))  # the first one fills caches
            floors, products = list[Delivered](), list[Delivered]()
            for _ in range(repetitions):
                floors.append(asyncio.run(_floor(floor, load, viewers)))
                products.append(asyncio.run(_product(api, settings, load, viewers)))
            for name, results in (("bare uvicorn", floors), ("reattach", products)):
                cpu, rate, p99 = (median(getattr(r, field) for r in results) for field in ("cpu", "rate", "p99"))
                rows.append([f"{load.name}: {name}", f"{cpu * 1e6:.1f} µs", f"{rate:,.0f}/s", f"{p99 * 1e3:.1f} ms"])
            cpu, rate, p99 = (
                median(getattr(p, field) / getattr(f, field) for f, p in zip(floors, products, strict=True))
                for field in ("cpu", "rate", "p99")
            )
            rows.append(["  ratio", f"{cpu:.2f}", f"{rate:.2f}", f"{p99:.2f}"])
    return table(f"Fan-out of one run to {viewers} viewers", ["", "CPU per delivery", "deliveries", "p99 delay"], rows)
