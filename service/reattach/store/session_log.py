"""The log of a session: which events of which run come where in it. The events themselves are in the logs of the runs."""

from typing import Any, Final

import msgspec

from .door import Door

_PAGE: Final = 500


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
