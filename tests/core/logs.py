"""Logs by chance: every projected type, few ids so that events meet, odd payloads among them."""

import json
from typing import Any

from hypothesis import strategies as st

from reattach.core.event import Event

from .folding import BEGIN, Said, log

ids = st.sampled_from(["m1", "m2"])
calls = st.sampled_from(["c1", "c2"])
texts = st.sampled_from(["", "a", "b ", "é🌍", '"\\\n'])
parts = st.sampled_from(
    [
        {"type": "text", "text": "given"},
        {"type": "text", "text": ""},
        {"text": "swapped", "type": "text"},
        {"type": "text", "text": "more", "n": 1},
        {"type": "image", "url": "x"},
        {"type": "text"},
        7,
    ]
)
contents = st.lists(parts, max_size=3)
odd: st.SearchStrategy[Any] = st.sampled_from([None, 5, "", "x", [], {}, [1], {"message_id": 1}, True, 1.5])
versions = st.sampled_from([None, "t:v1", "t:v2", "a:b:v3", "v4", ":v5", "t:", ""])


def said(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Said]:
    """An event of this type with these members, one of which is now and then missing or odd."""
    whole = st.fixed_dictionaries(members)
    bent = st.tuples(whole, st.sampled_from(sorted(members)), odd | st.just(...)).map(
        lambda bend: {name: value for name, value in (bend[0] | {bend[1]: bend[2]}).items() if value is not ...}
    )
    return st.tuples(st.just(kind), weighted((9, whole), (1, bent)))


def weighted(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of these, by weight."""
    return st.sampled_from([strategy for weight, strategy in choices for _ in range(weight)]).flatmap(lambda strategy: strategy)


messages = weighted(
    (4, said("message.delta", message_id=ids, text=texts)),
    (1, said("message.started", message_id=ids, role=st.sampled_from(["assistant", "user"]))),
    (1, said("message.started", message_id=ids, role=st.just("assistant"), content=contents)),
    (2, said("message.checkpoint", message_id=ids, text=texts)),
    (2, said("message.completed", message_id=ids, content=contents, status=st.sampled_from(["interrupted", "completed", None]))),
)
tools = weighted(
    (2, said("tool.requested", tool_call_id=calls, tool=st.just("t"), arguments=odd)),
    (2, said("tool.completed", tool_call_id=calls, tool=st.just("t"), receipt_id=st.just("r"), result_version=versions, result=odd)),
    (1, said("tool.failed", tool_call_id=calls, tool=st.just("t"), error=odd)),
    (1, said("tool.unresolved", tool_call_id=calls, tool=st.just("t"), why=st.just("worker_lost"))),
)
others = st.tuples(st.sampled_from(["invoice.drafted", "reasoning.delta", "tool.progress", "message.liked"]), st.just({"text": "x"}))


def attempt(n: int) -> dict[str, Any]:
    """The payload of an attempt."""
    return {"attempt": n, "worker": "w"}


life: st.SearchStrategy[Said] = st.sampled_from(
    [
        ("run.retrying", {"attempt": 2, "cause": "worker_lost"}),
        ("run.started", attempt(2)),
        ("run.resumed", attempt(2)),
        ("run.waiting", {"wait_id": "w1", "reason": "approval", "prompt": "OK?"}),
        ("input.received", {"input_id": "i1", "wait_id": "w1", "by": "ada", "value": True}),
        ("run.cancel_requested", {"cancel_version": 1, "by": "ada"}),
    ]
)
talk = weighted((9, messages), (1, life))
anything = weighted((5, messages), (3, tools), (2, life), (1, others))
endings: st.SearchStrategy[Said] = st.sampled_from(
    [
        ("run.succeeded", {"outcome": {"a": [1]}}),
        ("run.failed", {"error": {"code": "x", "message": "y"}}),
        ("run.cancelled", {"disposition": "cancelled_after_effect"}),
    ]
)


@st.composite
def logs(draw: st.DrawFn, body: st.SearchStrategy[Said] = anything) -> list[Event]:
    """A run's log: begun, whatever happens, ended or not."""
    return log(*BEGIN, *draw(st.lists(body, min_size=6, max_size=16)), *draw(st.lists(endings, max_size=1)))


def frame(event: Event, at: str) -> dict[str, Any]:
    """An event as a client receives it."""
    return {"sequence": event.sequence, "type": event.type, "occurred_at": at, "payload": json.loads(event.payload)}
