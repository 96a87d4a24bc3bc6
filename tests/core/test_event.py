"""Event types, frames and the times in them."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.errors import InvalidRequest
from reattach.core.event import DELTA_TYPES, MAX_TYPE, TERMINAL_TYPES, TYPE_PATTERN, Event, check_type, event_id, to_frame
from reattach.core.times import rfc3339

RUN = "run_070123456789abcdefghjkmnpq"


@pytest.mark.parametrize("name", ["invoice.drafted", "message.delta", "tool.progress", "a.b", "a1_.b_2.c", "x." + "y" * (MAX_TYPE - 2)])
def test_a_products_own_types(name: str) -> None:
    """Lower-case words joined by dots."""
    assert check_type(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", "a", "invoice", ".a", "a.", "a..b", "A.b", "a.B", "1.b", "a.1", "_a.b", "a.b ", " a.b", "a.b\n", "a\n.b", "a.b\r",
        "a.b\r\ndata: x", "text.delta\nid: x:999\nevent: run.succeeded\ndata: {}", "a.b\x00", "a.é", "а.b", "a-b.c", "a:b.c",
        "x." + "y" * (MAX_TYPE - 1), "run.succeeded", "run.anything", "input.received", "stream.closing",
    ],
)  # fmt: skip
def test_types_that_are_refused(name: str) -> None:
    """O07: a type that could end its line, or pass for one of Reattach's own, is never appended."""
    with pytest.raises(InvalidRequest) as refused:
        check_type(name)
    assert refused.value.extra == {"field": "type"}


@given(st.text(alphabet="aZ09_.-\n é", max_size=8) | st.text(max_size=70))
def test_the_alphabet_is_the_documented_one(name: str) -> None:
    """Fuzz: accepted if and only if the documented expression matches the whole name, and it is short enough."""
    documented = re.fullmatch(TYPE_PATTERN.removeprefix("^").removesuffix("$"), name) is not None and len(name) <= MAX_TYPE
    try:
        check_type(name)
    except InvalidRequest:
        assert not documented
    else:
        assert documented


def test_no_event_is_both_the_last_and_forgotten_early() -> None:
    """What ends a run belongs to the class that is kept."""
    assert not TERMINAL_TYPES & DELTA_TYPES
    assert Event(3, "run.failed", 0, b"{}").is_terminal and not Event(3, "message.delta", 0, b"{}").is_terminal


def test_a_frame_carries_the_payload_as_it_is() -> None:
    """The event as clients see it: the run's constants, its own scope where it has one, and every byte of the payload."""
    payload = b'{"n":9007199254740993,"f":1.50,"e":[],"text":"\\u00e9"}'
    frame = to_frame(Event(184, "a.b", 1787912071042, payload), run_id=RUN, release_id="r-1", scope="t/x")
    assert msgspec.json.encode(frame) == (
        b'{"run_id":"%b","sequence":184,"event_id":"%b:184","release_id":"r-1","type":"a.b","occurred_at":"2026-08-28T10:14:31.042Z",'
        b'"resource_scope":"t/x","payload":%b}' % (RUN.encode(), RUN.encode(), payload)
    )
    scoped = to_frame(Event(1, "a.b", 0, payload, "t/y"), run_id=RUN, release_id="r", scope="t/x", payload=b'{"redacted":true}')
    assert (scoped.resource_scope, bytes(scoped.payload)) == ("t/y", b'{"redacted":true}')


@pytest.mark.parametrize("sequence", [1, 184, 99_999_999_999_998, 2**53 - 1])
def test_ids_are_plain_decimal(sequence: int) -> None:
    """O24: no sequence is ever written with an exponent."""
    assert event_id(RUN, sequence) == f"{RUN}:{sequence}" and "e" not in event_id(RUN, sequence).rpartition(":")[2]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_709_208_000_007, "2024-02-29T12:00:00.007Z"),
        (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_utc_with_milliseconds(ms: int, text: str) -> None:
    """RFC 3339, always three decimals, always Z."""
    assert rfc3339(ms) == text
