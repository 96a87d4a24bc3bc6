"""The one file that knows uvicorn's insides: what an event stream needs of its connection and ASGI cannot say.

ASGI has no way to cut a chunked body without completing it, to see how much a slow client still has to take, to write without a task
of one's own, or to hear of a lost connection without one. A `Wire` can. It travels in the request's scope, so no middleware between
server and stream matters.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ..core.errors import HeadTooLarge, MalformedRequest, ReattachError
from .problems import problem

EXTENSION: Final = "reattach.wire"
MAX_HEAD: Final = 64 * 1024
"""Most bytes of a request's address, headers and trailers together; neither uvicorn nor its parser has a limit."""

_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)
_RESET: Final = struct.pack("ii", 1, 0)


class _Chunks:
    """The last body as an HTTP chunk: the viewers of a run are given the same bytes, one after the other."""

    __slots__ = ("body", "chunk")

    def __init__(self) -> None:
        self.body = self.chunk = b""

    def of(self, body: bytes) -> bytes:
        self.body, self.chunk = body, b"%x\r\n%b\r\n" % (len(body), body)
        return self.chunk


_CHUNKS: Final = _Chunks()


class Wire:
    """The connection under one request."""

    __slots__ = ("_callbacks", "_chunked", "_cycle", "_flow", "_transport", "_written", "lost")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport: Any = cycle.transport
        self._flow = cycle.flow
        self._callbacks: list[Callable[[], object]] = []
        self._chunked = True
        self._written = 0
        self.lost = False

    def on_lost(self, callback: Callable[[], object]) -> None:
        """Call back when the connection is gone, at once if it is gone already."""
        if self.lost:
            callback()
        else:
            self._callbacks.append(callback)

    @property
    def complete(self) -> bool:
        """Whether the request was answered."""
        return self._cycle.response_complete

    @property
    def unread(self) -> bool:
        """Whether a part of the request is still to come, and nothing of an answer was sent."""
        return self._cycle.more_body and not self._cycle.response_started

    def was_lost(self) -> None:
        """The server's side of `on_lost`."""
        self.lost = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def begin_stream(self, *, stall_timeout: float) -> None:
        """Prepare for an endless body; call before the response starts.

        Args:
            stall_timeout: Seconds after which the kernel gives up on a peer that acknowledges nothing (a laptop asleep, a cable pulled).
        """
        if self._cycle.scope["http_version"] == "1.0":
            # Such a client knows no chunks, its body ends with the connection; uvicorn would send chunks all the same.
            self._cycle.chunked_encoding = self._chunked = False
        if _USER_TIMEOUT is not None:
            self._set(socket.IPPROTO_TCP, _USER_TIMEOUT, int(stall_timeout * 1000))

    def _set(self, level: int, option: int, value: int | bytes) -> None:
        sock = self._transport.get_extra_info("socket")
        if self.lost or sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
            return
        # The client may have left a moment ago, before anybody was told: then there is no socket any more (uvloop: ValueError).
        with suppress(OSError, ValueError):
            sock.setsockopt(level, option, value)

    def write(self, body: bytes) -> bool:
        """Write a part of the body, whole: nothing else can come between its bytes. Never waits; whether the client can take more now."""
        # Once per viewer and event: no call here that is not needed.
        transport = self._transport
        if self.lost or transport.is_closing():
            return False
        if self._chunked:
            body = _CHUNKS.chunk if body is _CHUNKS.body else _CHUNKS.of(body)
        self._written += len(body)
        transport.write(body)
        return not self._flow.write_paused

    @property
    def paused(self) -> bool:
        """Whether the client takes less than it is sent, so that more would only pile up here."""
        return self._flow.write_paused

    @property
    def backlog(self) -> int:
        """Bytes that wait in this process for the client to take them."""
        return 0 if self.lost else int(self._transport.get_write_buffer_size())

    @property
    def taken(self) -> int:
        """Bytes the client took so far, for comparing with an earlier moment: it grows if and only if the client reads."""
        return self._written - self.backlog

    async def drain(self) -> None:
        """Wait until the client has caught up, or is gone."""
        if self._flow.write_paused:
            await self._flow.drain()

    @property
    def framed(self) -> bool:
        """Whether the client can tell a cut body from a complete one by its bytes."""
        return self._chunked

    def cut(self) -> None:
        """End the connection after what was written, without completing the body."""
        if not self.lost:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once, with a reset: what was not taken yet is dropped."""
        if not self.lost:
            self._set(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()


class WireProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, with a `Wire` in every request's scope, a limit to a request's head, and refusals as problems."""

    # In slots: with four more names in it, the dictionary of each connection would outgrow what Python shares between instances.
    __slots__ = ("_head", "_refusal", "_unparsed", "_wires")

    def connection_made(self, transport: Any) -> None:
        """A client connected."""
        self._wires: list[Wire] = []
        self._head = self._unparsed = 0
        self._refusal: ReattachError | None = None
        super().connection_made(transport)
        _slim(self.flow._is_writable_event)  # pyright: ignore[reportPrivateUsage]

    def data_received(self, data: bytes) -> None:
        """A client sent something."""
        self._unset_keepalive_if_required()
        # What the parser hands on sets this back. A header that does not end is handed on never; only the parser's memory grows.
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as e:
            if self._offers_upgrade:
                self._decline_upgrade(data[e.args[0] :])
        except HttpParserError:
            self.send_400_response("")
            return
        if self._unparsed > MAX_HEAD and not self.transport.is_closing():
            self._refusal = _too_large()
            self.send_400_response("")

    @property
    def _offers_upgrade(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read a request again without its offer to go on in another protocol.

        Java's client offers h2c with every request, as it may, and sends the body behind it. The parser holds that for the other protocol.
        """
        head = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(v for v in map(bytes.strip, value.split(b",")) if v.lower() not in (b"upgrade", b"http2-settings"))
            if name != b"upgrade":
                head.append(b"%b: %b" % (name, value))
        self.parser = HttpRequestParser(self)
        self.data_received(b"\r\n".join((*head, b"", rest)))

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head = self._unparsed = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the address was read."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header was read, or a trailer."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._head += size
        if self._head > MAX_HEAD:
            self._refusal = _too_large()
            raise self._refusal  # through the parser, which reads no further, to `send_400_response`

    def on_body(self, body: bytes) -> None:
        """A part of the body was read."""
        self._unparsed = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """A request's head is complete; its task starts in the next turn of the loop."""
        if self._offers_upgrade:
            return
        super().on_headers_complete()
        _slim(self.cycle.message_event)
        wire = Wire(self.cycle)
        scope: MutableMapping[str, Any] = self.cycle.scope  # pyright: ignore[reportAssignmentType]
        scope.setdefault("extensions", {})[EXTENSION] = wire
        # More than one only while a client pipelines requests.
        self._wires = [w for w in self._wires if not w.complete] + [wire]

    def on_message_complete(self) -> None:
        """A request was read to its end."""
        if self._offers_upgrade:
            return
        self._unparsed = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; its answer is the connection's last."""
        waiting = [wire for wire in self._wires if not wire.complete]
        if len(waiting) > 1 or any(not wire.unread for wire in waiting):
            # An earlier request's answer is due or under way: this one must neither get into it nor be taken for it.
            self.transport.close()
            return
        answer = problem(self._refusal or MalformedRequest())
        lines = [b"%b: %b\r\n" % header for header in (*answer.raw_headers, (b"connection", b"close"))]
        self.transport.write(b"".join((STATUS_LINE[answer.status_code], *lines, b"\r\n", bytes(answer.body))))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, whoever ended it."""
        super().connection_lost(exc)
        for wire in self._wires:
            wire.was_lost()


def _slim(event: asyncio.Event) -> None:
    """Let an event that nobody waits for yet keep its waiters in a list: an empty deque takes 700 bytes, and each connection has two."""
    event._waiters = []  # pyright: ignore[reportAttributeAccessIssue]


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(f"a request's address and headers are at most {MAX_HEAD} bytes together", max_bytes=MAX_HEAD)


def wire_of(scope: MutableMapping[str, Any]) -> Wire | None:
    """The wire under a request; None when another server runs the application."""
    wire = scope.get("extensions", {}).get(EXTENSION)
    return wire if isinstance(wire, Wire) else None
