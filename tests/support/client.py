"""A client that follows a run as a browser would, and remembers everything it was sent."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import httpx

from .secrecy import SECRECY
from .sse import SSEFrame, SSEParser
from .waiting import wait_until

AUTO = "auto"
End = Literal["clean", "cut", "closed"]


def make_client(base_url: str, **options: Any) -> httpx.AsyncClient:
    """An HTTP client without hidden retries, proxies or idle limits that would blur what the server did."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=5)
    hooks: dict[str, Any] = {"request": [_sent], "response": [_answered]}
    given: dict[str, Any] = {"timeout": httpx.Timeout(30), "limits": limits, "trust_env": False, "event_hooks": hooks, **options}
    return httpx.AsyncClient(base_url=base_url, **given)


async def _sent(request: httpx.Request) -> None:
    url = request.url
    body = request.content if isinstance(request.stream, httpx.ByteStream) else b""
    SECRECY.sent(request.method, url.path, url.query.decode("latin-1"), request.headers, body)


async def _answered(response: httpx.Response) -> None:
    path = response.request.url.path
    if response.headers.get("content-type", "").startswith(("application/problem+json", "text/plain")) or path.endswith(
        ("/tickets", "/claims")
    ):
        body = await response.aread()
        SECRECY.answered(path, body)
        told = SECRECY.credentials_in(body.decode("utf-8", "replace"))
        assert not told, f"{response.request.method} {path} tells {told}"


class Stream:
    """One request for an event stream and all that came back.

    Attributes:
        status: HTTP status; 0 until the head arrived.
        headers: The response's.
        body: The whole body when it is not an event stream.
        raw: The stream's bytes.
        arrivals: `time.monotonic()` of every portion of them.
        frames: Dispatched frames, control frames included.
        ended: None while it is open; ``clean`` for a complete HTTP body, ``cut`` for one that broke off, ``closed`` by us.
        head_after: Seconds from sending the request to status and headers.
    """

    def __init__(self, client: httpx.AsyncClient, url: str, *, headers: Mapping[str, str], params: Mapping[str, str]) -> None:
        self.status, self.headers, self.body = 0, httpx.Headers(), b""
        self.raw, self.frames, self.parser = bytearray(), list[SSEFrame](), SSEParser()
        self.arrivals = list[float]()
        self.ended: End | None = None
        self.opened_at = time.monotonic()
        self.head_after = self.first_byte_after = self.ended_at = 0.0
        self._client, self._url, self._headers, self._params = client, url, dict(headers), dict(params)
        self._response: httpx.Response | None = None
        self._task = asyncio.create_task(self._read(), name=f"stream {url}")

    async def _read(self) -> None:
        headers = {"accept": "text/event-stream", **self._headers}
        try:
            async with self._client.stream("GET", self._url, headers=headers, params=self._params, timeout=httpx.Timeout(60)) as response:
                self._response, self.headers = response, response.headers
                self.head_after = time.monotonic() - self.opened_at
                self.status = response.status_code
                if self.streaming:
                    await self._take(response)
                else:
                    self.body = await response.aread()
            self.ended = "clean"
        except (httpx.TransportError, OSError):
            self.ended = "cut"
        except asyncio.CancelledError:
            self.ended = "closed"
        finally:
            self.ended_at = time.monotonic()

    async def _take(self, response: httpx.Response) -> None:
        async for chunk in response.aiter_raw():
            self.first_byte_after = self.first_byte_after or time.monotonic() - self.opened_at
            self.raw += chunk
            self.arrivals.append(time.monotonic())
            self.frames += self.parser.feed(chunk)

    async def head(self) -> "Stream":
        """Wait for status and headers, with the body where it is not a stream (or for the connection's failure)."""
        await wait_until(lambda: self.streaming or self.ended, f"an answer to {self._url}")
        return self

    @property
    def streaming(self) -> bool:
        """Whether the head of an event stream has arrived."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def finished(self, timeout: float = 15) -> End:
        """Wait until the stream is over, however it ended.

        Raises:
            AssertionError: It is still open.
        """
        await wait_until(lambda: self.ended, f"the stream of {self._url} to end", timeout=timeout)
        await self._task
        assert self.ended is not None
        return self.ended

    @property
    def told(self) -> str:
        """How the stream is going, for failure messages."""
        return f"{self.ended}, status {self.status}, {[(f.event, f.data[:80]) for f in self.frames[-3:]]}"

    async def cut(self) -> None:
        """Break the connection with RST, as a lost network would look to the server."""
        if self._response is not None and self.ended is None:
            sock = self._response.extensions["network_stream"].get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.close()

    async def close(self) -> None:
        """Close the connection, as a closed tab does."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def problem(self) -> dict[str, Any]:
        """The problem document, when the answer was not a stream."""
        assert self.headers.get("content-type") == "application/problem+json", (self.status, self.headers, self.body)
        return json.loads(self.body)


