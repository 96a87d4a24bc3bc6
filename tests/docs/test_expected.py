"""The comparison that the README's blocks are checked with finds what it has to find."""

import pytest

from .expected import compare

RUN, OTHER = "run_06xx2kc3s0wc7acpwrb0pjccrt", "run_11reyb61ex3qw1h5ye9m9sbfmg"


@pytest.mark.parametrize(
    ("shown", "actual"),
    [
        ("a\nb\n", "a  \nb\n"),
        (f'{{"run_id":"{RUN}","sequence":7, … ,"state":"queued"}}\n', f'{{"run_id":"{OTHER}","sequence":19,"x":1,"state":"queued"}}'),
        ("a\n…\nd\ne\n", "a\nb\nd\nc\nd\ne"),
        ("a\n…\n", "a\nb\nc"),
        (f"id: {RUN}:1\n…\nid: {RUN}:2\nevent: b\n…\n", f"id: {OTHER}:1\nevent: a\nid: {OTHER}:2\nevent: b\nid: {OTHER}:3"),
        ("api  http://127.0.0.1:8080\n", "api  http://127.0.0.1:4711"),
        ("   77  retrying         attempt 2\n", "    8  retrying         attempt 2"),
    ],
)
def test_what_differs_only_in_ids_and_gaps_is_the_same(shown: str, actual: str) -> None:
    """Ids, times and numbers of a process are compared by form, ``…`` with anything."""
    compare(shown, actual, {":8080": ":4711"})


@pytest.mark.parametrize(
    ("shown", "actual"),
    [
        ("HTTP/1.1 201 Created\n", "HTTP/1.1 200 OK"),
        ("a\n", "a\nb"),
        ("a\nb\n", "a"),
        ("a\n…\nc\n", "a\nc\nb"),
        ("…\nb\nc\n", "a\nb\nx\nc"),
        (f'{{"run_id":"{RUN}"}}\n', '{"run_id":"run_short"}'),
        ('{ … ,"code":"future_cursor"}\n', '{"code":"cursor_expired"}'),
        ("attempt 2\n", "attempt 1"),
        ('{"max_body":1048576, … }\n', '{"max_body":1048577,"a":1}'),
    ],
)
def test_what_differs_otherwise_is_told(shown: str, actual: str) -> None:
    """A word, a status, a line too many or too few."""
    with pytest.raises(AssertionError, match="the README shows"):
        compare(shown, actual, {})
