"""Numbers that can be compared: CPU time of processes, percentiles, medians of interleaved repetitions."""

import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path


def cpu_seconds(pid: int) -> float | None:
    """Time on a CPU of all threads of a process so far; None where the system does not tell."""
    try:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def spent(before: float | None, after: float | None) -> float:
    """Seconds between two readings; not a number where there are none."""
    return float("nan") if before is None or after is None else after - before


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


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


def now_ns() -> int:
    """A clock that all processes of this machine share."""
    return time.monotonic_ns()
