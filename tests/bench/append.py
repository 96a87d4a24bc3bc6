"""Durable fenced appends, as a ratio to raw pipelined XADD of the same entries in the same batches."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import redis.asyncio as aioredis

from reattach.core.event import Draft
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import Hand, start
from ..support.servers import RedisServer
from .modes import Outcome
from .payload import payload

EVENTS = {1: 8_000, 8: 32_000, 32: 64_000}
NAME = "append, batches of {}"
RUNS = 16
"""Runs that append at the same time; within a run one batch waits for the one before it."""


@dataclass(frozen=True)
class Appended:
    """One measurement: events per second, and Redis' own CPU per event in seconds."""

    rate: float
    redis: float


async def _timed(admin: Any, count: int, work: Callable[[], Awaitable[None]]) -> Appended:
    before, begun = await _redis_cpu(admin), time.perf_counter()
    await work()
    seconds = time.perf_counter() - begun
    return Appended(count / seconds, (await _redis_cpu(admin) - before) / count)


async def _redis_cpu(admin: Any) -> float:
    said = await admin.info("cpu")
    return float(said["used_cpu_user"]) + float(said["used_cpu_sys"])


async def _raw(url: str, batch: int, events: int) -> Appended:
    """A pipeline per round: one batch for every run, as XADD commands with explicit ids."""
    client: Any = aioredis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    rounds = events // (batch * RUNS)

    async def work() -> None:
        for turn in range(rounds):
            pipe = client.pipeline(transaction=False)
            at = str(int(time.time() * 1000))
            for run in range(RUNS):
                for n in range(turn * batch + 1, (turn + 1) * batch + 1):
                    entry = ("type", "message.delta", "at", at, "payload", payload(n))
                    pipe.execute_command("XADD", f"bench:raw:{run}", f"{n}-0", *entry)
            await pipe.execute()

    try:
        result = await _timed(client, rounds * batch * RUNS, work)
        for run in range(RUNS):
            assert await client.xlen(f"bench:raw:{run}") == rounds * batch
        await client.flushdb()
        return result
    finally:
        await client.aclose()


async def _product(url: str, batch: int, events: int) -> Appended:
    store = await Store.open(Settings(redis=url, prefix="bench", shards=4))
    client: Any = aioredis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    hands = [await start(store, f"bench{n}") for n in range(RUNS)]
    rounds = events // (batch * RUNS)

    async def write(hand: Hand) -> None:
        for turn in range(rounds):
            drafts = [Draft("message.delta", payload(n)) for n in range(turn * batch + 1, (turn + 1) * batch + 1)]
            await store.work.append(hand.lease, turn + 1, drafts)

    async def work() -> None:
        await asyncio.gather(*map(write, hands))

    try:
        result = await _timed(client, rounds * batch * RUNS, work)
        for hand in hands:
            assert (await hand.finish()).sequence == rounds * batch + 3
        await client.flushdb()
        return result
    finally:
        await client.aclose()
        await store.close()


def measure(redis: RedisServer, *, repetitions: int, events: Mapping[int, int] = EVENTS) -> list[Outcome]:
    """Both in turn, for each size of batch.

    Args:
        redis: A server of the bench's own.
        repetitions: How often.
        events: How many events for which size of batch.
    """
    outcomes: list[Outcome] = []
    for batch, count in events.items():
        for _ in range(repetitions):
            for name, how in (("raw XADD", _raw), ("reattach", _product)):
                found = asyncio.run(how(redis.url, batch, count))
                figures = {"per_s": found.rate, "redis_us": found.redis * 1e6}
                outcomes.append(Outcome(target=name, workload=NAME.format(batch), figures=figures))
    return outcomes
