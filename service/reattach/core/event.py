"""Events: what one entry of a run's log is, which types exist, and which of them may be forgotten early."""

import re
from typing import Final

import msgspec

from .errors import InvalidRequest
from .times import rfc3339

RUN_CREATED: Final = "run.created"
RUN_STARTED: Final = "run.started"
RUN_RESUMED: Final = "run.resumed"
RUN_WAITING: Final = "run.waiting"
RUN_RETRYING: Final = "run.retrying"
RUN_CANCEL_REQUESTED: Final = "run.cancel_requested"
RUN_SUCCEEDED: Final = "run.succeeded"
RUN_FAILED: Final = "run.failed"
RUN_CANCELLED: Final = "run.cancelled"
MESSAGE_STARTED: Final = "message.started"
MESSAGE_DELTA: Final = "message.delta"
MESSAGE_CHECKPOINT: Final = "message.checkpoint"
MESSAGE_COMPLETED: Final = "message.completed"
REASONING_DELTA: Final = "reasoning.delta"
TOOL_PROGRESS: Final = "tool.progress"
TOOL_REQUESTED: Final = "tool.requested"
TOOL_COMPLETED: Final = "tool.completed"
TOOL_FAILED: Final = "tool.failed"
TOOL_UNRESOLVED: Final = "tool.unresolved"
INPUT_RECEIVED: Final = "input.received"

TERMINAL_TYPES: Final = frozenset({RUN_SUCCEEDED, RUN_FAILED, RUN_CANCELLED})
"""After one of these nothing is appended."""

DELTA_TYPES: Final = frozenset({MESSAGE_DELTA, REASONING_DELTA, TOOL_PROGRESS})
"""The class with the shorter retention. ``lua/include/log.lua`` has the same list; a test compares them."""

RESERVED_PREFIXES: Final = ("run.", "input.", "stream.")
"""Types that no handler may append: only the store ends a run or answers it, and only a server says that it closes a stream."""

TYPE_PATTERN: Final = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"
MAX_TYPE: Final = 64
_TYPE = re.compile(TYPE_PATTERN[1:-1])


class Event(msgspec.Struct, frozen=True, gc=False):
    """One stored event, as the log has it; the run's constants (`run_id`, `release_id`, default scope) are added when it is encoded.

    Attributes:
        sequence: 1 for the first event of a run, then growing by exactly 1.
        type: e.g. ``message.delta``.
        at: When it was appended, milliseconds on the Redis server's clock.
        payload: A JSON object on one line, byte for byte as it was appended.
        scope: The event's own `resource_scope`, where it differs from the run's.
    """

    sequence: int
    type: str
    at: int
    payload: bytes
    scope: str | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether this event ends its run."""
        return self.type in TERMINAL_TYPES


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event before it has a sequence: what a worker offers to append."""

    type: str
    payload: bytes
    scope: str | None = None


class EventFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The event as clients see it (contract, section 3)."""

    run_id: str
    sequence: int
    event_id: str
    release_id: str
    type: str
    occurred_at: str
    resource_scope: str
    payload: msgspec.Raw


def event_id(run_id: str, sequence: int) -> str:
    """``run_…:184``: the id in frames, and one of the two forms of a cursor."""
    return f"{run_id}:{sequence}"


def to_frame(event: Event, *, run_id: str, release_id: str, scope: str, payload: bytes | None = None) -> EventFrame:
    """Join a stored event with its run's constants.

    Args:
        payload: Sent instead of the event's own, e.g. when the caller may not read it.
    """
    return EventFrame(
        run_id=run_id,
        sequence=event.sequence,
        event_id=event_id(run_id, event.sequence),
        release_id=release_id,
        type=event.type,
        occurred_at=rfc3339(event.at),
        resource_scope=event.scope or scope,
        payload=msgspec.Raw(event.payload if payload is None else payload),
    )


def check_type(name: str) -> str:
    """Accept an event type that a handler may append.

    Raises:
        InvalidRequest: The name is outside the documented alphabet, too long, or reserved for the store.
    """
    if len(name) > MAX_TYPE or _TYPE.fullmatch(name) is None:
        raise InvalidRequest(
            f"an event type is at most {MAX_TYPE} characters of the form {TYPE_PATTERN}, e.g. invoice.drafted",
            field="type",
        )
    if name.startswith(RESERVED_PREFIXES):
        raise InvalidRequest(f"event types that begin with {', '.join(RESERVED_PREFIXES)} are Reattach's own", field="type")
    return name
