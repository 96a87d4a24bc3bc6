"""Making logs, folding them, and looking at the result."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from reattach.core.event import Event
from reattach.core.fold import Fold
from reattach.core.run import RunRecord
from reattach.core.times import rfc3339

RUN = "run_070123456789abcdefghjkmnpq"
NOON = 1_787_918_400_000
"""2026-08-28T12:00:00.000Z; the event with sequence n of a made log is n seconds later."""

RECORD = RunRecord(
    run_id=RUN, tenant="tenant_42", initiator="ada", agent="support", resource_scope="tenant_42/ticket_981", release_id="r-1",
    state="queued", sequence=1, created_at=NOON + 1000, last_activity_at=NOON + 1000, input=b'{"ticket":981}',
)  # fmt: skip

Said = tuple[str, Any]
"""A type and a payload: bytes as they are, or a value to be encoded."""

BEGIN: list[Said] = [("run.created", {"agent": "support"}), ("run.started", {"attempt": 1, "worker": "w1"})]


def when(sequence: int) -> str:
    """The time of an event of a made log."""
    return rfc3339(NOON + 1000 * sequence)


def log(*said: Said) -> list[Event]:
    """A log of these events, from sequence 1."""
    return [
        Event(i, kind, NOON + 1000 * i, payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        for i, (kind, payload) in enumerate(said, 1)
    ]


def fold(events: Iterable[Event], start: Fold | None = None) -> Fold:
    """Fold events, from nothing or on from another fold."""
    result = start or Fold()
    for event in events:
        result.apply(event)
    return result


def raw_view(folded: Fold, record: RunRecord = RECORD) -> bytes:
    """The snapshot as it goes over the wire."""
    return msgspec.json.encode(folded.view(record, earliest_sequence=1))


def view(*said: Said) -> Any:
    """The snapshot of a log, as a client sees it."""
    return json.loads(raw_view(fold(log(*said))))


def text(content: str) -> list[dict[str, str]]:
    """Content of one text part."""
    return [{"type": "text", "text": content}]
