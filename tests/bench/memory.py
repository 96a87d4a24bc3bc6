"""What runs take in Redis: what the server says of each key, before and after, divided by how many there are."""

import asyncio
from typing import Any

import redis.asyncio as aioredis

from reattach.core.run import Retention
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import Hand, create, draft, start
from ..support.servers import RedisServer
from ..support.waiting import wait_until
from .measure import table
from .payload import payload

RUNS = 500
DELTAS = 5_000
_BATCH = 50
_TEXT = "0123456789"


class _Scale:
    """The keys' memory. Not the server's: that holds buffers of connections as well, which come and go."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def bytes(self) -> int:
        """What all keys use now, without the capped streams of hints, of which there are two per shard."""
        keys = [key async for key in self._client.scan_iter(count=1000) if not key.endswith((b":bell", b":wake"))]
        pipe = self._client.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command("MEMORY", "USAGE", key, "SAMPLES", 0)
        return sum(used or 0 for used in await pipe.execute())


async def _idle(store: Store, scale: _Scale, runs: int) -> float:
    await create(store, "idle")
    before = await scale.bytes()
    for _ in range(runs):
        await create(store, "idle")
    return (await scale.bytes() - before) / runs


async def _events(store: Store, scale: _Scale, kind: str, count: int) -> float:
    hand = await start(store, f"events{kind[:4]}")
    before = await scale.bytes()
    for first in range(1, count, _BATCH):
        hand.batch += 1
        await store.work.append(hand.lease, hand.batch, [draft(kind, payload(n)) for n in range(first, first + _BATCH)])
    used = (await scale.bytes() - before) / count
    await hand.finish()
    await store.sweep.once()
    return used


async def _message(hand: Hand, name: str, count: int) -> None:
    await hand.emit(("message.started", {"message_id": name, "role": "assistant"}))
    for _ in range(0, count, _BATCH):
        await hand.emit(*(("message.delta", {"message_id": name, "text": _TEXT}) for _ in range(_BATCH)))
    content = [{"type": "text", "text": _TEXT * count}]
    await hand.emit(("message.completed", {"message_id": name, "role": "assistant", "content": content}))


async def _life(store: Store, scale: _Scale, deltas: int) -> list[tuple[str, float]]:
    """A run that says messages of 500 deltas, at the stages of its life."""
    before = await scale.bytes()
    hand = await start(store, "life", retention=Retention(deltas_ms=1, events_ms=400, run_ms=600_000))
    for n in range(deltas // 500):
        await _message(hand, f"m{n}", 500)
    stages = [(f"live run, {deltas:,} deltas: as written", await scale.bytes() - before)]
    await store.sweep.once()
    stages.append(("  after a sweep", await scale.bytes() - before))
    await hand.finish()
    await store.sweep.once()

    async def gone(name: str) -> None:
        async def is_gone() -> bool:
            return int(await store.door.call("EXISTS", name)) == 0

        await wait_until(is_gone, f"{name} to expire")

    await gone(store.keys.log(hand.run_id))
    stages.append(("  ended, its deltas gone", await scale.bytes() - before))
    await gone(store.keys.audit(hand.run_id))
    return [*stages, ("  ended, all events gone: record and snapshot", await scale.bytes() - before)]


async def _measure(url: str, runs: int, deltas: int) -> list[tuple[str, float]]:
    store = await Store.open(Settings(redis=url, prefix="bench", shards=4))
    client: Any = aioredis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    try:
        await store.check_scripts()
        scale = _Scale(client)
        size = len(payload(1))
        rows = [("idle run: record, first event, queue, lists", await _idle(store, scale, runs))]
        rows += [
            (f"event of the delta class, payload of {size} bytes", await _events(store, scale, "message.delta", deltas)),
            (f"any other event (log and audit), payload of {size} bytes", await _events(store, scale, "step.done", deltas)),
        ]
        rows += await _life(store, scale, deltas)
        await client.flushdb()
        return rows
    finally:
        await client.aclose()
        await store.close()


def run(redis: RedisServer, *, runs: int = RUNS, deltas: int = DELTAS) -> str:
    """Measure; a table of bytes.

    Args:
        redis: A server of the bench's own.
        runs: How many idle runs to make.
        deltas: How many deltas the long run has; a multiple of 500.
    """
    rows = asyncio.run(_measure(redis.url, runs, deltas))
    return table("Memory in Redis", ["", "bytes"], [[name, f"{used:,.0f}"] for name, used in rows])
