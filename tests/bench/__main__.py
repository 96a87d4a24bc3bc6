"""``python -m tests.bench``: every workload against every target, in turn, and tables of ratios and bars."""

import sys
import tempfile
from pathlib import Path

import click
import msgspec

from ..support.servers import private_redis
from . import append, frames, memory, report
from .engine import build
from .modes import Outcome, measure
from .workloads import APPENDS, TARGETS, WORKLOADS, Workload

PARTS = ("frames", "memory", "append", "fanout", "many", "replay", "idle", "storm")


def series(workload: Workload, repetitions: int, *, quiet: bool = False) -> list[Outcome]:
    """A B C, A B C, A B C: drift hits all alike. Targets that are not installed are left out with a message."""
    there = list[str]()
    for name in workload.targets:
        if command := TARGETS[name](workload.params).missing():
            click.echo(f"{name} is not installed and left out; to measure it: {command}", err=True)
        else:
            there.append(name)
    outcomes: list[Outcome] = []
    for _ in range(repetitions):
        for name in there:
            outcome = measure(TARGETS[name](workload.params), workload.mode, workload.name)
            outcomes.append(outcome)
            if not quiet:
                said = outcome.flaw or " ".join(f"{key}={report.number(value)}" for key, value in outcome.figures.items())
                click.echo(f"{workload.name}: {name}: {said}", err=True)
    return outcomes


def _store(part: str, repetitions: int, quick: bool) -> list[Outcome]:
    """What needs a store and no server."""
    with tempfile.TemporaryDirectory() as name, private_redis(Path(name) / "redis") as redis:
        if part == "append":
            return append.measure(redis, repetitions=repetitions, events={1: 1600, 8: 6400, 32: 12800} if quick else append.EVENTS)
        click.echo(frames.run(repetitions=repetitions) if part == "frames" else memory.run(redis, runs=50 if quick else memory.RUNS))
        return []


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--reps", default=3, show_default=True, help="Repetitions, interleaved; the tables show medians.")
@click.option("--quick", is_flag=True, help="Small workloads, once: about a minute. Figures of small workloads are not held against bars.")
@click.option("--only", default="", help="Only workloads with this in their name.")
@click.option("--json", "saved", type=click.Path(path_type=Path), help="Write all outcomes to this file.")
@click.option("--svg", "folder", type=click.Path(path_type=Path, file_okay=False), help="Draw the first bar of each workload here.")
def main(parts: tuple[str, ...], reps: int, quick: bool, only: str, saved: Path | None, folder: Path | None) -> None:
    """Measure PARTS (all of them by default); exit 1 if a bar is missed. Compare ratios of one series, never figures of two days."""
    try:
        build("engine")
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    chosen, reps, outcomes, judged = parts or PARTS, 1 if quick else reps, list[Outcome](), list[report.Verdict]()
    for part in (p for p in ("frames", "memory", "append") if p in chosen and not only):
        outcomes += _store(part, reps, quick)
    for batch, bar in APPENDS.items():
        if mine := [o for o in outcomes if o.workload == append.NAME.format(batch)]:
            judged.append(report.judge(append.NAME.format(batch), bar, mine))
    workloads = [w for w in WORKLOADS if w.mode in chosen and only in w.name]
    for workload in workloads:
        outcomes += series(workload.small() if quick else workload, reps)
        judged += report.verdicts(workload, outcomes)
    click.echo(report.figures(outcomes))
    if not quick:
        click.echo(f"\n{report.bars(judged)}")
    if saved is not None:
        saved.write_bytes(msgspec.json.format(msgspec.json.encode({"outcomes": outcomes, "bars": judged})))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for number, workload in enumerate(workloads, 1):
            if workload.bars:
                (folder / f"{number}-{workload.mode}.svg").write_text(report.picture(outcomes, workload.name, workload.bars[0].figure))
    sys.exit(not quick and any(v.said.startswith("MISSED") for v in judged))


if __name__ == "__main__":
    main()
