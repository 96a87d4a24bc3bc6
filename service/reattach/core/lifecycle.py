"""The run's own part of the fold: state, attempts, waits, cancel and ending, from its ``run.*`` and ``input.*`` events.

Only the store's commands write these. The state follows from an event's type alone, whatever its payload says, so that snapshot, record
and terminal event always agree.
"""

import msgspec
from msgspec import Raw

from .cancel import PENDING, TOO_LATE, Disposition
from .event import Event
from .projections import ABSENT, RunAttempt, RunCancelRequested, RunEnded, RunWaiting
from .run import Cancel, State, Waiting
from .times import rfc3339


class Lifecycle(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A run's own facts as they are folded and stored; times are milliseconds on the server's clock."""

    state: State = "queued"
    attempt: int = 0
    created_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    cancel: Cancel = Cancel()
    waiting: Waiting | None = None
    outcome: Raw = ABSENT
    error: Raw = ABSENT

    def create(self, event: Event) -> None:
        """``run.created``."""
        self.created_at = event.at

    def start(self, p: RunAttempt, event: Event) -> None:
        """``run.started`` and ``run.resumed``: a worker has it."""
        self.state, self.waiting = "running", None
        self.attempt = self.attempt if p.attempt is None else p.attempt
        if self.started_at is None:
            self.started_at = event.at

    def retry(self, p: RunAttempt) -> None:
        """``run.retrying``: its worker is gone."""
        self.state, self.waiting = "queued", None
        self.attempt = self.attempt if p.attempt is None else p.attempt

    def wait(self, p: RunWaiting, event: Event) -> None:
        """``run.waiting``."""
        self.state = "waiting"
        self.waiting = Waiting(reason=p.reason, wait_id=p.wait_id, since=rfc3339(event.at), expires_at=p.expires_at, prompt=p.prompt)

    def answer(self) -> None:
        """``input.received``: it has what it waited for."""
        self.state, self.waiting = "queued", None

    def request_cancel(self, p: RunCancelRequested, event: Event) -> None:
        """``run.cancel_requested``."""
        self.cancel = Cancel(version=p.cancel_version, requested_at=rfc3339(event.at), by=p.by, reason=p.reason, disposition=PENDING)

    def succeed(self, p: RunEnded, event: Event) -> None:
        """``run.succeeded``."""
        self.outcome = p.outcome
        self._end("succeeded", event, TOO_LATE if self.cancel.version else None)

    def fail(self, p: RunEnded, event: Event) -> None:
        """``run.failed``."""
        self.error = p.error
        self._end("failed", event, TOO_LATE if self.cancel.version else None)

    def stop(self, p: RunEnded, event: Event) -> None:
        """``run.cancelled``."""
        self._end("cancelled", event, p.disposition)

    def _end(self, state: State, event: Event, disposition: Disposition | None) -> None:
        self.state, self.waiting, self.finished_at = state, None, event.at
        self.cancel = msgspec.structs.replace(self.cancel, disposition=disposition)
