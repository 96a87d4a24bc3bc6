"""Outcomes as a table: medians, ratios, and whether the bars are met."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

import msgspec

from .measure import median
from .modes import Outcome
from .workloads import OWN, Bar, Workload


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One bar against what was measured; `value` is None where a run did not count or the base was not measured."""

    workload: str
    figure: str
    base: str | None
    value: float | None
    must: float
    aim: float
    more: bool
    said: str


def middle(outcomes: Sequence[Outcome], target: str, figure: str) -> float | None:
    """The median of a figure over all runs of a target that count."""
    values = [o.figures[figure] for o in outcomes if o.target == target and not o.flaw and figure in o.figures]
    return median(values) if values else None


def judge(workload: str, bar: Bar, outcomes: Sequence[Outcome]) -> Verdict:
    """A bar is missed as well if one run of Reattach was not complete."""
    mine, flawed = middle(outcomes, OWN, bar.figure), next((o.flaw for o in outcomes if o.target == OWN and o.flaw), "")
    theirs = 1.0 if bar.base is None else middle(outcomes, bar.base, bar.figure)
    value = None if flawed or mine is None or not theirs else mine / theirs
    if flawed:
        said = f"MISSED: {flawed}"
    elif value is None or math.isnan(value):
        said = "not measured"
    else:
        said = "aim" if bar.meets(value, bar.aim) else "must" if bar.meets(value, bar.must) else "MISSED"
    return Verdict(workload=workload, figure=bar.figure, base=bar.base, value=value, must=bar.must, aim=bar.aim, more=bar.more, said=said)


def verdicts(workload: Workload, outcomes: Sequence[Outcome]) -> list[Verdict]:
    """All bars of a workload."""
    mine = [o for o in outcomes if o.workload == workload.name]
    return [judge(workload.name, bar, mine) for bar in workload.bars]


def number(value: float | None) -> str:
    """As many digits as mean something."""
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def figures(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table per workload: every target's medians, and how many of its runs count."""
    blocks: list[str] = []
    for name in dict.fromkeys(o.workload for o in outcomes):
        mine = [o for o in outcomes if o.workload == name]
        columns = list(dict.fromkeys(figure for o in mine for figure in o.figures))
        lines = [f"| {name} | runs that count | {' | '.join(columns)} |", "|---|--:|" + "--:|" * len(columns)]
        for target in dict.fromkeys(o.target for o in mine):
            runs = [o for o in mine if o.target == target]
            cells = " | ".join(number(middle(mine, target, column)) for column in columns)
            lines.append(f"| {target} | {sum(not o.flaw for o in runs)}/{len(runs)} | {cells} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def bars(judged: Sequence[Verdict]) -> str:
    """A Markdown table of all bars."""
    lines = ["| workload | figure | measured | must | aim | |", "|---|---|--:|--:|--:|---|"]
    for v in judged:
        sign, against = "≥" if v.more else "≤", f" ÷ {v.base}" if v.base else ""
        limits = f"{sign} {number(v.must)} | {sign} {number(v.aim)}"
        lines.append(f"| {v.workload} | {v.figure}{against} | {number(v.value)} | {limits} | {v.said} |")
    return "\n".join(lines)


def picture(outcomes: Sequence[Outcome], workload: str, figure: str) -> str:
    """An SVG of one figure: a bar per target, shortest first."""
    mine = [o for o in outcomes if o.workload == workload]
    found = [(t, v) for t in dict.fromkeys(o.target for o in mine) if (v := middle(mine, t, figure)) is not None]
    found.sort(key=lambda pair: pair[1])
    top, height = max((v for _, v in found), default=1.0) or 1.0, 40 + 26 * len(found)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" font-family="system-ui, sans-serif" font-size="13">']
    parts += ['<rect width="100%" height="100%" fill="#fff"/>', f'<text x="10" y="22">{escape(f"{workload}: {figure}")}</text>']
    for i, (target, value) in enumerate(found):
        y, color = 36 + 26 * i, "#2563eb" if target == OWN else "#94a3b8"
        parts.append(f'<text x="150" y="{y + 14}" text-anchor="end">{escape(target)}</text>')
        parts.append(f'<rect x="158" y="{y}" width="{max(1, 390 * value / top):.0f}" height="18" fill="{color}"/>')
        parts.append(f'<text x="{164 + max(1, 390 * value / top):.0f}" y="{y + 14}">{number(value)}</text>')
    return "\n".join([*parts, "</svg>", ""])