class Follower:
    """A client's whole story with one run, across any number of connections and servers.

    Attributes:
        stream: The current (or last) connection.
        streams: All of them, in order.
    """

    def __init__(self, client: httpx.AsyncClient, run_id: str, *, headers: Mapping[str, str] | None = None) -> None:
        self.client, self.run_id, self.streams = client, run_id, list[Stream]()
        self._headers = dict(headers or {})

    async def open(self, cursor: str | int | None = AUTO, *, on: str = "", after: str | None = None, **headers: str) -> "Follower":
        """Connect, by default with the last id seen, as an `EventSource` does; returns when the response head is there.

        Args:
            cursor: `Last-Event-ID`; None sends no such header.
            on: Another replica's base URL.
            after: The `?after=` cursor.
            headers: More request headers.
        """
        self.connect(cursor, on=on, after=after, **headers)
        await self.stream.head()
        return self

    def connect(self, cursor: str | int | None = AUTO, *, on: str = "", after: str | None = None, **headers: str) -> None:
        """Send the request of `open` without waiting for its answer."""
        if cursor == AUTO:
            cursor = self.last_event_id or None
        sent = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if cursor is not None:
            sent["last-event-id"] = str(cursor)
        url, params = f"{on}/agent-runs/{self.run_id}/events", {} if after is None else {"after": after}
        self.streams.append(Stream(self.client, url, headers=sent, params=params))

    @property
    def stream(self) -> Stream:
        """The current (or last) connection."""
        return self.streams[-1]

    @property
    def last_event_id(self) -> str:
        """What a browser would send when it reconnects."""
        return next((frame.last_event_id for s in reversed(self.streams) for frame in reversed(s.frames) if frame.last_event_id), "")

    @property
    def frames(self) -> list[SSEFrame]:
        """Frames of stored events, over all connections, in the order of arrival."""
        return [frame for stream in self.streams for frame in stream.frames if frame.id is not None]

    @property
    def control(self) -> list[SSEFrame]:
        """Frames without an id of their own."""
        return [frame for stream in self.streams for frame in stream.frames if frame.id is None]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events, decoded."""
        return [json.loads(frame.data) for frame in self.frames]

    @property
    def sequences(self) -> list[int]:
        """Their sequences."""
        return [event["sequence"] for event in self.events]

    @property
    def types(self) -> list[str]:
        """Their types."""
        return [frame.event for frame in self.frames]

    async def until(self, condition: int | str | Callable[["Follower"], Any], *, timeout: float = 15) -> "Follower":
        """Wait for a sequence, a type, or anything else about what was received.

        Raises:
            AssertionError: It did not come in time.
        """

        def met() -> Any:
            if isinstance(condition, int):
                return bool(self.sequences) and self.sequences[-1] >= condition
            return condition in self.types if isinstance(condition, str) else condition(self)

        await wait_until(met, f"{self.run_id} to deliver {condition} (so far {self.sequences[-3:]} {self.types[-3:]})", timeout=timeout)
        return self

    async def until_end(self, *, timeout: float = 15) -> End:
        """Wait until the current connection is over."""
        return await self.stream.finished(timeout)

    async def cut(self) -> "Follower":
        """Lose the connection."""
        await self.stream.cut()
        return self

    async def close(self) -> "Follower":
        """Close the connection."""
        for stream in self.streams:
            await stream.close()
        return self

    def check(self, first: int = 1, last: int | None = None) -> None:
        """What holds for every client: contiguous from `first`, in order, no repeat, ids and types as the data says, nothing after the end.

        Raises:
            AssertionError: It does not hold.
        """
        sequences = self.sequences
        assert sequences == list(range(first, first + len(sequences))), f"gap, repeat or disorder in {sequences}"
        if last is not None:
            assert sequences and sequences[-1] == last, f"expected up to {last}, got {sequences[-3:]}"
        for frame, event in zip(self.frames, self.events, strict=True):
            assert frame.id == event["event_id"] == f"{self.run_id}:{event['sequence']}"
            assert frame.event == event["type"]
        endings = [kind for kind in self.types if kind in ("run.succeeded", "run.failed", "run.cancelled")]
        assert len(endings) <= 1 and (not endings or self.types[-1] == endings[0]), self.types
