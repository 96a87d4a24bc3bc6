"""Output as the README shows it, compared with output as it is.

What differs from run to run (ids, times, process numbers …) is compared by its form, a path, a port and a host by what they are here.
``…`` stands for anything: within a line for a part of it, on a line of its own for any lines.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

ANYTHING: Final = "…"

_FORMS: Final = (
    r"run_[0-9a-z]{26}(?::\d+)?",
    r"(?:receipt|input)_[0-9a-f]{20}",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    r"\d+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT",
    r"(?<=-)\d+(?:-[0-9a-f]{8})?\b",
    r"\b\d{13}\b",
    r"(?<=process )\d+",
    r"(?<=retry: )\d+",
    r"(?<=content-length: )\d+",
    r'(?<=etag: ")\d+',
    r'(?<="sequence":)\d+',
    r'(?<="seconds":)\d+\.\d+',
    r'(?<="fence":")[0-9a-f]{32}',
    r"^ +\d+(?=  \w)",
    r"(?<=,)\d+(?=,1\]\])",
    r"\b\d+\.\d+\.\d+(?=[,\"])",
)
"""What differs, found and described by the same expression."""

_VOLATILE: Final = re.compile("|".join(_FORMS))


def compare(shown: str, actual: str, places: Mapping[str, str]) -> None:
    """Compare a piece of output.

    Args:
        shown: As the README has it.
        actual: As it was printed just now.
        places: What the README says → what it is here.

    Raises:
        AssertionError: They differ; it says where.
    """
    for there, here in places.items():
        shown = shown.replace(there, here)
    lines = [line.rstrip() for line in actual.rstrip().splitlines()]
    # What stands between two gaps stands together.
    parts = [part.splitlines() for part in re.split(rf"(?m)^{ANYTHING}$\n?", shown)]
    position = 0
    for number, part in enumerate(parts):
        earliest, latest = position, len(lines) - len(part)
        if number == 0:
            latest = min(latest, 0)
        if number == len(parts) - 1 and part:
            earliest = max(earliest, len(lines) - len(part))
        looks = [_pattern(line) for line in part]
        found = next(
            (i for i in range(earliest, latest + 1) if all(look.fullmatch(line) for look, line in zip(looks, lines[i:], strict=False))),
            None,
        )
        assert found is not None, _difference(part, lines[position:])
        position = found + len(part)


def _difference(part: list[str], lines: list[str]) -> str:
    wanted, there = ("\n".join(line[:400] for line in some[:40]) for some in (part, lines))
    return f"the README shows\n\n{wanted or 'nothing more'}\n\nwhere there is\n\n{there or 'nothing more'}"


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(".*".join(_part(part) for part in re.split(f" ?{ANYTHING} ?", wanted)))


def _part(text: str) -> str:
    spans = [(0, 0), *(match.span() for match in _VOLATILE.finditer(text)), (len(text), len(text))]
    made = ""
    for (start, end), (following, _) in pairwise(spans):
        made += _form(text, start, end) + re.escape(text[end:following])
    return made


def _form(text: str, start: int, end: int) -> str:
    """The expression that this part of the text is an example of; nothing for the empty part at the beginning."""
    if start == end:
        return ""
    return next(form for form in _FORMS if (match := re.compile(form).match(text, start)) and match.end() == end)
