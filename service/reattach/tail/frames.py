"""Events as their bytes on the wire, made once per process and shared by every viewer.

All that is constant for a run and a type is prepared once, so that a frame is one concatenation: no JSON is encoded per event, and a
payload goes through byte for byte. Run ids and types need no escaping, their alphabets are closed; a payload is one line since it was
accepted.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ..core.event import RESERVED_PREFIXES, TERMINAL_TYPES, Event
from ..core.times import rfc3339

REDACTED: Final = b'{"redacted":true}'
"""What stands in for a payload that a viewer may not read."""

_MOST_TYPES: Final = 256
_MOST_REDACTIONS: Final = 8
_NO_SCOPES: Final[frozenset[str]] = frozenset()


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event, encoded.

    Attributes:
        sequence: The event's.
        type: The event's.
        scope: Its own `resource_scope`; None where it is the run's. In a session: the run's id and, behind a blank, that.
        sse: The whole frame of an event stream, with the blank line that ends it.
        data_at: Where in `sse` the event's JSON begins.
        payload_at: Where in `sse` its payload begins.
    """

    sequence: int
    type: str
    scope: str | None
    sse: bytes
    data_at: int
    payload_at: int

    @property
    def data(self) -> bytes:
        """The event's JSON, one line."""
        return self.sse[self.data_at : -2]

    @property
    def terminal(self) -> bool:
        """Whether this event ends its run."""
        return self.type in TERMINAL_TYPES

    def redacted(self) -> "Frame":
        """The same event for a viewer that may not read its payload: same sequence, same id."""
        sse = b"%b%b}\n\n" % (self.sse[: self.payload_at], REDACTED)
        return Frame(self.sequence, self.type, self.scope, sse, self.data_at, self.payload_at)


class Framer:
    """Encodes the events of one run."""

    __slots__ = ("_at", "_first", "_id", "_release", "_run_scope", "_scope", "_types", "_when")

    def __init__(self, *, run_id: str, release_id: str, scope: str) -> None:
        """Prepare what is constant for the run.

        Args:
            run_id: The run's.
            release_id: The run's.
            scope: The run's `resource_scope`, sent with every event that has none of its own.
        """
        self._id = run_id.encode()
        self._first = b"id: %b:" % self._id
        self._release = msgspec.json.encode(release_id)
        self._run_scope, self._scope = scope, msgspec.json.encode(scope)
        self._types: dict[str, tuple[bytes, bytes, bytes]] = {}
        self._at, self._when = -1, b""

    def frame(self, event: Event) -> Frame:
        """Encode one event, its fields in the contract's order."""
        before, between, behind = self._types.get(event.type) or self._prepare(event.type)
        if event.at != self._at:
            # Events of one batch share their time, and batches come in order: the last one is the one to keep.
            self._at, self._when = event.at, self._time(event.at, self._scope)
        scope = None if event.scope == self._run_scope else event.scope
        when = self._when if scope is None else self._time(event.at, msgspec.json.encode(scope))
        number = event.sequence
        sse = b"%b%d%b%d%b%d%b%b%b}\n\n" % (self._first, number, before, number, between, number, behind, when, event.payload)
        return Frame(number, event.type, scope, sse, sse.index(b"\ndata: ") + 7, len(sse) - 3 - len(event.payload))

    def _prepare(self, kind: str) -> tuple[bytes, bytes, bytes]:
        name = kind.encode()
        parts = (
            b'\nevent: %b\ndata: {"run_id":"%b","sequence":' % (name, self._id),
            b',"event_id":"%b:' % self._id,
            b'","release_id":%b,"type":"%b","occurred_at":"' % (self._release, name),
        )
        if len(self._types) < _MOST_TYPES:
            self._types[kind] = parts
        return parts

    @staticmethod
    def _time(at: int, scope: bytes) -> bytes:
        return b'%b","resource_scope":%b,"payload":' % (rfc3339(at).encode(), scope)


class Slice:
    """What comes next for a viewer, in one piece.

    Attributes:
        first: Sequence of the first event.
        last: Sequence of the last one; the viewer's next position.
        frames: The events. At least one.
        scopes: What those among them are about that are about something else than their run.
        sse: All frames as one piece of an event stream.
        turns: Types of those of its events that only the store writes, in order: what can change the run's state.
        terminal: Whether the last one ends the run.
        sparse: Sequences are missing between the viewer's position and `last`. `follow` lets such a slice through only where the log's
            head is gone and the audit stream still has all that a fold needs.
    """

    __slots__ = ("_redacted", "first", "frames", "last", "scopes", "sparse", "sse", "terminal", "turns")

    def __init__(self, frames: Sequence[Frame], position: int) -> None:
        """Take over frames in order, at least one, all behind `position`."""
        self.frames = frames
        self.first, self.last = frames[0].sequence, frames[-1].sequence
        self.terminal = frames[-1].terminal
        self.sparse = self.last - position != len(frames)
        # All of this here, once, however many viewers are at this place: each of them asks for it.
        self.sse = frames[0].sse if len(frames) == 1 else b"".join([f.sse for f in frames])
        self.turns = tuple([f.type for f in frames if f.type.startswith(RESERVED_PREFIXES)])
        self.scopes = _NO_SCOPES if all([f.scope is None for f in frames]) else frozenset([f.scope for f in frames if f.scope is not None])
        self._redacted: dict[frozenset[str], Slice] | None = None

    def without(self, hidden: frozenset[str]) -> "Slice":
        """The same events for a viewer that may not read what is about `hidden`; made once for all viewers that may not."""
        hidden = hidden & self.scopes
        if not hidden:
            return self
        known = self._redacted = {} if self._redacted is None or len(self._redacted) >= _MOST_REDACTIONS else self._redacted
        found = known.get(hidden)
        if found is None:
            found = known[hidden] = Slice([f.redacted() if f.scope in hidden else f for f in self.frames], self.last - len(self.frames))
            found.sparse = self.sparse
        return found

    def last_gap(self, position: int) -> int:
        """Sequence behind the last hole between `position` and `last`; 0 where there is none."""
        expected = self.last
        for frame in reversed(self.frames):
            if frame.sequence != expected:
                break
            expected -= 1
        return 0 if expected == position else expected + 1

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"Slice({self.first}…{self.last}{', terminal' if self.terminal else ''}{', sparse' if self.sparse else ''})"
