"""A run's events on a terminal: readable, and unable to steer it."""

import json
from typing import Any

import pytest

from reattach.cli.rendering import Screen

Events = list[tuple[str, dict[str, Any]]]


def show(capsys: pytest.CaptureFixture[str], events: Events) -> list[str]:
    """What a screen shows of these events."""
    screen = Screen()
    for sequence, (kind, payload) in enumerate(events, 1):
        screen.show(json.dumps({"sequence": sequence, "type": kind, "payload": payload}).encode())
    screen.finish()
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def delta(text: str, name: str = "m1") -> tuple[str, dict[str, Any]]:
    """A piece of text."""
    return "message.delta", {"message_id": name, "text": text}


def completed(text: str, name: str = "m1") -> tuple[str, dict[str, Any]]:
    """A whole message."""
    return "message.completed", {"message_id": name, "role": "assistant", "content": [{"type": "text", "text": text}]}


def test_text_is_one_paragraph_and_everything_else_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Deltas join; lines after the first stand under it; events have their number."""
    events: Events = [
        ("run.created", {"agent": "support"}),
        ("run.started", {"attempt": 1, "worker": "w"}),
        ("message.started", {"message_id": "m1", "role": "assistant"}),
        delta("Hello"),
        delta(" you.\nSecond"),
        completed("Hello you.\nSecond"),
        ("tool.requested", {"tool_call_id": "c", "tool": "t.add", "arguments": {"n": 1}}),
        ("tool.completed", {"tool_call_id": "c", "tool": "t.add", "receipt_id": "r1", "result_version": "x:v2"}),
        ("invoice.drafted", {"n": 1}),
        ("run.succeeded", {"outcome": {"ok": True}}),
    ]
    assert show(capsys, events) == [
        "    1  created          agent support",
        "    2  started          attempt 1, worker w",
        "         message  Hello you.",
        "                  Second",
        "    7  tool requested   t.add  {\"n\": 1}",
        "    8  tool completed   t.add  r1  x:v2",
        "    9  invoice.drafted  {\"n\": 1}",
        "   10  succeeded        {\"ok\": true}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "lines"),
    [
        ([completed("all of it")], ["         message  all of it"]),
        ([delta("all"), completed("all of it")], ["         message  all of it"]),
        ([delta("all of it"), completed("all of it")], ["         message  all of it"]),
        ([("message.checkpoint", {"message_id": "m1", "text": "all "}), delta("of it")], ["         message  all of it"]),
        ([delta("of it"), completed("all of it")], ["         message  of it", "         message  all of it"]),
        ([delta("a"), delta("b", "m2"), delta("c")], ["         message  a", "         message  b", "         message  c"]),
    ],
    ids=["only completed", "the rest", "nothing more", "checkpoint", "came late", "two at once"],
)
def test_a_message_is_shown_once_whatever_was_kept_of_it(capsys: pytest.CaptureFixture[str], events: Events, lines: list[str]) -> None:
    """Deltas may be gone that a checkpoint or the completed message covers."""
    assert show(capsys, events) == lines


def test_nothing_can_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, carriage returns and bells in what others wrote are shown as what they are: nothing."""
    evil = "\x1b[2J\x1b]0;title\x07\rok\x9b31m"
    events: Events = [
        delta(evil),
        ("tool.failed", {"tool": evil, "error": {"message": evil}, "why": evil}),
        ("run.waiting", {"prompt": evil, "reason": evil, "wait_id": evil}),
        ("odd.one", {evil: evil}),
    ]
    shown = "\n".join(show(capsys, events))
    assert not [c for c in shown if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160]


@pytest.mark.parametrize(
    "kind", ["message.delta", "message.completed", "message.checkpoint", "tool.completed", "run.waiting", "run.failed"]
)
@pytest.mark.parametrize(
    "payload", [{}, {"message_id": 5, "text": None}, {"content": [1, None]}, {"content": {"a": 1}}, {"redacted": True}]
)
def test_odd_payloads_are_shown_somehow(capsys: pytest.CaptureFixture[str], kind: str, payload: dict[str, Any]) -> None:
    """Handlers may emit any shape."""
    show(capsys, [(kind, payload)])
