"""What is said again so that deltas may go says exactly what they said."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reattach.core.covering import covering
from reattach.core.event import DELTA_TYPES, Event
from reattach.core.fold import Fold

from .folding import fold, log, raw_view
from .logs import logs, talk

ROOM = 1 << 20


def said(folded: Fold, through: int, max_bytes: int = ROOM) -> list[tuple[str, Any]]:
    """What would be appended: types and payloads."""
    return [(draft.type, json.loads(draft.payload)) for draft in covering(folded, through=through, max_bytes=max_bytes)]


def shown(folded: Fold) -> Any:
    """What a snapshot shows, without what every event changes."""
    view = json.loads(raw_view(folded))
    return {name: value for name, value in view.items() if name not in ("sequence", "last_activity_at")}


def delta(text: str, message_id: str = "m") -> tuple[str, Any]:
    """A piece of a message."""
    return ("message.delta", {"message_id": message_id, "text": text})


@given(logs(talk), st.data())
def test_nothing_else_changes(events: list[Event], data: st.DataObject) -> None:
    """With what is said again the snapshot is the same, for whoever was sent the deltas and for whoever was not."""
    whole = fold(events)
    through = data.draw(st.integers(0, len(events)))
    drafts = covering(whole, through=through, max_bytes=ROOM)
    added = [Event(len(events) + n, draft.type, events[-1].at, draft.payload) for n, draft in enumerate(drafts, 1)]
    after = fold([*events, *added])
    assert shown(after) == shown(whole)
    left = [e for e in events if e.type not in DELTA_TYPES or e.sequence > after.covered]
    assert shown(fold([*left, *added])) == shown(whole)
    assert covering(after, through=through, max_bytes=ROOM) == []


def test_a_text_that_is_being_written_gets_a_checkpoint() -> None:
    """Whole so far, and the deltas behind the given place count as well."""
    folded = fold(log(("message.started", {"message_id": "m"}), delta("a"), delta("b"), delta("c")))
    assert said(folded, 3) == [("message.checkpoint", {"message_id": "m", "text": "abc"})]
    assert said(folded, 1) == []


def test_a_text_that_nobody_goes_on_with_is_completed_as_interrupted() -> None:
    """Its worker was lost; the next one goes on under another id."""
    events = log(
        ("message.started", {"message_id": "m", "role": "user", "content": [{"type": "image", "url": "x"}]}),
        delta("a"),
        ("run.retrying", {"attempt": 2, "cause": "worker_lost"}),
    )
    [(kind, payload)] = said(fold(events), 3)
    assert kind == "message.completed"
    content = [{"type": "image", "url": "x"}, {"type": "text", "text": "a"}]
    assert payload == {"message_id": "m", "role": "user", "content": content, "status": "interrupted"}


def test_what_is_too_large_stays_with_its_deltas() -> None:
    """Neither is a payload larger than allowed, nor is a long text said again for a few deltas more."""
    few = fold(log(delta("x" * 5000), delta("y")))
    assert said(few, 2) == []
    many = fold(log(*(delta("x" * 10) for _ in range(60))))
    assert len(said(many, 60)) == 1
    assert said(many, 60, max_bytes=500) == []


def test_what_few_may_read_is_said_to_few() -> None:
    """Under the scope that its deltas had; what had several stays, since one event cannot be about all of them."""
    one = [Event(n, "message.delta", 0, b'{"message_id":"m","text":"a"}', "t/secret" if n > 1 else None) for n in range(1, 9)]
    [draft] = covering(fold(one), through=8, max_bytes=ROOM)
    assert draft.scope == "t/secret"
    more = Event(9, "message.delta", 0, b'{"message_id":"m","text":"a"}', "t/other")
    assert covering(fold([*one, more]), through=9, max_bytes=ROOM) == []
