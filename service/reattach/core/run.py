"""The run record: its fields, its states, and what follows from them without asking anyone."""

from typing import Final, Literal

import msgspec

from .cancel import Disposition
from .cursor import LogBounds, Render
from .times import rfc3339

State = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]
TERMINAL_STATES: Final = frozenset({"succeeded", "failed", "cancelled"})
ACTIVE_STATES: Final = frozenset({"queued", "running", "waiting"})

AGENT_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SCOPE_PATTERN: Final = r"^(?!(?:.*/)?\.\.?(?:/|$))[A-Za-z0-9_.:@~+=-]{1,128}(/[A-Za-z0-9_.:@~+=-]{1,128}){0,15}$"
TEXT_PATTERN: Final = r"^[!-~]{1,128}$"
SESSION_PATTERN: Final = r"^(?!\.\.?$)[!-~]{1,128}$"
"""A session is named in paths, where `.` and `..` mean something else to every client, however they are written."""


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a run is kept after it ended, in milliseconds.

    Attributes:
        deltas_ms: Delta-class events.
        events_ms: All other events.
        run_ms: The record and the terminal snapshot.
    """

    deltas_ms: int = 600_000
    events_ms: int = 7 * 86_400_000
    run_ms: int = 30 * 86_400_000


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is created from. JSON fields are bytes that were checked at the edge."""

    agent: str
    tenant: str
    initiator: str
    input: bytes
    metadata: bytes = b"{}"
    session_id: str | None = None
    parent_run_id: str | None = None
    resource_scope: str | None = None
    release_id: str = "unreleased"
    model_policy: str | None = None
    tool_catalog: str | None = None
    input_version: str | None = None
    retention: Retention = Retention()


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    """The run's cancel request; version 0 means nobody asked."""

    version: int = 0
    requested_at: str | None = None
    by: str | None = None
    reason: str | None = None
    disposition: Disposition | None = None


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a parked run waits for."""

    reason: str
    wait_id: str
    since: str
    expires_at: str | None = None
    prompt: str | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The hash behind a run, typed. Times are milliseconds on the Redis server's clock; empty fields are None.

    Attributes:
        session: The name of its session, see `core.ids`.
        held: Whether it waits for the runs before it in its session, and is in no queue yet.
        fence: The fencing token of the latest acquisition.
        batch: Number of the last batch appended under that fence.
        lease_until: When that lease ends unless it is renewed.
        entry: The queue entry that carries the run, if one does.
        losses: How many owners were lost.
        receipts: How many mutating effects have a receipt.
        unresolved: How many mutating effects nobody knew the fate of when the run ended.
        log_from: First sequence still in the log (events before it are in the audit stream only).
        covered: Events up to here are safe to trim: a later checkpoint or completion carries their text.
        floor: Lowest replayable sequence once the delta-class events are gone.
        sealed: Whether the terminal snapshot is stored.
    """

    run_id: str
    tenant: str
    initiator: str
    agent: str
    resource_scope: str
    release_id: str
    state: State
    sequence: int
    created_at: int
    last_activity_at: int
    session_id: str | None = None
    session: str | None = None
    held: bool = False
    parent_run_id: str | None = None
    model_policy: str | None = None
    tool_catalog: str | None = None
    input_version: str | None = None
    input: bytes = b"{}"
    metadata: bytes = b"{}"
    retention: Retention = Retention()
    idempotency: str | None = None
    attempt: int = 0
    fence: str | None = None
    batch: int = 0
    lease_until: int | None = None
    entry: str | None = None
    losses: int = 0
    receipts: int = 0
    unresolved: int = 0
    cancel_version: int = 0
    wait_id: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    log_from: int = 1
    covered: int = 0
    floor: int = 1
    sealed: bool = False

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL_STATES

    @property
    def expires_at(self) -> int | None:
        """When the record itself goes; None while the run lives."""
        return None if self.finished_at is None else self.finished_at + self.retention.run_ms

    @property
    def events_expire_at(self) -> int | None:
        """When the last replayable events go; None while the run lives."""
        return None if self.finished_at is None else self.finished_at + self.retention.events_ms


def bounds(record: RunRecord, *, log_first: int | None, audit_first: int | None) -> LogBounds:
    """What the run's log can still replay, from the record and what is physically left of its two streams.

    Args:
        log_first: First sequence in the log stream, None when it is gone.
        audit_first: First sequence in the audit stream, None when it is gone.
    """
    if log_first is not None and (log_first == 1 or audit_first == 1):
        earliest = 1
    elif log_first is not None:
        earliest = log_first
    elif audit_first == 1 and record.sealed:
        earliest = record.floor
    else:
        earliest = record.sequence + 1
    return LogBounds(
        sequence=record.sequence,
        earliest_sequence=earliest,
        state=record.state,
        terminal=record.terminal,
        render=_render(record),
    )


def _render(record: RunRecord) -> Render:
    if record.state == "succeeded":
        return "completed_message"
    if record.unresolved:
        return "operator_recovery"
    if record.state in ("failed", "cancelled"):
        return "unknown_outcome" if record.receipts else "partial_message"
    return "partial_message"


def links(run_id: str) -> dict[str, str]:
    """Where a client goes from a snapshot."""
    base = f"/agent-runs/{run_id}"
    return {"self": base, "events": f"{base}/events", "cancel": f"{base}/cancel", "inputs": f"{base}/inputs"}


def when(ms: int | None) -> str | None:
    """A record's time as the wire shows it."""
    return None if ms is None else rfc3339(ms)
