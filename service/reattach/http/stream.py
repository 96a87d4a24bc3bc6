"""One event stream: an ASGI response that takes what `deliver` hands it, and ends in one of three ways.

Clean after the terminal event; cut after ``stream.closing`` while the run goes on (common clients take a complete body for success); or
abandoned, when the client left first. The client's leaving changes nothing about the run.
"""

import asyncio
import math
import random
from typing import Final, Protocol

import structlog
from starlette.types import Receive, Scope, Send

from ..core.errors import CursorExpired, InternalError, ReattachError
from ..obs.metrics import DELIVERED, STREAMS_ENDED
from ..obs.trace import Trace
from ..tail import Slice, StreamEnded, deliver
from . import sse
from .auth import Principal, left
from .service import Service
from .wire import Wire, wire_of

_log = structlog.get_logger("reattach.streams")

_LAST_WORDS: Final = 1.0
"""How long a stream that is ending may take to deliver what it was still owed, seconds."""
_UNFRAMED_LAST_WORDS: Final = 0.2


class Sight(Protocol):
    """What one viewer is shown of events that not every reader may see."""

    def of(self, piece: Slice) -> Slice | None:
        """The piece as this viewer sees it; None where that has to be asked first."""
        ...

    async def ask(self, piece: Slice) -> Slice:
        """The piece as this viewer sees it.

        Raises:
            ReattachError: It cannot be said now.
        """
        ...


