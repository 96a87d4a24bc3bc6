"""The floor: bare uvicorn that writes prepared frames straight to its transports. No Redis, no order to keep, nothing to check.

``GET /events`` follows, ``POST /go?rate=50&count=500&batch=1`` writes that many frames to everybody and answers with the time of each.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from reattach.core.event import Event
from reattach.tail import Framer

from .measure import now_ns
from .payload import payload

HEAD = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
RUN = "run_00" + "0" * 24

_followers: dict[Any, asyncio.Event] = {}


def _frames(count: int) -> list[bytes]:
    framer = Framer(run_id=RUN, release_id="unreleased", scope=f"dev/{RUN}")
    return [framer.frame(Event(n, "message.delta", 1_788_430_471_000 + n, payload(n))).sse for n in range(1, count + 1)]


async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """The ASGI application."""
    if scope["type"] != "http":
        return
    if scope["method"] == "GET":
        await _follow(send)
        return
    query = dict(parse_qsl(scope["query_string"].decode()))
    times = await _go(float(query["rate"]), int(query["count"]), int(query["batch"]))
    body = json.dumps(times).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def _follow(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
    done = _followers[send.__self__] = asyncio.Event()
    await done.wait()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _go(rate: float, count: int, batch: int) -> list[int]:
    frames, times = _frames(count), list[int]()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for start in range(0, count, batch):
        if rate and (pause := begun + start / rate - loop.time()) > 0:
            await asyncio.sleep(pause)
        data = b"".join(frames[start : start + batch])
        times += [now_ns()] * min(batch, count - start)
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        for cycle in _followers:
            if cycle.flow.write_paused:
                await cycle.flow.drain()
            cycle.transport.write(chunk)
        if not rate:
            await asyncio.sleep(0)
    for done in _followers.values():
        done.set()
    _followers.clear()
    return times
