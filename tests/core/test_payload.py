"""JSON at the edge: what is accepted and carried as it is, and what is refused."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reattach.core.errors import InvalidRequest, PayloadTooLarge, ReattachError
from reattach.core.payload import MAX_DEPTH, MAX_DIGITS, check_json, from_json, to_json

O24 = (
    b'{"n":9007199254740993,"m":9223372036854775807,"u":18446744073709551615,"b":100000000000000000000000,'
    b'"f":0.1,"e":[],"o":{},"z":null,"x":-0.0,"t":"1e16"}'
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def check(raw: bytes | str, *, max_bytes: int = 300_000, want_object: bool = False) -> bytes:
    """`check_json` with room enough."""
    return check_json(raw.encode() if isinstance(raw, str) else raw, max_bytes=max_bytes, what="payload", want_object=want_object)


def strictly(raw: bytes) -> Any:
    """What Python's own parser makes of it: every member of an object, duplicates too, and neither NaN nor Infinity.

    Raises:
        ValueError: It is not JSON, not UTF-8, or has a lone surrogate.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    value = json.loads(raw.decode("utf-8"), parse_constant=refuse, object_pairs_hook=lambda members: ("object", members))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def test_white_space_between_tokens_goes_and_nothing_else_changes() -> None:
    """A payload is one line; digits, order, escapes and duplicates stay as they were written."""
    raw = b' {\r\n "b" : [ 1.50 , -0 ,\t1E+2 ] , "a" : "\\u00e9 \\/ x" , "a" : { } } '
    assert check(raw) == b'{"b":[1.50,-0,1E+2],"a":"\\u00e9 \\/ x","a":{}}'


def test_numbers_and_empty_lists_pass_unchanged() -> None:
    """O24: no number is rounded, no empty list becomes an object, on the way in and for the handler."""
    assert check(O24) == O24
    value = from_json(O24)
    assert value["n"] == 9007199254740993 and value["b"] == 100000000000000000000000 and value["e"] == [] and value["o"] == {}
    assert to_json(value, max_bytes=1000, what="payload") == O24.replace(b"100000000000000000000000", b"1" + b"0" * 23)


@pytest.mark.parametrize(
    "text",
    [
        "\n\n\n", "a\r\rb", "a\r\n\r\nb", "data: x", ": c", "\u0000", " leading", "那个🌍", "e\u0301", "👩‍👩‍👧", "\u2028\u2029\u0085\ufeff",
        *("a" * (size - off) + "🌍" for size in (4096, 8192, 16384, 65536) for off in (1, 2, 3)),
    ],
)  # fmt: skip
def test_any_text_survives_on_one_line(text: str) -> None:
    """O06, O07: strings round-trip code point for code point, and no line break of theirs reaches the wire."""
    for raw in (to_json({"text": text}, max_bytes=300_000, what="payload"), check(json.dumps({"text": text}))):
        assert b"\n" not in raw and b"\r" not in raw
        assert json.loads(raw) == {"text": text}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":"\xf0\x9f\x8c"}', "UTF-8"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'\xef\xbb\xbf{"a":1}', "JSON"),
        (b"", "JSON"),
        (b"   ", "JSON"),
        (b'{"a":NaN}', "JSON"),
        (b'{"a":Infinity}', "JSON"),
        (b'{"a":-Infinity}', "JSON"),
        (b'{"a":1,}', "JSON"),
        (b'{"a":01}', "JSON"),
        (b'{"a":1} x', "JSON"),
        (b'{"a":"\n"}', "JSON"),
        (b'{"a":"\\x"}', "JSON"),
        (b"{'a':1}", "JSON"),
        (b'{"a":"\\ud83d"}', "surrogate"),
        (b'{"a":"\\uDE00"}', "surrogate"),
        (b'{"a":"\\ud83d\\ud83d\\ude00"}', "surrogate"),
        (b'{"\\ude00":1}', "surrogate"),
        (b'{"a":"\\\\\\ud83d"}', "surrogate"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b'{"a":' * 100_000, "nested"),
        (b"[" * 300_000, "nested"),
        (b'{"a":' + b"9" * (MAX_DIGITS + 1) + b"}", "digits"),
        (b'{"a":1e' + b"9" * (MAX_DIGITS + 1) + b"}", "digits"),
    ],
)
def test_what_is_refused_says_why(raw: bytes, reason: str) -> None:
    """Each refusal is typed, names the field and its reason, and shows nothing of the payload."""
    with pytest.raises(InvalidRequest, match=reason) as refused:
        check(raw, max_bytes=600_000)
    assert refused.value.extra["field"] == "payload" and "payload" in refused.value.detail


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\\\\ud83d"}',
        b'{"a":"\\\\\\\\ud83d \\"\\\\ude00"}',
        b'{"a":"\\uD83D\\uDE00\\ud83d\\ude00"}',
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b'{"a":"' + b"[" * 1000 + b'"}',
        b'{"a":"\\"' + b"{[" * 1000 + b'\\\\"}',
        b'{"a":"' + b"9" * 5000 + b'"}',
        b'{"a":' + b"9" * MAX_DIGITS + b"}",
    ],
)
def test_what_only_looks_wrong_is_accepted(raw: bytes) -> None:
    """Escaped backslashes, brackets and digits inside strings, and values right at a limit."""
    assert check(raw) == raw


