"""No Redis, no order to keep, nothing to check: what a Python server can deliver at all.

POST /pub/NAME adds one frame per line of its body, GET /sub/NAME follows from `Last-Event-ID` on. BENCH_DELIVER=transport writes
to uvicorn's transports from one loop over all followers; BENCH_DELIVER=send wakes a task for each and uses ASGI's send.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

DIRECT = os.environ.get("BENCH_DELIVER") == "transport"
HEAD = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Stream:
    """Frames, and who follows them: a position per uvicorn cycle, or tasks that wait."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.direct: dict[Any, int] = {}
        self.news = asyncio.Event()
        self.joined: tuple[int, int, bytes] = (-1, -1, b"")

    def since(self, position: int) -> bytes:
        """All frames behind a position; joined once for all who are at it."""
        if self.joined[:2] != (position, len(self.frames)):
            self.joined = (position, len(self.frames), b"".join(self.frames[position:]))
        return self.joined[2]

    def add(self, lines: list[bytes]) -> None:
        """Frames for lines, to everybody."""
        for line in lines:
            self.frames.append(b"id: %d\nevent: message.delta\ndata: %b\n\n" % (len(self.frames) + 1, line))
        self.news.set()
        self.news = asyncio.Event()
        for cycle, position in self.direct.items():
            if not cycle.flow.write_paused and not cycle.transport.is_closing():
                data = self.since(position)
                cycle.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.direct[cycle] = len(self.frames)


STREAMS: dict[str, Stream] = defaultdict(Stream)


async def app(scope: Any, receive: Receive, send: Send) -> None:
    """The ASGI application."""
    if scope["type"] != "http":
        return
    stream = STREAMS[scope["path"][5:]]
    if scope["method"] == "POST":
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        stream.add(body.split(b"\n"))
        await send({"type": "http.response.start", "status": 204, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    cursor = next((int(value) for name, value in scope["headers"] if name == b"last-event-id" and value), 0)
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await _follow(stream, cursor, receive, send)


async def _follow(stream: Stream, position: int, receive: Receive, send: Send) -> None:
    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    end = asyncio.create_task(gone())
    cycle: Any = getattr(send, "__self__", None)
    try:
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        while not end.done():
            if position < len(stream.frames):
                data, position = stream.since(position), len(stream.frames)
                await send({"type": "http.response.body", "body": data, "more_body": True})
            elif DIRECT:
                stream.direct[cycle] = position
                await end
            else:
                news = asyncio.create_task(stream.news.wait())
                await asyncio.wait((end, news), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
    finally:
        stream.direct.pop(cycle, None)
        end.cancel()
