"""The trace: one structured record per connection, written when it ends (contract, section 11)."""

import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import structlog

from ..core.run import RunRecord

_log = structlog.get_logger("reattach.connections")

_STATES: Final = {
    "run.created": "queued",
    "run.started": "running",
    "run.resumed": "running",
    "run.waiting": "waiting",
    "run.retrying": "queued",
    "input.received": "queued",
    "run.succeeded": "succeeded",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}


class Trace(msgspec.Struct, kw_only=True):
    """What is known of one connection so far.

    Attributes:
        run_id: The run; None while it is not known to exist for this caller, and of a session.
        session_id: The session, where that is followed and not one run.
        transport: ``sse`` or ``json``.
        principal: ``tenant/subject``.
        requested_cursor: The cursor that was sent, if it has one of the two forms, else ``malformed``; None when there was none.
        accepted_cursor: The sequence that delivery began after.
        replay_until: The latest sequence when the connection began; events up to it are replay.
        replayed: First and last replayed sequence.
        first_live_sequence: The first event that happened while the connection was open.
        delivered: Events written.
        suppressed_duplicates: Events that arrived a second time from the store and were not written.
        policy: ``allowed``, or the code of the refusal.
        cancel_version: The run's, as far as this connection saw.
        state: The run's state, as far as this connection saw.
        snapshot_version: The last sequence this connection knows.
    """

    transport: str
    connection_id: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    run_id: str | None = None
    session_id: str | None = None
    principal: str | None = None
    requested_cursor: str | None = None
    accepted_cursor: int | None = None
    replay_until: int = 0
    replayed: tuple[int, int] | None = None
    first_live_sequence: int | None = None
    delivered: int = 0
    suppressed_duplicates: int = 0
    policy: str | None = None
    cancel_version: int = 0
    state: str | None = None
    snapshot_version: int = 0
    close_reason: str | None = None
    started: float = msgspec.field(default_factory=time.monotonic)

    def allow(self, record: RunRecord) -> None:
        """The caller may read this run, as it is now."""
        self.run_id, self.policy = record.run_id, "allowed"
        self.state, self.cancel_version = record.state, record.cancel_version
        self.replay_until = self.snapshot_version = record.sequence

    def allow_session(self, session_id: str, sequence: int, state: str) -> None:
        """The caller may read this session, as it is now."""
        self.session_id, self.policy = session_id, "allowed"
        self.state = state
        self.replay_until = self.snapshot_version = sequence

    def accept(self, cursor: int) -> None:
        """Delivery begins after this sequence."""
        self.accepted_cursor = cursor

    def saw(self, first: int, last: int, count: int, kinds: Sequence[str]) -> None:
        """Account for events that are about to be written.

        Args:
            first: Sequence of the first one.
            last: Sequence of the last one.
            count: How many they are; fewer than the sequences where covered deltas are gone.
            kinds: Their types, at least of those that change the run's state.
        """
        self.delivered += count
        self.snapshot_version = last
        if first <= self.replay_until:
            self.replayed = (self.replayed[0] if self.replayed else first, min(last, self.replay_until))
        if last > self.replay_until and self.first_live_sequence is None:
            self.first_live_sequence = max(first, self.replay_until + 1)
        for kind in kinds if self.session_id is None else ():
            if kind in _STATES:
                self.state = _STATES[kind]
            elif kind == "run.cancel_requested":
                self.cancel_version += 1

    def end(self, reason: str) -> None:
        """Write the record. Later calls do nothing: the first reason is the reason."""
        if self.close_reason is not None:
            return
        self.close_reason = reason
        facts: dict[str, Any] = msgspec.structs.asdict(self)
        del facts["started"], facts["replay_until"]
        facts["duration_ms"] = round((time.monotonic() - self.started) * 1000)
        _log.info("connection", **facts)
