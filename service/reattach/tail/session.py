"""A session as something to follow: events of all its runs, in the order in which they were written, under the session's own numbers.

A frame is the run's own frame with another id line. What it is about, for whoever decides who may see it, is the run and the scope.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ..core.cursor import LogBounds, judge
from ..core.errors import RunNotFound, SessionNotFound
from ..core.session import session_bounds, session_path
from ..store import Batch, Placed, Store
from .ended import StreamEnded
from .frames import Frame, Framer, Slice

_KEPT: Final = 256
"""Runs whose constants are remembered."""


class SessionSource:
    """One session; see `source.Source`."""

    __slots__ = ("_first", "_framers", "_path", "_store", "name")
    ends = False

    def __init__(self, store: Store, name: str) -> None:
        """Nothing is read yet."""
        self.name, self._store = name, store
        self._first = b"id: %b:" % name.encode()
        self._framers: OrderedDict[str, Framer] = OrderedDict()
        self._path = ""

    async def load(self) -> tuple[int, bool]:
        """See `Source`. A session never ends by itself."""
        return (await self._bounds()).sequence, False

    async def after(self, position: int, limit: int) -> Sequence[Frame]:
        """See `Source`."""
        return await self._encode((await self._store.session_log.after(self.name, position, limit)).events)

    async def fresh(self, batch: Batch) -> list[Frame]:
        """The newest events of a batch, without a hole: those before a hole are for who reads pages."""
        frames = await self._encode(batch.events)
        expected = batch.last
        for at in range(len(frames) - 1, -1, -1):
            if frames[at].sequence != expected:
                return frames[at + 1 :]
            expected -= 1
        return frames

    async def judge(self, position: int) -> None:
        """See `Source`."""
        self._judge(position, await self._bounds())

    async def judge_hole(self, position: int, found: Slice | None) -> None:
        """See `Source`."""
        try:
            bounds = await self._bounds()
        except SessionNotFound:
            raise StreamEnded("unavailable") from None
        if bounds.sequence < position or (found is None and bounds.sequence == position):
            raise StreamEnded("unavailable")
        self._judge(position, bounds)
        damaged = bounds.sequence if found is None else await self._damaged(position, found)
        if damaged:
            self._judge(position, msgspec.structs.replace(bounds, earliest_sequence=damaged + 1))

    def _judge(self, position: int, bounds: LogBounds) -> None:
        judge(position, bounds, run_id=self.name, snapshot=self._path)

    async def _bounds(self) -> LogBounds:
        record = await self._store.sessions.load(self.name)
        self._path = session_path(record.session_id)
        return session_bounds(record)

    async def _damaged(self, position: int, found: Slice) -> int:
        """The last place in a hole whose event should still be there; 0 where there is none."""
        present = {frame.sequence for frame in found.frames}
        damaged, known = 0, position
        heads: dict[str, int] = {}
        for entry in await self._store.session_log.ranges(self.name, position, found.last):
            if entry.before > known:
                damaged = entry.before  # the session's own log has a hole
            known = entry.place
            for number in range(entry.first, entry.last + 1):
                place = entry.before + 1 + number - entry.first
                if place in present:
                    continue
                if entry.run_id not in heads:
                    heads[entry.run_id] = await self._head(entry.run_id)
                if number >= heads[entry.run_id] > 0:
                    damaged = place
        return damaged

    async def _head(self, run_id: str) -> int:
        """First event in a run's log, which is complete from there on; 0 where the log is gone."""
        try:
            return (await self._store.runs.read(run_id)).log_first or 0
        except RunNotFound:
            return 0

    async def _encode(self, events: Iterable[Placed]) -> list[Frame]:
        events = list(events)
        await self._learn({placed.run_id for placed in events})
        frames: list[Frame] = []
        for placed in events:
            framer = self._framers.get(placed.run_id)
            if framer is None:
                continue  # its record expired a moment ago: its events count as gone
            frame = framer.frame(placed.event)
            head = b"%b%d" % (self._first, placed.place)
            cut = frame.sse.index(b"\n")
            moved = len(head) - cut
            frames.append(
                Frame(
                    placed.place,
                    frame.type,
                    f"{placed.run_id} {frame.scope or ''}",
                    head + frame.sse[cut:],
                    frame.data_at + moved,
                    frame.payload_at + moved,
                )
            )
        return frames

    async def _learn(self, run_ids: set[str]) -> None:
        for run_id in run_ids - self._framers.keys():
            try:
                record = await self._store.runs.load(run_id)
            except RunNotFound:
                continue
            self._framers[run_id] = Framer(run_id=run_id, release_id=record.release_id, scope=record.resource_scope)
        for run_id in run_ids & self._framers.keys():
            self._framers.move_to_end(run_id)
        while len(self._framers) > max(_KEPT, len(run_ids)):
            self._framers.popitem(last=False)
