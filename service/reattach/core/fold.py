"""The fold: a run at one sequence is what its events 1 … that sequence say, and nothing else (contract, section 9).

It is pure, so it can be checked, stored at any point and continued, and written again in another language: ``tests/vectors`` binds them.
"""

from typing import Final

import msgspec
from msgspec import Raw

from .calls import Call, Calls
from .event import Event
from .lifecycle import Lifecycle
from .projections import given
from .rules import RULES, Parts
from .run import RunRecord, links, when
from .scoped import Scoped
from .snapshot import Message, Snapshot
from .times import rfc3339
from .transcript import Entry, Transcript


class _Stored(msgspec.Struct, kw_only=True, omit_defaults=True):
    sequence: int = 0
    last_activity_at: int | None = None
    run: Lifecycle
    messages: list[Entry] = msgspec.field(default_factory=list[Entry])
    tools: list[Call] = msgspec.field(default_factory=list[Call])
    resources: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    scoped: Scoped = msgspec.field(default_factory=Scoped)


_decoder: Final = msgspec.json.Decoder(_Stored)


class Fold:
    """What a run's events say so far. Mutable; events are applied in order.

    Attributes:
        sequence: Of the last event that was applied; 0 before the first.
    """

    def __init__(self) -> None:
        """Begin before the first event."""
        self.sequence = 0
        self._last_activity_at: int | None = None
        self._parts = Parts(run=Lifecycle(), messages=Transcript(), tools=Calls())
        self._scoped = Scoped()

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the events about something else than the run that its snapshot has content of."""
        return self._scoped.scopes

    @property
    def covered(self) -> int:
        """The log may be forgotten up to here: the text of every delta in it is carried by a later checkpoint or completion.

        The latest event always stays, so that every replay ends at the run's sequence, whatever its class.
        """
        needed = self._parts.messages.first_needed or self.sequence
        return max(needed - 1, 0)

    @property
    def floor(self) -> int:
        """The lowest sequence from which a replay still folds to this once all delta-class events are gone."""
        return self._parts.messages.last_needed + 1

    def messages(self) -> tuple[Message, ...]:
        """The messages as a snapshot shows them."""
        return self._parts.messages.view()

    def scopes_of(self, message_id: str) -> tuple[str, ...]:
        """The scopes of their own that events of a message had."""
        return tuple(self._scoped.message.get(message_id, ()))

    def uncovered(self, through: int) -> list[Entry]:
        """Messages with a delta up to a sequence that no later event carries. They are the fold's own: not to be changed."""
        return self._parts.messages.uncovered(through)

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self._parts.run.finished_at is not None

    def apply(self, event: Event) -> None:
        """Fold one more event. Sequences may be left out where `covered` or `floor` allowed it.

        A type that is not projected, and a payload that does not fit its type, change nothing but `sequence` and the time of the last
        activity.

        Raises:
            ValueError: Its sequence is not above the last one.
        """
        if event.sequence <= self.sequence:
            raise ValueError(f"event {event.sequence} cannot be folded after {self.sequence}")
        rule = RULES.get(event.type)
        if rule is not None:
            rule(self._parts, event)
            if event.scope is not None:
                self._scoped.note(event)
        self.sequence = event.sequence
        self._last_activity_at = event.at

    def view(self, record: RunRecord, *, earliest_sequence: int, hidden: frozenset[str] = frozenset()) -> Snapshot:
        """The snapshot: the record's constants, and everything else from the events.

        Args:
            record: The run's record, of any sequence.
            earliest_sequence: The lowest replayable sequence, see `core.run.bounds`.
            hidden: Scopes that whoever it is for may not read: nothing that events about them had a part in is shown.
        """
        shows = self._scoped.shows
        run, tools, ended = self._parts.run, self._parts.tools, self._parts.run.finished_at
        return Snapshot(
            run_id=record.run_id,
            tenant=record.tenant,
            initiator=record.initiator,
            session_id=record.session_id,
            parent_run_id=record.parent_run_id,
            agent=record.agent,
            resource_scope=record.resource_scope,
            release_id=record.release_id,
            model_policy=record.model_policy,
            tool_catalog=record.tool_catalog,
            input_version=record.input_version,
            input=Raw(record.input),
            metadata=Raw(record.metadata),
            state=run.state,
            attempt=run.attempt,
            sequence=self.sequence,
            earliest_sequence=earliest_sequence,
            cancel=run.cancel,
            waiting=run.waiting,
            outcome=given(run.outcome),
            error=given(run.error),
            created_at=rfc3339(record.created_at if run.created_at is None else run.created_at),
            started_at=when(run.started_at),
            last_activity_at=rfc3339(record.last_activity_at if self._last_activity_at is None else self._last_activity_at),
            finished_at=when(ended),
            events_expire_at=None if ended is None else when(ended + record.retention.events_ms),
            expires_at=None if ended is None else when(ended + record.retention.run_ms),
            messages=tuple(m for m in self._parts.messages.view() if not hidden or shows("message", m.message_id, hidden)),
            tools=tuple(t for t in tools.view() if not hidden or shows("tool", t.tool_call_id, hidden)),
            resources={name: v for name, v in tools.resources.items() if not hidden or shows("resource", name, hidden)},
            unresolved=tuple(u for u in tools.unresolved() if not hidden or shows("tool", u.tool_call_id, hidden)),
            links=links(record.run_id),
        )

    def dump(self) -> bytes:
        """The fold as JSON that an operator can read, and from which `load` continues."""
        stored = _Stored(
            sequence=self.sequence,
            last_activity_at=self._last_activity_at,
            run=self._parts.run,
            messages=self._parts.messages.entries(),
            tools=self._parts.tools.entries(),
            resources=self._parts.tools.resources,
            scoped=self._scoped,
        )
        return msgspec.json.encode(stored)

    @classmethod
    def load(cls, raw: bytes) -> "Fold":
        """Continue from a stored fold; members this version does not know are ignored.

        Raises:
            msgspec.DecodeError: It was not written by `dump`.
        """
        stored = _decoder.decode(raw)
        fold = cls()
        fold.sequence, fold._last_activity_at = stored.sequence, stored.last_activity_at
        fold._scoped = stored.scoped
        fold._parts = Parts(run=stored.run, messages=Transcript(stored.messages), tools=Calls(stored.tools, stored.resources))
        return fold
