"""What a log can still replay, and what a client that lost its place can show."""

from typing import Any

import msgspec
import pytest

from reattach.core.run import bounds

from .folding import RECORD


@pytest.mark.parametrize(
    ("log_first", "audit_first", "facts", "earliest"),
    [
        (1, 1, {}, 1),
        (151, 1, {"log_from": 151}, 1),
        (151, None, {"log_from": 151}, 151),
        (1, None, {}, 1),
        (None, 1, {"sealed": True, "floor": 1}, 1),
        (None, 1, {"sealed": True, "floor": 88}, 88),
        (None, 1, {"sealed": False, "floor": 1}, 201),
        (None, None, {"sealed": True, "floor": 88}, 201),
        (None, 5, {"sealed": True, "floor": 1}, 201),
    ],
)
def test_the_lowest_replayable_sequence(log_first: int | None, audit_first: int | None, facts: dict[str, Any], earliest: int) -> None:
    """Everything while both streams are there; above the floor once the deltas went; nothing when neither stream has what is needed."""
    record = msgspec.structs.replace(RECORD, sequence=200, **facts)
    known = bounds(record, log_first=log_first, audit_first=audit_first)
    assert (known.sequence, known.earliest_sequence, known.state, known.terminal) == (200, earliest, "queued", False)


@pytest.mark.parametrize(
    ("facts", "render"),
    [
        ({"state": "running"}, "partial_message"),
        ({"state": "waiting"}, "partial_message"),
        ({"state": "succeeded", "receipts": 2}, "completed_message"),
        ({"state": "failed"}, "partial_message"),
        ({"state": "cancelled"}, "partial_message"),
        ({"state": "failed", "receipts": 1}, "unknown_outcome"),
        ({"state": "cancelled", "receipts": 1}, "unknown_outcome"),
        ({"state": "failed", "unresolved": 1}, "operator_recovery"),
        ({"state": "cancelled", "receipts": 1, "unresolved": 1}, "operator_recovery"),
    ],
)
def test_what_a_lost_client_can_show(facts: dict[str, Any], render: str) -> None:
    """From how the run ended and what is known of its effects."""
    assert bounds(msgspec.structs.replace(RECORD, **facts), log_first=None, audit_first=None).render == render


def test_when_a_run_goes() -> None:
    """Times that follow from the end; a live run has none."""
    assert (RECORD.terminal, RECORD.expires_at, RECORD.events_expire_at) == (False, None, None)
    ended = msgspec.structs.replace(RECORD, state="failed", finished_at=1000)
    assert (ended.terminal, ended.expires_at, ended.events_expire_at) == (True, 1000 + 30 * 86_400_000, 1000 + 7 * 86_400_000)
