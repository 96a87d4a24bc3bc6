"""Messages: what each event of theirs does, and which deltas are still needed."""

from typing import Any

import pytest

from reattach.core.fold import Fold

from .folding import BEGIN, Said, fold, log, raw_view, text, view

RETRY: Said = ("run.retrying", {"attempt": 2, "cause": "worker_lost"})
END: Said = ("run.succeeded", {"outcome": None})
OTHER: Said = ("x.y", None)
STOPS: list[Said] = [RETRY, END, ("run.failed", None), ("run.cancelled", {"disposition": "cancelled_before_effect"})]
THOUGHTS: list[Said] = [("reasoning.delta", {"text": "x"}), ("tool.progress", None), OTHER]


def started(message_id: str = "m", **more: Any) -> Said:
    """``message.started``."""
    return "message.started", {"message_id": message_id, "role": "assistant"} | more


def delta(more: str, message_id: str = "m") -> Said:
    """``message.delta``."""
    return "message.delta", {"message_id": message_id, "text": more}


def checkpoint(so_far: str, message_id: str = "m") -> Said:
    """``message.checkpoint``."""
    return "message.checkpoint", {"message_id": message_id, "text": so_far}


def completed(whole: Any, message_id: str = "m", **more: Any) -> Said:
    """``message.completed``."""
    content = text(whole) if isinstance(whole, str) else whole
    return "message.completed", {"message_id": message_id, "role": "assistant", "content": content} | more


def messages(*said: Said) -> Any:
    """Id, role, status and content of every message."""
    return [(m["message_id"], m["role"], m["status"], m["content"]) for m in view(*BEGIN, *said)["messages"]]


def test_a_message_streams_and_is_completed() -> None:
    """Empty at the start, growing with its deltas, whole at the end."""
    assert messages(started()) == [("m", "assistant", "streaming", [])]
    assert messages(started(), delta("Looking "), delta("at it.")) == [("m", "assistant", "streaming", text("Looking at it."))]
    assert messages(started(), delta("Looking "), completed("Done.")) == [("m", "assistant", "completed", text("Done."))]


def test_roles() -> None:
    """Started names the role; completed may change it; without either it is the assistant's."""
    assert messages(started(role="user"))[0][1] == "user"
    assert messages(started(role="user"), ("message.completed", {"message_id": "m", "content": []}))[0][1] == "user"
    assert messages(started(role="user"), completed("x", role="system"))[0][1] == "system"
    assert messages(delta("x"))[0][1] == messages(checkpoint("x"))[0][1] == messages(started(role=None))[0][1] == "assistant"


def test_a_checkpoint_replaces_the_text() -> None:
    """It carries the text so far, so deltas before it may be gone; those after it go on from there."""
    assert messages(started(), delta("a"), delta("b"), checkpoint("ab"), delta("c"))[0][3] == text("abc")
    assert messages(started(), checkpoint("ab"), delta("c"))[0][3] == text("abc")
    assert messages(started(), delta("a"), checkpoint(""))[0][3] == []


def test_messages_stand_in_the_order_in_which_they_were_first_named() -> None:
    """Also when they stream side by side and end in another order."""
    said = [started("a"), started("b"), delta("1", "b"), delta("2", "a"), completed("b!", "b"), delta("3", "a")]
    assert messages(*said) == [("a", "assistant", "streaming", text("23")), ("b", "assistant", "completed", text("b!"))]


def test_what_is_open_when_nobody_goes_on_is_interrupted() -> None:
    """A lost worker and an end interrupt what streams, and nothing else; a checkpoint, a delta or a new start opens it again."""
    said = [started("a"), completed("x", "a"), started("b"), delta("y", "b")]
    for stop in STOPS:
        assert [m[2] for m in messages(*said, stop)] == ["completed", "interrupted"]
    for again in (delta("z", "b"), checkpoint("yz", "b")):
        assert messages(*said, RETRY, again)[1][2:] == ("streaming", text("yz"))
    assert messages(*said, RETRY, started("b"))[1][2:] == ("streaming", [])


def test_a_message_can_be_completed_as_interrupted() -> None:
    """The next attempt can say how far an open message got."""
    assert messages(delta("half"), RETRY, completed("half", status="interrupted"), END)[0][2:] == ("interrupted", text("half"))
    assert messages(completed("x", status="completed"))[0][2] == messages(completed("x", status=None))[0][2] == "completed"