class EventStream:
    """A response that delivers one run, or one session, to one client.

    Attributes:
        principal: Who reads.
        run_id: What is read: a run's id, or a session's name.
        authorised_at: When it was last made sure that they may, on the loop's clock.
    """

    def __init__(
        self, service: Service, principal: Principal, run_id: str, after: int, trace: Trace, *, sight: Sight, first: bytes | None
    ) -> None:
        """Prepare a stream.

        Args:
            service: The API's parts.
            principal: Who reads; authorised just now.
            run_id: What is read.
            after: The accepted cursor.
            trace: The connection's record; the stream ends it.
            sight: What they are shown of events about something else than the run.
            first: A frame to begin with.
        """
        self.principal, self.run_id = principal, run_id
        self._service, self._after, self._trace, self._first = service, after, trace, first
        self._sight = sight
        self._held: Slice | None = None
        self._clock = asyncio.get_running_loop().time
        now = self._clock()
        self.authorised_at = self._wrote_at = self._seen_at = self._moved_at = now
        settings = service.settings
        self._ends_at = now + settings.stream_lifetime * random.uniform(0.8, 1.0)
        rest = left(principal)
        self._access_ends_at = math.inf if rest is None else now + rest
        # A little early, since the sweep comes by only now and then; spread out, since viewers that came together would else be written
        # to together for ever.
        self._quiet = (settings.keepalive - service.streams.tick) * random.uniform(0.8, 0.95)
        self._stall = settings.write_timeout
        self._wrote = False
        self._taken = self._counted = 0
        self._abort_at = 0.0
        self._reason: str | None = None
        self._gone: asyncio.Future[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._wire: Wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream."""
        wire = wire_of(scope)
        if wire is None:
            raise InternalError("event streams need the server of reattach.http.server under the application")
        self._wire = wire
        try:
            async with self._service.held.one(self.principal):
                self._service.streams.add(self)
                await self._serve(send)
        except ReattachError as e:
            self._trace.end(e.code)  # it did not begin; one that did has ended its trace
            raise
        except asyncio.CancelledError:
            self._trace.end("client_closed")
            raise

    async def _serve(self, send: Send) -> None:
        wire = self._wire
        try:
            wire.begin_stream(stall_timeout=self._stall + self._service.settings.keepalive)
            wire.on_lost(self._lost)
            await send({"type": "http.response.start", "status": 200, "headers": list(sse.HEADERS)})
            self._write(sse.opening() if self._first is None else sse.opening() + self._first)
            if await self._deliver():
                self._reason = self._reason or "terminal"
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await self._until_gone()
        finally:
            self._service.streams.discard(self)
            self._count()
            reason = self._reason or "client_closed"
            STREAMS_ENDED.labels(reason).inc()
            self._trace.end(reason)

    async def _deliver(self) -> bool:
        """Write what comes after the cursor; whether the run's last event was written, so that the body may be completed."""
        if self._wire.lost:
            return False  # before there was a task to cancel: nobody would ever end it
        self._following = asyncio.current_task()
        try:
            await deliver(self._service.hub, self.run_id, self._after, self)
            return self._reason is None and not self._wire.lost
        except StreamEnded as e:
            self.close(e.reason)
        except CursorExpired:
            # It was so slow that the log expired under it; its next connect is told, and where the snapshot is.
            self.close("slow_consumer")
        except ReattachError:
            self.close("unavailable")
        except asyncio.CancelledError:
            if not self._wire.lost:
                raise
        except Exception:
            _log.exception("stream.failed", run_id=self.run_id, connection_id=self._trace.connection_id)
            self.close("unavailable")
        finally:
            self._following = None
        return False

    def take(self, piece: Slice) -> bool:
        """Write events; whether the client can take more."""
        if self._reason is not None:
            return False
        if piece.scopes:
            shown = self._sight.of(piece)
            if shown is None:
                # Whoever decides has to be asked, which takes time; nothing comes behind it until then.
                self._held = piece
                return False
            piece = shown
        # As `_send` does it; a call less, once per viewer and event.
        trace = self._trace
        if piece.turns or trace.first_live_sequence is None:
            return self._send(piece)
        trace.delivered += len(piece.frames)
        trace.snapshot_version = piece.last
        self._wrote = True
        return self._wire.write(piece.sse)

    def _send(self, piece: Slice) -> bool:
        self._trace.saw(piece.first, piece.last, len(piece.frames), piece.turns)
        self._wrote = True
        return self._wire.write(piece.sse)

    async def drained(self) -> None:
        """Write what was held back, and wait until the client has caught up; for ever once the stream is ending: nothing follows."""
        if (held := self._held) is not None:
            shown = await self._sight.ask(held)
            self._held = None
            if self._reason is None:
                self._send(shown)
        await self._wire.drain()
        if self._reason is not None:
            await self._until_gone()

    def _write(self, data: bytes) -> None:
        self._wire.write(data)
        self._wrote = True

    def close(self, reason: str) -> None:
        """Say why the stream ends, then cut it. Only the first reason counts."""
        if self._reason is not None or self._wire.lost:
            return
        self._reason = reason
        self._write(sse.closing(reason))
        if self._wire.framed:
            self._wire.cut()
            self._abort_at = self._clock() + _LAST_WORDS
        else:
            # Without chunks the end of the connection is the end of the body; only a reset, a moment later, tells it from a complete one.
            self._abort_at = self._clock() + _UNFRAMED_LAST_WORDS

    def tick(self, now: float) -> None:
        """The sweep comes by."""
        self._count()
        if self._wrote:
            # Noted here rather than at every write, as not before the last time the sweep came by: rather too early a keep-alive.
            self._wrote, self._wrote_at = False, self._seen_at
        self._seen_at = now
        if self._reason == "terminal" and now < self._moved_at + self._stall:
            self._watch_backlog(now)
        elif self._reason is not None:
            if now >= self._abort_at:
                self._wire.abort()
        elif (reason := self._service.hub.closing) is not None:
            self.close(reason)
        elif now >= self._access_ends_at:
            self.close("unauthorized")
        elif now >= self._ends_at:
            self.close("lifetime")
        elif self._stalled(now):
            self.close("slow_consumer")
        elif now - self._wrote_at >= self._quiet and not self._wire.paused:
            self._write(sse.KEEPALIVE)

    def _stalled(self, now: float) -> bool:
        self._watch_backlog(now)
        return now - self._moved_at >= self._stall

    def _watch_backlog(self, now: float) -> None:
        taken = self._wire.taken
        if taken > self._taken or self._wire.backlog == 0:
            self._taken, self._moved_at = taken, now

    def _count(self) -> None:
        # Here rather than at every write: a metric has a lock.
        DELIVERED.labels("sse").inc(self._trace.delivered - self._counted)
        self._counted = self._trace.delivered

    async def _until_gone(self) -> None:
        if not self._wire.lost:
            self._gone = asyncio.get_running_loop().create_future()
            await self._gone

    def _lost(self) -> None:
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._following is not None:
            self._following.cancel()
