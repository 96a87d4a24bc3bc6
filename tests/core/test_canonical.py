"""Bodies are compared as parsed JSON."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reattach.core.payload import canonical, check_json

from .test_payload import json_values


@pytest.mark.parametrize(
    "same",
    [
        ["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"],
        ["0", "-0", "0.0", "-0.0e5", "0e99999999999999999999"],
        ["100000000000000000000000", "1e23", "1.0E23", "100000000000000000000000.0"],
        ["0.1", "1e-1", "0.10", "100e-3"],
        ["-12.5", "-125e-1", "-1.25e1"],
        ["1e99999999999999999999", "10e99999999999999999998"],
        ['{"a":1,"b":[2,{}]}', ' { "b" : [ 2 , { } ] , "a" : 1 } ', '{"a":0,"b":[2,{}],"a":1.0}'],
        ['"é"', '"\\u00e9"'],
        ['"\\ud83c\\udf0d"', '"🌍"'],
        ['"a/b"', '"a\\/b"'],
    ],
)
def test_one_value_has_one_spelling(same: list[str]) -> None:
    """White space, order, escapes and the way a number is written make no difference; nor does a size that no number type holds."""
    assert len({canonical(text.encode()) for text in same}) == 1


@pytest.mark.parametrize(
    "different",
    [
        ["9007199254740993", "9007199254740992", "9007199254740992.0000001"],
        ["0.1", "0.1000000000000000055511151231257827"],
        ["1", '"1"', "[1]", '{"\\u0000number":"1e0"}', "true"],
        ["1e300", '{"\\u0000number":"1e300"}', '{"\\u0000\\u0000number":"1e300"}'],
        ["1e99999999999999999999", "1e99999999999999999998", "-1e99999999999999999999"],
        ["[]", "{}", "null", '""', "false", "0"],
        ["[1,2]", "[2,1]"],
        ['"e\u0301"', '"\u00e9"'],
    ],
)
def test_different_values_are_told_apart(different: list[str]) -> None:
    """Nothing is rounded before it is compared, and no value can pass for another."""
    assert len({canonical(text.encode()) for text in different}) == len(different)


@given(json_values)
def test_spelling_does_not_matter(value: Any) -> None:
    """However a value is written, its canonical form is the same."""
    assert canonical(json.dumps(value, indent=2).encode()) == canonical(json.dumps(value, ensure_ascii=False).encode())


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@given(numbers, numbers)
@example("1e14", "100000000000000")
@example("1e15", "1000000000000000")
def test_numbers_are_equal_when_they_are_equal(one: str, other: str) -> None:
    """Compared with exact fractions: equal numbers have one form, unequal ones two."""
    assert check_json(one.encode(), max_bytes=100, what="number", want_object=False) == one.encode()
    assert (canonical(one.encode()) == canonical(other.encode())) == (Fraction(one) == Fraction(other))
