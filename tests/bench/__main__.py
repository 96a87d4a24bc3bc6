"""``python -m tests.bench``: everything, one after the other, and a table of each."""

import tempfile
from pathlib import Path

import click

from ..support.servers import private_redis
from . import append, fanout, frames, memory

PARTS = ("frames", "append", "memory", "fanout")


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--reps", default=3, show_default=True, help="Repetitions, interleaved; the tables show medians.")
@click.option("--viewers", default=200, show_default=True, help="Viewers of the fan-out.")
def main(parts: tuple[str, ...], reps: int, viewers: int) -> None:
    """Measure PARTS (all of them by default). Compare the ratios; absolute figures are this machine's in this minute."""
    with tempfile.TemporaryDirectory() as name, private_redis(Path(name) / "redis", options=("--maxclients", "20000")) as redis:
        for part in parts or PARTS:
            if part == "frames":
                click.echo(frames.run(repetitions=reps))
            elif part == "append":
                click.echo(append.run(redis, repetitions=reps))
            elif part == "memory":
                click.echo(memory.run(redis))
            else:
                click.echo(fanout.run(redis, Path(name), repetitions=reps, viewers=viewers))


if __name__ == "__main__":
    main()
