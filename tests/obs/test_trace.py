"""The record of a connection."""

import structlog.testing

from reattach.obs.trace import Trace


def test_replay_and_live_are_told_apart() -> None:
    """By the sequence the run had when the connection began."""
    trace = Trace(transport="sse", run_id="run_1", replay_until=5, state="running")
    trace.saw(3, 4, 2, ["step.done", "step.done"])
    trace.saw(5, 7, 3, ["run.cancel_requested", "step.done", "run.cancelled"])
    assert (trace.replayed, trace.first_live_sequence, trace.delivered) == ((3, 5), 6, 5)
    assert (trace.state, trace.cancel_version, trace.snapshot_version) == ("cancelled", 1, 7)


def test_the_record_is_written_once() -> None:
    """With the first reason, and every member the contract lists."""
    trace = Trace(transport="sse")
    with structlog.testing.capture_logs() as logs:
        trace.end("drain")
        trace.end("terminal")
    [record] = logs
    assert record["close_reason"] == "drain" and record["duration_ms"] >= 0
    assert set(record) >= {
        "run_id", "connection_id", "principal", "transport", "requested_cursor", "accepted_cursor", "replayed", "first_live_sequence",
        "delivered", "suppressed_duplicates", "policy", "cancel_version", "state", "snapshot_version",
    }  # fmt: skip
