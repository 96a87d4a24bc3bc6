"""What is followed: a run through its log, or a session through the logs of its runs. Order, rings and pages do not know which."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ..core.cursor import judge
from ..core.errors import RunNotFound
from ..core.event import Event
from ..core.ids import is_session_name
from ..store import Store
from .ended import StreamEnded
from .frames import Frame, Framer, Slice
from .session import SessionSource


class Source(Protocol):
    """Where frames come from.

    Attributes:
        name: The run's id, or the session's name.
        ends: Whether a terminal event is the last one.
    """

    name: str
    ends: bool

    async def load(self) -> tuple[int, bool]:
        """The newest sequence, and whether nothing comes after it. Must be called before frames are asked for.

        Raises:
            NotFound: There is no such thing.
            StoreUnavailable: The store cannot be reached.
        """
        ...

    async def after(self, position: int, limit: int) -> Sequence[Frame]:
        """The next frames behind a position; some may be missing.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """
        ...

    async def judge(self, position: int) -> None:
        """Say what is wrong with a position, if anything is.

        Raises:
            NotFound: There is no such thing.
            FutureCursor: It is ahead of the newest sequence.
            CursorExpired: Events behind it that a fold needs are gone.
            StoreUnavailable: The store cannot be reached.
        """
        ...

    async def judge_hole(self, position: int, found: Slice | None) -> None:
        """Let a hole pass only where it is what retention promises: covered deltas of a log whose head is gone.

        Raises:
            CursorExpired: Something else is missing.
            StreamEnded: The store has less than this viewer was shown: it came back without what it had.
            StoreUnavailable: The store cannot be reached.
        """
        ...


class RunSource:
    """One run."""

    __slots__ = ("_framer", "_store", "name")
    ends = True

    def __init__(self, store: Store, run_id: str) -> None:
        """Nothing is read yet."""
        self.name, self._store = run_id, store
        self._framer: Framer | None = None

    async def load(self) -> tuple[int, bool]:
        """See `Source`."""
        record = (await self._store.runs.read(self.name)).record
        self._framer = Framer(run_id=record.run_id, release_id=record.release_id, scope=record.resource_scope)
        return record.sequence, record.terminal

    def encode(self, events: Sequence[Event]) -> list[Frame]:
        """Encode events of this run."""
        assert self._framer is not None
        return [self._framer.frame(event) for event in events]

    async def after(self, position: int, limit: int) -> Sequence[Frame]:
        """See `Source`."""
        return self.encode(await self._store.events.after(self.name, position, limit))

    async def judge(self, position: int) -> None:
        """See `Source`."""
        judge(position, (await self._store.runs.read(self.name)).bounds, run_id=self.name)

    async def judge_hole(self, position: int, found: Slice | None) -> None:
        """See `Source`."""
        try:
            read = await self._store.runs.read(self.name)
        except RunNotFound:
            raise StreamEnded("unavailable") from None
        bounds = read.bounds
        if bounds.sequence < position or (found is None and bounds.sequence == position):
            raise StreamEnded("unavailable")
        judge(position, bounds, run_id=self.name)
        # What the log still holds it holds completely; a hole at or behind its head is damage, and only a snapshot leads past it.
        if found is None:
            hole_ends = bounds.sequence + 1
        elif read.log_first is not None and read.log_first < found.last_gap(position):
            hole_ends = found.last_gap(position)
        else:
            return
        judge(position, msgspec.structs.replace(bounds, earliest_sequence=hole_ends), run_id=self.name)


def source_of(store: Store, name: str) -> Source:
    """What a run's id or a session's name stands for."""
    return SessionSource(store, name) if is_session_name(name) else RunSource(store, name)
