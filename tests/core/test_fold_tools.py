"""Tool calls, the resources they changed, and what nobody knows."""

from typing import Any

import pytest

from reattach.core.fold import Fold

from .folding import BEGIN, Said, fold, log, raw_view, view, when


def tool(kind: str, call: str = "c1", **more: Any) -> Said:
    """``tool.*``."""
    return f"tool.{kind}", {"tool_call_id": call, "tool": "tickets.add_note"} | more


NAMED = {"tool_call_id": "c1", "tool": "tickets.add_note"}
ASKED = NAMED | {"arguments": {"ticket": 981}, "requested_at": when(3)}
REQUEST = tool("requested", arguments={"ticket": 981})


def test_a_call_is_requested_and_completed() -> None:
    """Arguments and time of the request stay; receipt, version and result come with the completion."""
    assert view(*BEGIN, REQUEST)["tools"] == [ASKED | {"status": "requested"}]
    about: dict[str, Any] = {"receipt_id": "receipt_558", "result_version": "ticket_981:v19", "result": {"ok": True}}
    done = view(*BEGIN, REQUEST, tool("completed", **about))
    assert done["tools"] == [ASKED | {"status": "completed", "finished_at": when(4)} | about]
    assert done["resources"] == {"ticket_981": "v19"} and done["unresolved"] == []


def test_a_call_fails() -> None:
    """With its error; a failed call has no say in a resource's version."""
    failed = view(*BEGIN, REQUEST, tool("failed", error={"code": "timeout"}, result_version="ticket_981:v20"))
    assert failed["tools"][0] == ASKED | {
        "status": "failed", "finished_at": when(4), "error": {"code": "timeout"}, "result_version": "ticket_981:v20",
    }  # fmt: skip
    assert failed["resources"] == {}


def test_a_call_is_unresolved_until_somebody_knows() -> None:
    """It is listed from then on, and leaves the list when it is completed, failed, or asked for again."""
    open_call = view(*BEGIN, REQUEST, tool("unresolved", why="worker_lost"))
    assert open_call["tools"] == [ASKED | {"status": "unresolved", "why": "worker_lost"}]
    assert open_call["unresolved"] == [NAMED | {"why": "worker_lost"}]
    assert view(*BEGIN, REQUEST, tool("unresolved"))["unresolved"] == [NAMED | {"why": "unknown"}]
    for then, status in ((tool("completed"), "completed"), (tool("failed"), "failed"), (REQUEST, "requested")):
        known = view(*BEGIN, REQUEST, tool("unresolved", why="worker_lost"), then)
        assert known["unresolved"] == [] and known["tools"][0]["status"] == status and "why" not in known["tools"][0]


def test_a_call_that_is_tried_again_begins_anew() -> None:
    """Nothing of the earlier try is left but its place."""
    said = [REQUEST, tool("requested", "c2"), tool("failed", error=1), tool("requested", arguments=[])]
    tools = view(*BEGIN, *said)["tools"]
    assert tools[0] == NAMED | {"status": "requested", "arguments": [], "requested_at": when(6)}
    assert [t["tool_call_id"] for t in tools] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("versions", "resources"),
    [
        (["t:v1", "t:v2"], {"t": "v2"}),
        (["t:v2", "u:v1", "t:v3"], {"t": "v3", "u": "v1"}),
        (["tenant:42/t:v1"], {"tenant:42/t": "v1"}),
        (["v1", ":v1", "t:", "", ":"], {}),
        ([None], {}),
        (["билет:вер2"], {"билет": "вер2"}),
        (["__proto__:v1", "constructor:v2"], {"__proto__": "v1", "constructor": "v2"}),
    ],
)
def test_resources_have_the_version_reported_last(versions: list[str | None], resources: dict[str, str]) -> None:
    """``resource:version``, cut at the last colon; a text that is not both is no version of anything."""
    assert view(*BEGIN, *(tool("completed", f"c{i}", result_version=v) for i, v in enumerate(versions)))["resources"] == resources


def test_values_are_carried_byte_for_byte() -> None:
    """O24: arguments, result and error are never written anew; null is a value."""
    odd = b'{"n":9007199254740993,"u":18446744073709551615,"f":1.50,"x":-0.0,"e":[],"o":{},"t":"\\u00e9"}'
    about = b'{"tool_call_id":"c1","tool":"t",'
    folded = fold(
        log(
            *BEGIN,
            ("tool.requested", about + b'"arguments":' + odd + b"}"),
            ("tool.failed", about + b'"error":' + odd + b',"result":null}'),
            ("tool.completed", b'{"tool_call_id":"c2","tool":"t","result":' + odd + b"}"),
        )
    )
    shown = raw_view(folded)
    for name in (b"arguments", b"error", b"result"):
        assert b'"%b":%b' % (name, odd) in shown
    assert b'"result":null' in shown
    assert raw_view(Fold.load(folded.dump())) == shown


@pytest.mark.parametrize(
    "odd",
    [
        ("tool.requested", {"tool": "t"}),
        ("tool.requested", {"tool_call_id": "c"}),
        ("tool.requested", {"tool_call_id": 5, "tool": "t"}),
        ("tool.completed", {"tool_call_id": "c", "tool": None}),
        ("tool.completed", {"tool_call_id": "c", "tool": "t", "result_version": 19}),
        ("tool.unresolved", {"tool_call_id": "c", "tool": "t", "why": ["x"]}),
        ("tool.failed", b"[1]"),
        ("tool.failed", b'{"tool_call_id":"c","tool":"t","error":'),
    ],
)
def test_payloads_that_do_not_fit_are_not_projected(odd: Said) -> None:
    """Handlers may append any shape: nothing of it is shown."""
    shown = view(*BEGIN, odd)
    assert (shown["tools"], shown["unresolved"], shown["resources"]) == ([], [], {})
