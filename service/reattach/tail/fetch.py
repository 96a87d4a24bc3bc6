"""From hints to frames: one read of the runs that rang, for all of them together, paced by how much there is to do."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from ..core.errors import NotFound, StoreUnavailable
from ..store import Ring, Store
from ..store.events import READ_BYTES
from .followed import Followed
from .frames import Frame
from .news import News
from .pace import Pace
from .pages import Pages
from .patience import Patience
from .roster import Roster

_log = structlog.get_logger("reattach.tail")

_CHUNK: Final = 500
_MOST_EVENTS: Final = 1000
_CHUNK_EVENTS: Final = 8000
_AT_ONCE: Final = 500
_LEAST_MEAN: Final = READ_BYTES // _CHUNK_EVENTS


class Fetch:
    """Keeps the rings of a roster up to date.

    A hint is never data: it may be lost, late or doubled, and that costs time only, because every followed run is read again now and then
    (`mark_all`) and whenever hints may have been missed.

    One read asks for as many events as fit into `READ_BYTES` when they are as large as lately. After a start or an outage, when much may
    have piled up of which nothing is known, it asks for as many as fit when each is as large as an event may be, and for more with every
    turn.
    """

    def __init__(self, store: Store, roster: Roster, pages: Pages, patience: Patience) -> None:
        """Bind to the parts of a hub."""
        self._news = News(store)
        self._roster, self._pages, self._patience = roster, pages, patience
        self._dirty: dict[str, None] = {}
        self._rung = asyncio.Event()
        self._doubt = False
        self._pace = Pace()
        self._largest = store.settings.max_payload
        self._mean = self._largest

    def rang(self, ring: Ring) -> None:
        """Take hints."""
        if ring.everything:
            self._doubt = True
            self.mark_all()
            self._rung.set()
        for run_id in ring.runs:
            followed = self._roster.get(run_id)
            if followed is not None:
                self.mark(followed)

    def mark(self, followed: Followed) -> None:
        """Read this run in the next turn. One whose record is still being read is marked again when it is there."""
        if not followed.ready:
            followed.rang = True
        elif not followed.terminal:
            self._dirty[followed.run_id] = None
            self._rung.set()

    def mark_all(self) -> None:
        """Read every followed run in the next turn."""
        for followed in self._roster:
            self.mark(followed)

    async def ready(self) -> None:
        """Wait until a new hint could be acted on; hints that come meanwhile are then taken in one read."""
        await self._pace.free()

    async def run(self) -> None:
        """Fetch until cancelled."""
        failures = 0
        while True:
            await self._rung.wait()
            async with self._pace:
                self._rung.clear()
                failed = not await self._turn()
            if failed:
                failures += 1
                await asyncio.sleep(random.uniform(0.5, 1) * min(1.0, 0.02 * 2**failures))
            else:
                failures = 0

    async def _turn(self) -> bool:
        dirty, self._dirty = list(self._dirty), {}
        doubt, self._doubt = self._doubt, False
        try:
            if doubt:
                self._mean = self._largest
                await self._reassure()
            await self._read(dirty)
        except StoreUnavailable:
            self._doubt = True
            self._dirty = dict.fromkeys([*dirty, *self._dirty])
            self._rung.set()
            self._patience.ill("reads")
            return False
        self._patience.well("reads")
        return True

    async def _read(self, dirty: Sequence[str]) -> None:
        start = 0
        while start < len(dirty):
            most = max(1, READ_BYTES // self._mean)
            part, start = dirty[start : start + min(_CHUNK, most)], start + min(_CHUNK, most)
            chunk = [f for f in map(self._roster.get, part) if f is not None and f.ready and not f.terminal]
            if not chunk:
                continue
            count = min(_MOST_EVENTS, most // len(chunk))
            positions = {f: f.last for f in chunk}
            found = await self._news.read(positions, count=count)
            self._learn(found.values())
            encoded = 0
            for followed in chunk:
                frames = found.get(followed) or ()
                if frames:
                    followed.take(frames)
                # Counted by sequence: of a session's events some may be gone already.
                if followed.last - positions[followed] >= count:
                    self.mark(followed)
                encoded += len(frames)
                if encoded >= _AT_ONCE:
                    # After an outage thousands of runs may have a thousand events each: viewers of the first ones are not kept waiting.
                    encoded = 0
                    await asyncio.sleep(0)

    def _learn(self, found: Iterable[Sequence[Frame]]) -> None:
        """How large events are just now; forgotten by half with every read, so that one large one does not slow all that follow."""
        count = size = 0
        for frames in found:
            count += len(frames)
            size += sum(len(frame.sse) for frame in frames)
        self._mean = max(_LEAST_MEAN, self._mean // 2, size // max(count, 1))

    async def _reassure(self) -> None:
        """Hints or reads were lost: the store may have been restored, failed over to an older state, or have let go of whole logs.

        A viewer whose past is no longer the run's past would be handed a future that does not follow from it. Its stream ends instead,
        and when it comes back it is told what became of its cursor.
        """
        self._pages.forget()
        self._roster.forget_idle()
        ready = [f for f in self._roster if f.ready]
        most = max(1, min(_CHUNK, READ_BYTES // self._largest))
        for start in range(0, len(ready), most):
            chunk = ready[start : start + most]
            found = await self._news.read({f: f.last - 1 for f in chunk}, count=1)
            for followed in chunk:
                if not await self._continues(followed, found.get(followed)):
                    _log.warning("tail.history_changed", run_id=followed.run_id, last=followed.last)
                    followed.ended = "unavailable"
                    self._roster.forget(followed)
                    followed.wake()

    async def _continues(self, followed: Followed, frames: Sequence[Frame] | None) -> bool:
        """Whether the run's log still has the newest event we know, as we know it, or had it and let it go."""
        if frames and frames[0].sequence == followed.last:
            newest = followed.ring.newest
            return newest is None or frames[0].sse == newest.sse
        if frames:
            return True
        try:
            last, terminal = await followed.source.load()
        except NotFound:
            return False
        if last > followed.last:
            # The whole log went while we were away, so no read of it will ever tell: what is missing is in the audit stream, if anywhere.
            followed.jump(last, terminal=terminal)
        return last >= followed.last
