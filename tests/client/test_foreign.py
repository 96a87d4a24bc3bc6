"""Clients of others, unmodified, follow a run through three cuts to its end."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest

from reattach.store import Store

from ..support.client import make_client
from ..support.drive import Hand, start
from ..support.factories import Proxies
from ..support.proxy import Filter, Proxy
from ..support.service import Service
from ..support.waiting import wait_until
from .packages import packages
from .page import FOLDER, node

Seen = list[dict[str, Any]]


def soon() -> Filter:
    """Rewrites what the server asks for as reconnection time, at the same length, so that tests need not wait for it."""
    return lambda chunk: re.sub(rb"retry: [1-3](\d{3})\n", b"retry: 0020\n", chunk)


async def drive(hand: Hand, proxy: Proxy, seen: Seen) -> int:
    """Four portions of events with a cut in the middle of each of the first three; the last sequence."""
    sent = 2
    for part in range(4):
        await hand.emit_many(7, start=part * 7)
        sent += 7
        await wait_until(lambda sent=sent: len(seen) >= sent, f"{sent} events to arrive, so far {seen[-2:]}")
        if part < 3:
            assert proxy.cut() == 1
    await hand.finish(outcome={"n": 28})
    return sent + 1


def check(seen: Seen, run_id: str, last: int) -> None:
    """Every event once, in order, to the last one."""
    events = [json.loads(event["data"]) for event in seen]
    assert [event["sequence"] for event in events] == list(range(1, last + 1))
    assert [event["id"] for event in seen] == [f"{run_id}:{n}" for n in range(1, last + 1)]
    assert [event["type"] for event in seen] == [event["type"] for event in events]
    assert events[-1]["type"] == "run.succeeded"


async def tell(reader: asyncio.StreamReader, seen: Seen, ends: Seen) -> None:
    """Keep what a client tells."""
    async for line in reader:
        said = json.loads(line)
        (ends if "end" in said else seen).append(said)


@pytest.fixture
async def followed(task_guard: None) -> AsyncIterator[Callable[[str, Path, str], Any]]:
    """Start a client of npm; what it has seen, and how it ended."""
    processes: list[asyncio.subprocess.Process] = []
    readers: list[asyncio.Task[None]] = []

    async def follow(client: str, folder: Path, url: str) -> tuple[Seen, Seen]:
        seen, ends = Seen(), Seen()
        process = await node(str(FOLDER / "foreign.mjs"), client, str(folder), url)
        processes.append(process)
        assert process.stdout is not None
        readers.append(asyncio.create_task(tell(process.stdout, seen, ends)))
        return seen, ends

    yield follow
    for process, reader in zip(processes, readers, strict=True):
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await reader


@pytest.mark.parametrize("client", ["eventsource", "fetch-event-source"])
async def test_npm(client: str, service: Service, store: Store, proxies: Proxies, followed: Callable[..., Any]) -> None:
    """`eventsource` and `@microsoft/fetch-event-source`, and each stops by itself at the end."""
    folder = packages()
    hand, proxy = await start(store), await proxies(service.base_url, filter=soon)
    seen, ends = await followed(client, folder, f"{proxy.http}/agent-runs/{hand.run_id}/events")
    await wait_until(lambda: len(seen) == 2, "the first events")
    last = await drive(hand, proxy, seen)
    await wait_until(lambda: ends, f"{client} to stop")
    check(seen, hand.run_id, last)


async def test_httpx_sse(service: Service, store: Store, proxies: Proxies) -> None:
    """`httpx-sse`, which leaves connecting again to its user: with the last id, until the stream ends as a whole."""
    hand, proxy = await start(store), await proxies(service.base_url)
    seen = Seen()

    async def follow() -> None:
        last = ""
        async with make_client(proxy.http) as client:
            while True:
                with suppress(httpx.TransportError):
                    headers = {"last-event-id": last} if last else {}
                    async with httpx_sse.aconnect_sse(client, "GET", f"/agent-runs/{hand.run_id}/events", headers=headers) as source:
                        async for event in source.aiter_sse():
                            if not event.data:
                                continue  # a reconnection time, which a browser would not hand on
                            last = event.id
                            seen.append({"type": event.event, "data": event.data, "id": event.id})
                    return

    following = asyncio.create_task(follow())
    await wait_until(lambda: len(seen) == 2, "the first events")
    last = await drive(hand, proxy, seen)
    await asyncio.wait_for(following, 10)
    check(seen, hand.run_id, last)
