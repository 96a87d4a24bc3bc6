"""Medians, and tables of them."""

import statistics
from collections.abc import Iterable, Sequence


def median(values: Iterable[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Plain columns, the first one to the left."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    out = [title, ""]
    for line in lines:
        out.append("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))))
    return "\n".join([*out, ""])
