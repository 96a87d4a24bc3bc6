"""One run, or one session, as this process follows it: its ring, who waits for news, and how many follow."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from ..store.events import READ_BYTES
from .frames import Frame, Slice
from .ring import Ring
from .source import Source

_log = structlog.get_logger("reattach.tail")


class Listener(Protocol):
    """Who is handed news without a task of its own.

    Attributes:
        position: The last sequence it has.
    """

    position: int

    def news(self, piece: Slice | None, edge: int) -> None:
        """Take what comes next; must not block.

        Args:
            piece: What comes behind `position`. None: nothing that is in memory, but look whether you can go on.
            edge: Where whoever has everything is; -1 once nothing comes any more.
        """
        ...


_FIRST_SPAN: Final = 64
_MOST_SPAN: Final = 256
_LARGE_PAGE: Final = 1024 * 1024
_SMALL_PAGE: Final = 256 * 1024


class Followed:
    """A run or a session that somebody in this process follows, or did until a moment ago.

    A viewer is a position. It asks `slice` for what comes next, reads pages through the hub when it is older than the
    ring, and is told of news by a listener or by `wait`. Nothing here grows with what a viewer has not taken yet.

    Attributes:
        run_id: The run, or the session's name.
        source: Where its frames come from.
        count: Followers that joined and have not left.
        ready: Whether it was found out where it stands.
        terminal: Whether the event at `last` ends the run.
        loading: The read of the record, while it is under way.
        failure: Why that read failed.
        rang: News came while it was under way.
        linger: The timer that forgets this run after its last follower left.
        ended: Why its streams end though the run goes on; None while they go on.
        span: Events per page of this run, so that a page is neither tiny nor huge.
    """

    __slots__ = (
        "_listeners", "_waiters", "count", "ended", "failure", "linger", "loading", "rang", "ready", "ring", "run_id", "source", "span",
        "terminal",
    )  # fmt: skip

    def __init__(self, source: Source) -> None:
        """Not yet ready: `begin` makes it so."""
        self.run_id, self.source = source.name, source
        self.ready = False
        self.count = 0
        self.terminal = False
        self.loading: asyncio.Task[None] | None = None
        self.failure: Exception | None = None
        self.rang = False
        self.ended: str | None = None
        self.linger: asyncio.TimerHandle | None = None
        self.span = _FIRST_SPAN
        self.ring = Ring(0, 0)
        self._waiters: set[asyncio.Future[None]] = set()
        self._listeners: dict[Listener, None] = {}

    def begin(self, *, last: int, terminal: bool, limit: int, largest: int) -> None:
        """Stand at the run's newest event; older ones come from pages.

        Args:
            last: The newest event's sequence.
            terminal: Whether it ends the run.
            limit: Most bytes the ring keeps.
            largest: Largest payload an event may have; a first page of such events fits into one read.
        """
        self.span = min(_FIRST_SPAN, max(1, READ_BYTES // largest))
        self.ready, self.ring, self.terminal = True, Ring(last, limit), terminal

    @property
    def last(self) -> int:
        """Sequence of the newest event this process knows."""
        return self.ring.last

    def take(self, frames: Sequence[Frame]) -> bool:
        """Add what was read from the log, in order and without holes; whether anything was new.

        Two reads may overlap (one asked by a bell, one by a follower that just joined): what is known already is passed over, or the ring
        would hold an event twice and every position behind it would be off by one.
        """
        fresh = frames[max(0, self.last + 1 - frames[0].sequence) :]
        if not fresh:
            return False
        self.ring.extend(fresh)
        self.terminal = self.source.ends and fresh[-1].terminal
        self.wake()
        return True

    def jump(self, last: int, *, terminal: bool) -> None:
        """Stand at a later event without those before it: viewers look for them in the store."""
        self.ring.clear(last)
        self.terminal = terminal
        self.wake()

    def slice(self, position: int) -> Slice | None:
        """What comes after a position, from memory; None when there is nothing yet, or the viewer is `behind` the ring."""
        return self.ring.slice(position)

    def behind(self, position: int) -> bool:
        """Whether a viewer is older than the ring, so that only the store has what comes next for it."""
        return position < self.ring.base

    def listen(self, listener: Listener) -> None:
        """Hand on whatever comes, or tell that the hub ends its streams, until `unlisten`."""
        self._listeners[listener] = None

    def unlisten(self, listener: Listener) -> None:
        """Stop handing on."""
        self._listeners.pop(listener, None)

    async def wait(self, timeout: float | None = None) -> None:
        """Wait for the next wake-up. No await may lie between finding nothing new and calling this, or the news between them is missed.

        Raises:
            TimeoutError: Nothing happened for `timeout` seconds.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            if timeout is None:
                await waiter
            else:
                async with asyncio.timeout(timeout):
                    await waiter
        finally:
            self._waiters.discard(waiter)

    def wake(self) -> None:
        """Tell everybody who waits."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if not self._listeners:
            return
        ring, at = self.ring, -1
        piece, edge = None, -1 if self.terminal else ring.last
        for listener in list(self._listeners):
            if listener.position != at:
                # Looked up once for all that are at the same place, which at the edge is nearly everybody.
                at = listener.position
                piece = ring.slice(at)
            try:
                listener.news(piece, edge)
            except Exception:
                # One viewer's trouble (a transport that is closing refuses the write) must not keep the news from all the others.
                _log.exception("tail.listener_failed", run_id=self.run_id)

    def paged(self, count: int, size: int) -> None:
        """Learn from a page how many events the next ones should hold."""
        if size > _LARGE_PAGE:
            self.span = max(1, min(self.span, count // 4))
        elif size < _SMALL_PAGE and self.span < _MOST_SPAN and count >= self.span:
            self.span = min(_MOST_SPAN, self.span * 4)
