"""Clients that come and go at every moment: nobody's error, nothing left over, no event lost or doubled."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from reattach.store import Store

from ..support import drive
from ..support.sse import SSEParser
from ..support.waiting import wait_until
from .raw import connection


class Restless:
    """A client that leaves after a random moment, politely or not, and comes back with its cursor.

    Attributes:
        last: The last sequence it saw; every event must be the next one.
        visits: How often it connected.
    """

    def __init__(self, base_url: str, run_id: str, chance: random.Random) -> None:
        self.base_url, self.run_id, self.chance = base_url, run_id, chance
        self.last = self.visits = 0

    async def visit(self, *, longest: float) -> None:
        """Connect, read for a while, leave."""
        self.visits += 1
        version = self.chance.choice(("1.0", "1.1", "1.1"))
        async with connection(self.base_url) as raw:
            raw.ask("GET", f"/agent-runs/{self.run_id}/events", "Accept: text/event-stream", f"Last-Event-ID: {self.last}", version=version)
            stay = self.chance.choice((0, 0.001, longest * self.chance.random()))
            try:
                await raw.until_end(timeout=stay)
            except TimeoutError:
                if self.chance.random() < 0.5:
                    raw.abort()
            self._read(raw.body())

    def _read(self, body: bytes) -> None:
        # Half a chunk or frame at the end is what a client that leaves is left with.
        parser = SSEParser()
        for frame in parser.feed(body[: body.rfind(b"\n\n") + 2]):
            if frame.id is not None:
                sequence = int(frame.id.rpartition(":")[2])
                assert sequence == self.last + 1, (sequence, self.last)
                self.last = sequence


async def test_clients_that_come_and_go(replicas: Callable[..., Any], store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Short lives, resets, lifetimes that end by themselves; each client's story is gap-free all the same."""
    service = await replicas(keepalive=0.3, stream_lifetime=1.0, write_timeout=0.5)
    chance = random.Random(11)
    hands = [await drive.start(store, f"agent{n}") for n in range(3)]
    clients = [Restless(service.base_url, chance.choice(hands).run_id, chance) for _ in range(16)]
    end = time.monotonic() + 2

    async def churn(client: Restless) -> None:
        while time.monotonic() < end:
            await client.visit(longest=0.4)

    async def feed(hand: drive.Hand) -> None:
        while time.monotonic() < end:
            await hand.emit(*(("step.done", {"text": "x" * chance.choice((10, 1000))}) for _ in range(chance.choice((1, 3, 10)))))
            await asyncio.sleep(0.02)

    await asyncio.gather(*map(churn, clients), *map(feed, hands))
    for hand in hands:
        await hand.finish()
    lasts = {hand.run_id: (await store.runs.load(hand.run_id)).sequence for hand in hands}

    async def finish(client: Restless) -> None:
        while client.last < lasts[client.run_id]:
            await client.visit(longest=1)

    await asyncio.gather(*map(finish, clients))
    assert sum(client.visits for client in clients) > 100
    await wait_until(lambda: service.hub.stats().followers == 0, "everybody to be let go")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_clients_that_leave_before_they_are_answered(
    replicas: Callable[..., Any], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the request and the head, whatever was asked for."""
    service = await replicas()
    run_id = (await drive.start(store)).run_id
    paths = (f"/agent-runs/{run_id}/events", f"/agent-runs/{run_id}?wait=30", f"/agent-runs/{run_id}/events?wait=30&after=2", "/agent-runs")
    for number in range(120):
        async with connection(service.base_url) as raw:
            raw.ask("GET", paths[number % len(paths)], "Accept: application/json" if number % 2 else "Accept: */*")
            for _ in range(number % 7):
                await asyncio.sleep(0)
            raw.abort()
    await wait_until(lambda: service.hub.stats().followers == 0, "nobody to follow")
    assert (await service.client.get("/healthz")).status_code == 200
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
