"""Snapshots: the fold of a run's log, from the nearest stored fold on.

The fold is always that of events 1 … `sequence` of the record it was read with; what is stored or kept in memory only makes it faster.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ..core.errors import InternalError, RunNotFound
from ..core.event import Event
from ..core.fold import Fold
from ..core.ids import is_run_id
from ..core.run import RunRecord, bounds
from ..core.snapshot import Snapshot
from .door import Door
from .keys import Keys
from .records import pairs, to_event, to_record
from .scripts import load_scripts
from .session_log import place_in

_PAGE: Final = 1000
_KEPT: Final = 256
_WORTH_STORING: Final = 500


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """A record, its fold at the record's sequence, and the lowest replayable sequence.

    `stored` says that this very fold is in the store as well.
    """

    record: RunRecord
    fold: Fold
    earliest_sequence: int
    stored: bool

    def view(self, hidden: frozenset[str] = frozenset()) -> Snapshot:
        """The snapshot for somebody who may not read these scopes."""
        return self.fold.view(self.record, earliest_sequence=self.earliest_sequence, hidden=hidden)


class Checkpoints:
    """Folds runs, stores folds, and lets a log's head go where a stored fold allows it."""

    def __init__(self, door: Door, keys: Keys, *, on_ended: Callable[[RunRecord], Awaitable[None]]) -> None:
        """Bind to a door and a set of key names.

        Args:
            door: The way to Redis.
            keys: How its keys are named.
            on_ended: Called for a run that has ended, at least once, before its last fold is stored.
        """
        self._door = door
        self._keys = keys
        self._on_ended = on_ended
        self._scripts = load_scripts()
        self._recent: OrderedDict[str, tuple[Fold, Event]] = OrderedDict()

    async def snapshot(self, run_id: str) -> Snapshot:
        """The snapshot at the run's latest sequence.

        Raises:
            RunNotFound: There is no such run.
            StoreUnavailable: Redis cannot be reached.
        """
        return (await self.fold(run_id)).view()

    async def fold(self, run_id: str) -> Folded:
        """Fold a run up to its latest sequence.

        Raises:
            RunNotFound: There is no such run.
            InternalError: Its log was deleted before it was folded.
            StoreUnavailable: Redis cannot be reached.
        """
        if not is_run_id(run_id):
            raise RunNotFound()
        # Taken out while it is advanced, so that two requests never advance one fold at once.
        fold, last = self._recent.pop(run_id, None) or (Fold(), None)
        read_from = fold.sequence
        while True:
            # The last event that was folded is read again: a store that came back without it (a restore, a failover that lost writes) may
            # have grown past it since, with another history.
            after = fold.sequence if last is None else last.sequence - 1
            reply = await self._door.run(self._scripts["read"], self._keys.of_run(run_id), after, _PAGE)
            if reply.word == "GONE":
                raise RunNotFound()
            record = to_record(pairs(reply.values[0]))
            events = [to_event(entry) for entry in reply.values[4]]
            if reply.values[3]:
                fold, last = Fold.load(reply.values[3]), None
                read_from = fold.sequence
            elif last is not None:
                if events[:1] != [last]:
                    fold, last, read_from = Fold(), None, 0
                    continue
                events = events[1:]
            for event in events:
                fold.apply(event)
                last = event
            if fold.sequence >= record.sequence:
                break
            if not reply.values[3] and not events:
                raise InternalError("this run's log was lost: events between its last stored fold and its record are gone")
        first = bounds(record, log_first=reply.integer(1) or None, audit_first=reply.integer(2) or None)
        stored = fold.sequence - read_from >= _WORTH_STORING or (record.terminal and not record.sealed)
        if record.terminal and not record.sealed:
            await self._on_ended(record)
        if stored:
            await self.store(record.run_id, fold)
        if last is not None:
            self._remember(run_id, fold, last)
        return Folded(record=record, fold=fold, earliest_sequence=first.earliest_sequence, stored=stored)

    def _remember(self, run_id: str, fold: Fold, last: Event) -> None:
        known, _ = self._recent.get(run_id) or (None, None)
        if known is None or known.sequence < fold.sequence:
            self._recent[run_id] = fold, last
            self._recent.move_to_end(run_id)
        while len(self._recent) > _KEPT:
            self._recent.popitem(last=False)

    async def store(self, run_id: str, fold: Fold) -> None:
        """Store a fold; the one at the end of an ended run seals it, and its deltas may go after their time.

        Raises:
            StoreUnavailable: Redis cannot be reached; the same fold may be stored again.
        """
        session, place = await self._place(run_id, fold.floor - 1) if fold.ended and fold.floor > 1 else (None, 0)
        keys = self._keys.of_run(run_id, session=session)
        await self._door.run(self._scripts["checkpoint"], keys, run_id, fold.sequence, fold.covered, fold.floor, fold.dump(), place)

    async def _place(self, run_id: str, sequence: int) -> tuple[str | None, int]:
        """The run's session, and where in it this event is: nothing up to there can be replayed once the run's deltas are gone."""
        session = await self._door.call("HGET", self._keys.run(run_id), "session")
        if session is None:
            return None, 0
        name = session.decode()
        return name, await place_in(self._door, self._keys.session_log(name), run_id, sequence)

    async def trim(self, run_id: str, through: int) -> int:
        """Forget a live log's head up to a sequence that a stored fold covers; the first sequence that is left.

        More than what is covered is never forgotten: `through` is then lowered to it.

        Raises:
            RunNotFound: There is no such run.
            StoreUnavailable: Redis cannot be reached.
        """
        keys = self._keys.of_run(run_id)
        reply = await self._door.run(self._scripts["trim"], keys, through)
        if reply.word == "UNCOVERED":
            reply = await self._door.run(self._scripts["trim"], keys, reply.integer(0))
        if reply.word == "GONE":
            raise RunNotFound()
        return reply.integer(0)
