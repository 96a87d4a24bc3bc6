"""README.md, taken apart.

Its fenced blocks mean: ``sh`` is run, in order, and shows the ``text`` that follows it directly; ``python`` is saved as ``shop.py``;
``bash`` needs what a test has not (a cluster, Docker), so its commands are only checked to exist.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from ..support.processes import ROOT

README: Final = ROOT / "README.md"
_NAMES: Final = re.compile(r"`([^`]+)`")


class Block(NamedTuple):
    """One fenced block, and what the README says that it prints."""

    language: str
    text: str
    line: int
    shows: str | None


class Table(NamedTuple):
    """One table: its column names and its rows, as they are written."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@cache
def text() -> str:
    """All of it."""
    return README.read_text("utf-8")


@cache
def blocks() -> tuple[Block, ...]:
    """Every fenced block; a ``text`` that belongs to a command is part of the command's."""
    found: list[Block] = []
    last = 0
    for match in re.finditer(r"(?ms)^```(\w+)\n(.*?)^```$\n", text()):
        if match[1] == "text" and found and match.start() == last:
            found[-1] = found[-1]._replace(shows=match[2])
        else:
            found.append(Block(match[1], match[2], text()[: match.start()].count("\n") + 1, None))
        last = match.end()
    return tuple(found)


def in_language(language: str) -> tuple[Block, ...]:
    """The blocks of one kind."""
    return tuple(block for block in blocks() if block.language == language)


@cache
def tables() -> tuple[Table, ...]:
    """Every table."""
    found: list[Table] = []
    for match in re.finditer(r"(?m)^\|.*\|\n\|(?:-+\|)+\n((?:\|.*\|\n)+)", text()):
        first, _, *rows = (_cells(line) for line in match[0].splitlines())
        assert all(len(row) == len(first) for row in rows), f"a row has too few or too many cells: {first}"
        found.append(Table(first, tuple(rows)))
    return tuple(found)


def table(first_column: str, second_column: str) -> Table:
    """The one table that begins with these columns."""
    [found] = [t for t in tables() if t.columns[:2] == (first_column, second_column)]
    return found


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def names(cell: str) -> list[str]:
    """What stands in a cell as code."""
    return _NAMES.findall(cell)