def test_a_completed_message_takes_no_text() -> None:
    """Late deltas and checkpoints are not projected; another start begins it anew, in its place."""
    assert messages(completed("whole"), delta("late"), checkpoint("later"))[0][2:] == ("completed", text("whole"))
    assert messages(completed("x"), started("n"), started(), delta("new")) == [
        ("m", "assistant", "streaming", text("new")),
        ("n", "assistant", "streaming", []),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], [*text("+")]),
        ([{"type": "text", "text": "a"}], [*text("a+")]),
        ([{"text": "a", "type": "text"}], [*text("a+")]),
        ([{"type": "text", "text": ""}], [*text("+")]),
        ([{"type": "image", "url": "u"}], [{"type": "image", "url": "u"}, *text("+")]),
        ([{"type": "image"}, {"type": "text", "text": "a"}], [{"type": "image"}, *text("a+")]),
        ([{"type": "text", "text": "a", "lang": "en"}], [{"type": "text", "text": "a", "lang": "en"}, *text("+")]),
        ([{"type": "text", "text": None}], [{"type": "text", "text": None}, *text("+")]),
        ([1, [2], "x"], [1, [2], "x", *text("+")]),
    ],
)
def test_text_goes_on_after_what_was_given(given: Any, expected: Any) -> None:
    """Deltas grow the last part if it is plain text, else they begin a new one; that is all a client needs to go on from a snapshot."""
    assert messages(started(content=given))[0][3] == given
    assert messages(started(content=given), delta(""), delta("+"))[0][3] == expected
    assert messages(completed(given, status="interrupted"), delta("+"))[0][3] == expected
    replaced = [*expected[:-1], *text("so far")]
    assert messages(started(content=given), checkpoint("so far"))[0][3] == replaced
    assert messages(started(content=given), delta("+"), checkpoint("so far"))[0][3] == replaced


def test_content_is_carried_byte_for_byte() -> None:
    """O24, O06: given content is never written anew, also where text comes after it."""
    odd = b'{"n":9007199254740993,"f":1.50,"e":[],"o":{},"t":"\\u00e9\\ud83c\\udf0d","t":1E+2}'
    whole = raw_view(fold(log(*BEGIN, ("message.completed", b'{"message_id":"m","content":[%b]}' % odd))))
    assert b'"content":[' + odd + b"]" in whole
    grown = fold(log(*BEGIN, ("message.started", b'{"message_id":"m","content":[%b]}' % odd), delta("那个🌍")))
    assert b'"content":[%b,{"type":"text","text":"%b"}]' % (odd, "那个🌍".encode()) in raw_view(grown)
    assert raw_view(Fold.load(grown.dump())) == raw_view(grown)


@pytest.mark.parametrize("whole", ["那个", "🌍", "e\u0301", "👩‍👩‍👧", "\n\n\n", "a\r\rb", "\u0000", '"\\', "\u2028", " x"])
def test_text_is_carried_code_point_for_code_point(whole: str) -> None:
    """O06, O07: however it is cut into deltas."""
    assert messages(started(), *(delta(c) for c in whole))[0][3] == text(whole)


@pytest.mark.parametrize(
    "odd",
    [
        ("message.started", {}),
        ("message.started", {"message_id": 5}),
        ("message.started", {"message_id": "m", "role": 5}),
        ("message.started", {"message_id": "m", "content": "text"}),
        ("message.started", {"message_id": "m", "content": None}),
        ("message.delta", {"message_id": "m"}),
        ("message.delta", {"text": "x"}),
        ("message.delta", {"message_id": "m", "text": None}),
        ("message.delta", {"message_id": "m", "text": ["x"]}),
        ("message.checkpoint", {"message_id": "m", "content": []}),
        ("message.completed", {"message_id": "m"}),
        ("message.completed", {"message_id": "m", "content": "whole"}),
        ("message.completed", {"message_id": "m", "content": {"type": "text"}}),
        ("message.completed", {"message_id": "m", "content": [], "status": 1}),
        ("message.completed", b"[]"),
        ("message.completed", b"null"),
        ("message.completed", b"{"),
    ],
)
def test_payloads_that_do_not_fit_are_not_projected(odd: Said) -> None:
    """Handlers may append any shape: nothing is shown of it, nothing is covered by it, and the run stays readable."""
    assert messages(odd) == []
    assert messages(delta("x"), odd) == messages(delta("x"))
    assert fold(log(*BEGIN, delta("x"), odd, END)).covered == 2


@pytest.mark.parametrize(
    ("said", "covered", "floor"),
    [
        ([], 1, 1),
        ([started(), delta("a"), delta("b")], 3, 6),
        ([started(), delta("a"), checkpoint("a")], 4, 1),
        ([started(), delta("a"), checkpoint("a"), delta("b")], 5, 7),
        ([started(), delta("a"), checkpoint("a"), delta("b"), completed("ab")], 6, 1),
        ([started(), delta("a"), RETRY, started()], 3, 5),
        ([started(), delta("a"), completed("a", status="interrupted"), RETRY], 5, 1),
        ([started("a"), started("b"), delta("1", "a"), delta("2", "b"), completed("1", "a")], 5, 7),
        ([started("a"), started("b"), delta("1", "a"), delta("2", "b"), completed("2", "b")], 4, 6),
        (THOUGHTS, 4, 1),
        ([completed("x"), delta("late"), OTHER], 4, 1),
        ([delta("a"), delta("b"), completed("ab")], 4, 1),
        ([delta("a", "x"), started("y"), completed("a", "x"), completed("", "y")], 2, 4),
        ([delta("a", "x"), delta("b", "y"), completed("b", "y"), completed("a", "x")], 2, 4),
        ([delta("a", "x"), started("x"), started("y"), completed("a", "x")], 5, 1),
    ],
)
def test_which_deltas_may_go(said: list[Said], covered: int, floor: int) -> None:
    """Those that a checkpoint or a completion carries; not one that decided where a message stands; and the latest event always stays."""
    folded = fold(log(*BEGIN, *said))
    assert (folded.covered, folded.floor) == (covered, floor)