def test_a_payload_is_an_object() -> None:
    """Other JSON values are refused where an object is wanted, and accepted where it is not."""
    for raw in (b"[]", b'"x"', b"null", b"1"):
        assert check(raw) == raw
        with pytest.raises(InvalidRequest, match="object"):
            check(raw, want_object=True)


def test_size_is_counted_without_white_space() -> None:
    """The limit is on what is stored; far larger text is refused before it is looked at."""
    raw = b'{"a":"' + b"x" * 92 + b'"}'
    assert check(raw + b" " * 300, max_bytes=100) == raw
    for too_large in (raw.replace(b"x", b"xx", 1), raw + b" " * 2000):
        with pytest.raises(PayloadTooLarge) as refused:
            check(too_large, max_bytes=100)
        assert refused.value.extra == {"field": "payload", "max_bytes": 100}


@given(json_values)
@example({"a": [10**30, -0.0, "\u0000\ud7ff\ue000"]})
def test_every_json_value_passes_both_ways(value: Any) -> None:
    """What Python can write is accepted, and what comes out parses to the same; checking twice changes nothing."""
    spaced = json.dumps(value, indent=1).encode()
    line = check(spaced)
    assert strictly(line) == strictly(spaced)
    assert check(line) == line and b"\n" not in line
    own = to_json(value, max_bytes=300_000, what="value", want_object=False)
    assert strictly(own) == strictly(spaced) and check(own) == own


_PIECES = [
    *'[]{}",:019.eE+-\\udDcn/t \n\t\r\x00\x1f',
    *("true", "null", "NaN", "é", "\\ud83d", "\\ude00", '\\"', '"a":', '"b"', '{"a":1}', "\ufeff"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_exactly_what_is_json_is_accepted(text: str) -> None:
    """Whatever is thrown at it: accepted if and only if Python's strict parser accepts it (and it has no lone surrogate)."""
    raw = text.encode()
    try:
        expected = strictly(raw)
    except ValueError:
        with pytest.raises(InvalidRequest):
            check(raw)
    else:
        assert strictly(check(raw)) == expected


@given(st.binary(max_size=40))
def test_any_bytes_are_accepted_or_refused_with_a_type(raw: bytes) -> None:
    """No input raises anything but the documented errors."""
    try:
        check(raw)
    except ReattachError as e:
        assert e.code in ("invalid_request", "payload_too_large")


SIZE = 256 * 1024
HOSTILE = {
    "pairs": b"[" + b",".join([b"[]"] * (SIZE // 3 - 2)) + b"]",
    "chains": b"[" + b",".join([b"[" * 60 + b"]" * 60] * (SIZE // 121 - 1)) + b"]",
    "strings": b'["' + b'","'.join([b"]"] * (SIZE // 4 - 50)) + b'",' + b"[" * 60 + b"]" * 60 + b"]",
    "open string": b"[" * 65 + b'"' + b'\\"' * (SIZE // 2 - 40),
    "open quotes": b"[" * 65 + b'"' * (SIZE - 65),
    "backslashes": b'["' + b"\\\\" * (SIZE // 2 - 100) + b'",' + b"[" * 60 + b"]" * 60 + b"]",
    "surrogates": b'["' + b"\\ud83d\\ude00" * (SIZE // 12 - 1) + b'"]',
    "half surrogates": b'["' + b"\\\\ud83d" * (SIZE // 7 - 2) + b'"]',
    "depth": b"[" * SIZE,
    "digits": b"[" + b"9" * (SIZE - 2) + b"]",
    "runs of digits": b"[" + b",".join([b"9" * MAX_DIGITS] * (SIZE // (MAX_DIGITS + 1) - 1)) + b"]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payloads_cost_milliseconds(name: str) -> None:
    """The largest payload of the worst kind is judged in a time that delays no other request (ours: under 10 ms)."""

    def seconds(act: Callable[[], object]) -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    def judge() -> None:
        with suppress(InvalidRequest):
            check(HOSTILE[name], max_bytes=SIZE)

    assert min(seconds(judge) for _ in range(3)) < 0.1


def test_a_handlers_value_is_written_exactly_or_refused() -> None:
    """Own types become what they mean; what has no exact form is refused rather than turned into something else."""
    assert to_json({"a": (1, 10**40), "b": True}, max_bytes=100, what="p") == b'{"a":[1,' + b"1" + b"0" * 40 + b'],"b":true}'
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    values: list[Any] = [
        {"a": float("nan")}, {"a": float("inf")}, {"a": "\ud83d"}, {"\ude00": 1}, {"a": object()}, {1: "a", "1": "b"}, {"a": [{None: 1}]},
        {"a": loop}, {"a": deep}, {"a": 10**5000}, {"a": 10**MAX_DIGITS}, [], "text",
    ]  # fmt: skip
    for value in values:
        with pytest.raises(InvalidRequest):
            to_json(value, max_bytes=10**6, what="payload")
    with pytest.raises(PayloadTooLarge):
        to_json({"a": "é" * 50}, max_bytes=100, what="payload")
