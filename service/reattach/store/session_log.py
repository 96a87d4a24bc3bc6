"""The log of a session: which events of which run come where in it. The events themselves are in the logs of the runs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..core.event import Event
from ..core.ids import shard_of
from .door import Door, all_of
from .events import Events
from .keys import Keys

_PAGE: Final = 500
_MOST: Final = 2000
_FIRST: Final = 16
_PIECE: Final = 128
"""Most events of one read, as in `events`."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One batch of one run: its events `first` … `last` are at `place - (last - first)` … `place` in the session."""

    place: int
    run_id: str
    first: int
    last: int
    at: int

    @property
    def before(self) -> int:
        """The place before its first event."""
        return self.place - (self.last - self.first) - 1


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the session."""

    place: int
    run_id: str
    event: Event


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's log has behind a place: the events, in order, and the place that was read up to.

    What is missing up to there is not kept any more: deltas that a later event covers, or everything of a run.
    """

    events: tuple[Placed, ...]
    last: int


def to_entry(raw: Any) -> Entry:
    """Read one stream entry; field order is the writer's."""
    fields = raw[1]
    return Entry(int(raw[0][:-2]), fields[1].decode(), int(fields[3]), int(fields[5]), int(fields[7]))


async def place_in(door: Door, log: str, run_id: str, sequence: int) -> int:
    """Where in a session an event of one of its runs is; 0 where its log does not say any more.

    Args:
        door: Where to ask.
        log: The session log's key.
        run_id: The run.
        sequence: The event's.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    top = "+"
    # From the end: it is asked for when the run has just ended.
    while raw := await door.call("XREVRANGE", log, top, "-", "COUNT", _PAGE):
        for entry in map(to_entry, raw):
            if entry.run_id == run_id and entry.first <= sequence <= entry.last:
                return entry.place - (entry.last - sequence)
        top = f"({raw[-1][0].decode()}"
    return 0


class SessionLog:
    """Reading sessions event by event."""

    def __init__(self, door: Door, keys: Keys, events: Events) -> None:
        """Bind to a door, a set of key names, and the logs of the runs."""
        self._door, self._keys, self._events = door, keys, events

    async def after(self, name: str, place: int, limit: int, *, most_bytes: int | None = None) -> Batch:
        """The next events behind a place, at most `limit`, which may leave some out that are not kept any more.

        Args:
            name: The session's name.
            place: The place.
            limit: Most events.
            most_bytes: Enough, once their payloads are as large as this; None: only `limit` counts.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        at, found, size = place, list[Placed](), 0
        count = _FIRST if most_bytes is not None else _PIECE
        while len(found) < limit and (most_bytes is None or size < most_bytes):
            # No more at a time than fits into memory many times over, however large events are.
            asked = min(count, limit - len(found)) if found else min(count, max(limit, _FIRST))
            raw = await self._door.call("XRANGE", self._keys.session_log(name), f"{at + 1}-0", "+", "COUNT", asked)
            if not raw:
                break
            batch = await self._read(map(to_entry, raw), at, asked)
            at = batch.last
            found += batch.events
            size += sum(len(placed.event.payload) for placed in batch.events)
            count = _PIECE if most_bytes is None or size < most_bytes // 64 else _FIRST
        return Batch(events=tuple(found[:limit]), last=at if len(found) <= limit else found[limit - 1].place)

    async def tail(self, places: Mapping[str, int], *, count: int) -> dict[str, Batch]:
        """What is new in many sessions. Those without news are absent.

        Args:
            places: Session's name → place behind which to read. Names must be valid.
            count: Most events of one session.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        groups: dict[str, list[str]] = {}
        for name in places:
            groups.setdefault(shard_of(name) if self._door.target.is_cluster else "", []).append(name)
        entries: dict[str, list[Entry]] = {}
        for group in groups.values():
            keys = {self._keys.session_log(name).encode(): name for name in group}
            reply = await self._door.call("XREAD", "COUNT", count, "STREAMS", *keys, *(f"{places[name]}-0" for name in group))
            for key, raw in reply or ():
                entries[keys[key]] = [to_entry(entry) for entry in raw]
        batches = await all_of(self._read(entries[name], places[name], count) for name in entries)
        return dict(zip(entries, batches, strict=True))

    async def ranges(self, name: str, place: int, last: int) -> list[Entry]:
        """What is written of the places behind `place`, up to `last`.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        found: list[Entry] = []
        at = place
        while at < last and (raw := await self._door.call("XRANGE", self._keys.session_log(name), f"{at + 1}-0", "+", "COUNT", _MOST)):
            found += _within(map(to_entry, raw), at, last)
            at = to_entry(raw[-1]).place
        return found

    async def _read(self, entries: Iterable[Entry], place: int, limit: int) -> Batch:
        """The events that some entries name, behind a place; the first `limit` places of them."""
        wanted = _within(entries, place, place + limit)
        # Events of one run are next to each other in its log, whatever other runs did in between.
        spans: dict[str, tuple[int, int]] = {}
        for entry in wanted:
            first, _ = spans.get(entry.run_id, (entry.first, 0))
            spans[entry.run_id] = first, entry.last
        logs = await all_of(self._events.after(run_id, first - 1, last - first + 1) for run_id, (first, last) in spans.items())
        known = {run_id: {event.sequence: event for event in log} for run_id, log in zip(spans, logs, strict=True)}
        found = [
            Placed(entry.before + 1 + number - entry.first, entry.run_id, event)
            for entry in wanted
            for number in range(entry.first, entry.last + 1)
            if (event := known[entry.run_id].get(number)) is not None
        ]
        return Batch(events=tuple(found), last=wanted[-1].place if wanted else place)


def _within(entries: Iterable[Entry], place: int, last: int) -> list[Entry]:
    """Entries cut down to the places behind `place`, up to `last`."""
    found: list[Entry] = []
    for e in entries:
        low, high = max(e.before, place), min(e.place, last)
        if low < high:
            found.append(Entry(high, e.run_id, e.first + low - e.before, e.last - (e.place - high), e.at))
    return found
