"""``python -m tests.chaos``: break everything for a while, then look whether every run tells one true story."""

import asyncio
import random
import sys
import tempfile
from pathlib import Path

import click

from .experiment import within
from .plan import make_plan


@click.command()
@click.option("--seed", type=int, help="The same seed decides the same; without one, one is picked and printed.")
@click.option("--runs", default=200, show_default=True, help="Runs that are asked for.")
@click.option("--seconds", default=110.0, show_default=True, help="How long things break.")
@click.option("--long", "long_", is_flag=True, help="1,000 runs in twenty minutes.")
@click.option("--keep", type=click.Path(path_type=Path), help="An empty folder for logs, Redis's file and counters.")
def main(seed: int | None, runs: int, seconds: float, long_: bool, keep: Path | None) -> None:
    """Kill, freeze, drain and cut three workers, two APIs and Redis while runs with effects and waits go on."""
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    runs, seconds = (1000, 1200.0) if long_ else (runs, seconds)
    with tempfile.TemporaryDirectory() as name:
        folder = keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise click.UsageError(f"{folder} is not empty: the runs of an earlier time would be found again")
        click.echo(f"seed {seed}")
        tally, verdict = asyncio.run(within(make_plan(seed, runs=runs, seconds=seconds, folder=folder), folder, click.echo))
    for finding in tally.findings:
        click.echo(f"* {finding}")
    click.echo(verdict)
    sys.exit(bool(tally.findings))


if __name__ == "__main__":
    main()
