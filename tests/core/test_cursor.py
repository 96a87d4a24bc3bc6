"""Cursors: the two forms, which of several counts, and what each is worth against a log (contract, section 5)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.cursor import MAX_SEQUENCE, LogBounds, judge, parse_cursor, pick_cursor
from reattach.core.errors import CursorError, CursorExpired, CursorRunMismatch, FutureCursor, MalformedCursor

RUN = "run_070123456789abcdefghjkmnpq"
OTHER = "run_080123456789abcdefghjkmnpq"
FORMS = re.compile(r"(run_070123456789abcdefghjkmnpq:)?(0|[1-9][0-9]*)")


@pytest.mark.parametrize(
    ("text", "sequence"), [("0", 0), ("5", 5), ("184", 184), (f"{RUN}:184", 184), (f"{RUN}:0", 0), (str(MAX_SEQUENCE), MAX_SEQUENCE)]
)
def test_the_two_forms(text: str, sequence: int) -> None:
    """A sequence, or an event id of this run."""
    assert parse_cursor(text, RUN) == sequence


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "abc", "$", "+", "-", "*", ">", "0-0", "5-0", "1e3", "00012", "+5", " 12 ", "12\n", "\n12", "12\x00", "１２", "١٢",
        "²", "null", "undefined", "NaN", "1.0", "0x10", "1_000", "9" * 8192, "99999999999999999999", str(MAX_SEQUENCE + 1), "184,185",
        '"184"', f"{RUN}", f"{RUN}:", f"{RUN}: 5", f"{RUN}:05", f"{RUN}:-1", f"{RUN}:$", f"{RUN}:5\n", f" {RUN}:5", f"{RUN}:5:5",
        f"{RUN}:{RUN}:5", f"{RUN.upper()}:5", ":5", "run_:5", "run_x:5", "x:5", f"{RUN}0:5", f"{RUN[:-1]}:5", f"{RUN[:-1]}u:5",
        f"{OTHER}:abc",
    ],
)  # fmt: skip
def test_nothing_else_is_a_cursor(text: str) -> None:
    """O10: nothing is trimmed or read kindly; each odd value is refused with its type."""
    with pytest.raises(MalformedCursor):
        parse_cursor(text, RUN)


@pytest.mark.parametrize("foreign", [OTHER, "run_03" + "0" * 24, "run_" + "z" * 26])
def test_a_cursor_of_another_run(foreign: str) -> None:
    """O08: whether that run exists cannot be told, since nothing is asked about it."""
    with pytest.raises(CursorRunMismatch) as refused:
        parse_cursor(f"{foreign}:3", RUN)
    assert foreign not in refused.value.detail and refused.value.extra == {}


near = st.sampled_from([RUN, OTHER, "run_", ":", "0", "1", "9", "12", "-", "+", "$", " ", "\n", "e", "é", "１"])


@given(st.lists(near, max_size=5).map("".join) | st.text(max_size=12) | st.integers().map(str))
def test_only_the_two_forms_are_read(text: str) -> None:
    """Fuzz: a text is read if and only if it is one of the two forms, and then as the number it shows."""
    try:
        sequence = parse_cursor(text, RUN)
    except CursorError as e:
        assert e.status == 400
        match = FORMS.fullmatch(text)
        assert match is None or int(match[2]) > MAX_SEQUENCE
    else:
        match = FORMS.fullmatch(text)
        assert match is not None and sequence == int(match[2])


@pytest.mark.parametrize(
    ("headers", "after", "expected"),
    [
        ([], [], 0),
        ([], ["7"], 7),
        (["5"], ["7"], 5),
        (["5"], ["nonsense"], 5),
        (["5", "5"], [], 5),
        ([""], [], 0),
        ([""], ["7"], 7),
        (["", ""], ["7"], 7),
        ([f"{RUN}:5"], ["0"], 5),
        (["0"], ["7"], 0),
    ],
)
def test_which_cursor_counts(headers: list[str], after: list[str], expected: int) -> None:
    """The header wins; an empty one is no cursor (O01), and then the query counts."""
    assert pick_cursor(headers, after, RUN) == expected


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        (["5", "6"], []),
        (["5", ""], []),
        (["5", f"{RUN}:5"], []),
        ([], ["5", "6"]),
        ([], [""]),
        (["x"], ["5"]),
        (["5, 6"], []),
        ([" "], ["5"]),
    ],
)
def test_cursors_that_contradict(headers: list[str], after: list[str]) -> None:
    """Two that differ, or one that is none, are refused rather than chosen from."""
    with pytest.raises(MalformedCursor):
        pick_cursor(headers, after, RUN)


def bounds(sequence: int, earliest: int, state: str = "running") -> LogBounds:
    """A log's bounds."""
    return LogBounds(sequence=sequence, earliest_sequence=earliest, state=state, terminal=state != "running", render="partial_message")


@pytest.mark.parametrize(
    ("cursor", "sequence", "earliest", "verdict"),
    [
        (0, 200, 1, None),
        (199, 200, 1, None),
        (200, 200, 1, None),
        (201, 200, 1, FutureCursor),
        (MAX_SEQUENCE, 200, 1, FutureCursor),
        (0, 200, 151, CursorExpired),
        (149, 200, 151, CursorExpired),
        (150, 200, 151, None),
        (151, 200, 151, None),
        (0, 200, 201, CursorExpired),
        (199, 200, 201, CursorExpired),
        (200, 200, 201, None),
        (201, 200, 201, FutureCursor),
    ],
)
def test_what_a_cursor_is_worth(cursor: int, sequence: int, earliest: int, verdict: type[CursorError] | None) -> None:
    """Replayable, ahead, or behind what is kept: exact to one event on both sides."""
    if verdict is None:
        judge(cursor, bounds(sequence, earliest), run_id=RUN)
    else:
        with pytest.raises(verdict):
            judge(cursor, bounds(sequence, earliest), run_id=RUN)


def test_refusals_tell_the_way_on() -> None:
    """Both answers name latest sequence, state and snapshot; an expired cursor also a cursor that works, and it does."""
    log = bounds(200, 151, "succeeded")
    facts = {"latest_sequence": 200, "state": "succeeded", "snapshot": f"/agent-runs/{RUN}"}
    with pytest.raises(FutureCursor) as ahead:
        judge(201, log, run_id=RUN)
    assert ahead.value.extra == facts and ahead.value.status == 416
    with pytest.raises(CursorExpired) as behind:
        judge(3, log, run_id=RUN)
    assert behind.value.extra == facts | {"earliest_sequence": 151, "resume_after": f"{RUN}:200", "render": "partial_message"}
    judge(parse_cursor(behind.value.extra["resume_after"], RUN), log, run_id=RUN)
