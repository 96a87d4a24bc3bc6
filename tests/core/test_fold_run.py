"""The run's own part of the fold: states, attempts, waits, cancel and endings."""

from typing import Any

import msgspec
import pytest

from reattach.core.event import Event
from reattach.core.fold import Fold

from .folding import BEGIN, RECORD, Said, fold, log, raw_view, view, when

WAIT: Said = ("run.waiting", {"wait_id": "w1", "reason": "approval", "prompt": "Refund 40 EUR?", "expires_at": "2026-08-28T13:00:00.000Z"})
INPUT: Said = ("input.received", {"input_id": "i1", "wait_id": "w1", "by": "ada", "value": True})
CANCEL: Said = ("run.cancel_requested", {"cancel_version": 1, "by": "ada", "reason": "changed my mind"})
RETRY: Said = ("run.retrying", {"attempt": 2, "cause": "worker_lost"})


def shown(snapshot: Any, *names: str) -> tuple[Any, ...]:
    """Some members of a snapshot."""
    return tuple(snapshot[name] for name in names)


def test_before_the_first_event_there_is_the_record() -> None:
    """A fold of nothing shows a queued run with its constants."""
    assert shown(view(), "state", "attempt", "sequence", "created_at", "started_at") == ("queued", 0, 0, when(1), None)


def test_a_run_is_queued_then_running() -> None:
    """Created at one time, started at another; both stay."""
    created = view(BEGIN[0])
    assert shown(created, "state", "attempt", "created_at", "started_at") == ("queued", 0, when(1), None)
    started = view(*BEGIN)
    assert shown(started, "state", "attempt", "created_at", "started_at", "last_activity_at") == ("running", 1, when(1), when(2), when(2))


def test_a_lost_worker_is_a_new_attempt() -> None:
    """Retrying queues the run under the next attempt; it keeps the time of its first start."""
    assert shown(view(*BEGIN, RETRY), "state", "attempt", "started_at") == ("queued", 2, when(2))
    again = view(*BEGIN, RETRY, ("run.started", {"attempt": 2, "worker": "w2"}))
    assert shown(again, "state", "attempt", "started_at", "last_activity_at") == ("running", 2, when(2), when(4))


def test_a_wait_is_shown_until_it_is_answered() -> None:
    """What a person is asked, since when and how long; the answer queues the run, which goes on in the same attempt."""
    waiting = view(*BEGIN, WAIT)
    assert waiting["state"] == "waiting"
    assert waiting["waiting"] == {
        "reason": "approval", "wait_id": "w1", "since": when(3), "expires_at": "2026-08-28T13:00:00.000Z", "prompt": "Refund 40 EUR?",
    }  # fmt: skip
    assert shown(view(*BEGIN, WAIT, INPUT), "state", "waiting", "attempt") == ("queued", None, 1)
    resumed = view(*BEGIN, WAIT, INPUT, ("run.resumed", {"attempt": 1, "worker": "w2", "input_id": "i1"}))
    assert shown(resumed, "state", "waiting", "attempt", "started_at") == ("running", None, 1, when(2))


@pytest.mark.parametrize(
    ("ending", "state", "outcome", "error"),
    [
        (("run.succeeded", {"outcome": {"note": "r_1"}}), "succeeded", {"note": "r_1"}, None),
        (("run.succeeded", {"outcome": None}), "succeeded", None, None),
        (("run.failed", {"error": {"code": "worker_lost", "message": "…"}}), "failed", None, {"code": "worker_lost", "message": "…"}),
        (("run.cancelled", {"disposition": "cancelled_before_effect"}), "cancelled", None, None),
        (("run.succeeded", b"nonsense"), "succeeded", None, None),
        (("run.failed", b"[]"), "failed", None, None),
    ],
)
def test_endings(ending: Said, state: str, outcome: Any, error: Any) -> None:
    """State, result and the times that follow from the end; the type alone decides the state, so it never contradicts the last event."""
    ended = view(*BEGIN, WAIT, ending)
    assert shown(ended, "state", "waiting", "outcome", "error", "finished_at") == (state, None, outcome, error, when(4))
    assert shown(ended, "events_expire_at", "expires_at") == ("2026-09-04T12:00:04.000Z", "2026-09-27T12:00:04.000Z")


