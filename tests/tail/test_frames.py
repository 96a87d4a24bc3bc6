"""Frames: the bytes of the contract, section 5, and nothing re-encoded."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.event import TERMINAL_TYPES, Event, to_frame
from reattach.tail import Frame, Framer, Slice

RUN = "run_07" + "0" * 24
FRAMER = Framer(run_id=RUN, release_id="support-2026.1", scope="tenant_42/ticket_981")


def make(event: Event) -> Frame:
    """One frame of the run above."""
    return FRAMER.frame(event)


def test_a_frame_is_exactly_what_the_contract_says() -> None:
    """Id, event and data lines; the event's fields in the contract's order; one blank line at the end."""
    frame = make(Event(184, "tool.completed", 1_787_566_471_000, b'{"tool":"tickets.add_note"}'))
    assert frame.sse.decode() == (
        f"id: {RUN}:184\n"
        "event: tool.completed\n"
        f'data: {{"run_id":"{RUN}","sequence":184,"event_id":"{RUN}:184","release_id":"support-2026.1",'
        '"type":"tool.completed","occurred_at":"2026-08-24T10:14:31.000Z","resource_scope":"tenant_42/ticket_981",'
        '"payload":{"tool":"tickets.add_note"}}\n\n'
    )


@given(
    st.integers(1, 2**53 - 1),
    st.sampled_from(["message.delta", "run.succeeded", "invoice.drafted.again", "x.y_2"]),
    st.integers(0, 4_102_444_800_000),
    st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text(max_size=30), max_size=5),
    st.none() | st.sampled_from(["other/scope", "a/b/c"]),
)
def test_a_frame_is_what_the_types_would_encode(sequence: int, kind: str, at: int, payload: dict[str, object], scope: str | None) -> None:
    """The prepared pieces say the same as encoding the event as a whole, for any event."""
    raw = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    event = Event(sequence, kind, at, raw, scope)
    frame = make(event)
    whole = msgspec.json.encode(to_frame(event, run_id=RUN, release_id="support-2026.1", scope="tenant_42/ticket_981"))
    assert frame.data == whole
    assert frame.sse == b"id: %b:%d\nevent: %b\ndata: %b\n\n" % (RUN.encode(), sequence, kind.encode(), whole)
    assert frame.terminal == (kind in TERMINAL_TYPES)


def test_a_payload_goes_through_byte_for_byte() -> None:
    """Numbers keep their digits, empty lists stay lists, odd spacing inside strings stays."""
    payload = b'{"n":9007199254740993,"b":100000000000000000000000,"e":[],"o":{},"x":-0.0,"t":"1e16 \xe2\x80\xa8"}'
    assert make(Event(1, "step.done", 0, payload)).data.endswith(b'"payload":' + payload + b"}")


def test_a_redacted_frame_differs_in_its_payload_only() -> None:
    """Same id, sequence, type, time and scope; the payload says that it was left out."""
    event = Event(7, "tool.completed", 1_787_566_471_000, b'{"secret":"a\\"}b"}', "tenant_42/other")
    frame = make(event)
    hidden = frame.redacted()
    assert frame.scope == "tenant_42/other"
    assert b"secret" not in hidden.sse
    assert hidden.sse == frame.sse.replace(event.payload, b'{"redacted":true}')
    assert json.loads(hidden.data) == {**json.loads(frame.data), "payload": {"redacted": True}}
    assert hidden.redacted() == hidden


def test_many_types_do_not_fill_the_memory() -> None:
    """A product may invent a type per event: what is prepared per type is bounded."""
    framer = Framer(run_id=RUN, release_id="r", scope="s")
    frames = [framer.frame(Event(n, f"kind.n{n}", 0, b"{}")) for n in range(1, 1001)]
    assert [json.loads(f.data)["type"] for f in frames] == [f"kind.n{n}" for n in range(1, 1001)]
    assert len(framer._types) <= 256  # pyright: ignore[reportPrivateUsage]


def test_a_slice_knows_its_holes() -> None:
    """`sparse` and `last_gap` are about what is missing behind the viewer's position."""
    frames = [make(Event(n, "step.done", 0, b"{}")) for n in (5, 6, 9, 10)]
    whole = Slice(frames[:2], 4)
    assert (whole.first, whole.last, whole.sparse, whole.last_gap(4)) == (5, 6, False, 0)
    inside = Slice(frames, 4)
    assert (inside.sparse, inside.last_gap(4)) == (True, 9)
    before = Slice(frames[:2], 2)
    assert (before.sparse, before.last_gap(2)) == (True, 5)
    assert whole.sse == frames[0].sse + frames[1].sse
    assert whole.sse is whole.sse