@pytest.mark.parametrize(
    ("then", "disposition"),
    [
        ([], "cancellation_pending"),
        ([("run.cancelled", {"disposition": "cancelled_before_effect"})], "cancelled_before_effect"),
        ([("run.cancelled", {"disposition": "cancelled_after_effect"})], "cancelled_after_effect"),
        ([("run.succeeded", {"outcome": 1})], "already_terminal"),
        ([("run.failed", {"error": {"code": "x", "message": "y"}})], "already_terminal"),
        ([RETRY], "cancellation_pending"),
    ],
)
def test_what_became_of_a_cancel(then: list[Said], disposition: str) -> None:
    """The request stays as it was made; its disposition tells what really happened."""
    cancel = view(*BEGIN, CANCEL, *then)["cancel"]
    assert cancel == {"version": 1, "requested_at": when(3), "by": "ada", "reason": "changed my mind", "disposition": disposition}


def test_nobody_asked_to_cancel() -> None:
    """Version 0 and nothing else, also after an end."""
    nothing = {"version": 0, "requested_at": None, "by": None, "reason": None, "disposition": None}
    assert view(*BEGIN)["cancel"] == view(*BEGIN, ("run.succeeded", {"outcome": 1}))["cancel"] == nothing


def test_types_nobody_projects_count_only_as_activity() -> None:
    """A product's own events, and classes that a snapshot does not show, move sequence and last activity."""
    before = view(*BEGIN)
    for kind in ("invoice.drafted", "reasoning.delta", "tool.progress", "message.liked", "run.future", "tool.future"):
        after = view(*BEGIN, (kind, {"message_id": "m", "tool_call_id": "c", "tool": "t", "text": "x", "role": "user"}))
        assert after == before | {"sequence": 3, "last_activity_at": when(3)}


def test_opaque_values_are_carried_byte_for_byte() -> None:
    """O24: outcome, error, input and metadata are never written anew."""
    odd = b'{"n":9007199254740993,"u":18446744073709551615,"f":1.50,"x":-0.0,"e":[],"o":{},"t":"\\u00e9","t":1E+2}'
    assert b'"outcome":' + odd in raw_view(fold(log(*BEGIN, ("run.succeeded", b'{"outcome":' + odd + b"}"))))
    assert b'"error":' + odd in raw_view(fold(log(*BEGIN, ("run.failed", b'{"error":' + odd + b"}"))))
    assert b'"input":{"ticket":981},"metadata":{}' in raw_view(Fold())
    last = fold(log(*BEGIN, ("run.succeeded", b'{"outcome":' + odd + b"}")))
    assert raw_view(Fold.load(last.dump())) == raw_view(last)


def test_large_sequences_stay_exact() -> None:
    """O24: at 15 digits and beyond, sequences, bounds and stored folds are plain integers."""
    folded = Fold()
    for i in range(5):
        folded.apply(Event(99_999_999_999_998 + i, "message.delta", 0, b'{"message_id":"m","text":"x"}'))
    again = Fold.load(folded.dump())
    assert (again.sequence, again.covered, again.floor) == (100_000_000_000_002, 99_999_999_999_997, 100_000_000_000_003)
    assert b'"sequence":100000000000002,' in raw_view(again)


def test_a_stored_fold_of_a_later_version_is_read() -> None:
    """Members that this version does not know are ignored; damage is noticed."""
    assert Fold.load(b'{"sequence":7,"run":{"state":"running","mood":"good"},"new":[1]}').sequence == 7
    for damaged in (b"", b"{}", b'{"sequence":"7","run":{}}'):
        with pytest.raises(msgspec.DecodeError):
            Fold.load(damaged)


def test_constants_come_from_the_record() -> None:
    """Who, what for, and where to go on."""
    whole = view(*BEGIN)
    assert shown(whole, "run_id", "tenant", "initiator", "agent", "resource_scope", "release_id", "earliest_sequence") == (
        RECORD.run_id, "tenant_42", "ada", "support", "tenant_42/ticket_981", "r-1", 1,
    )  # fmt: skip
    assert whole["links"]["events"] == f"/agent-runs/{RECORD.run_id}/events"
