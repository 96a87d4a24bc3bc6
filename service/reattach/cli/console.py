"""What the commands print: aligned lines and tables for people, JSON lines for programs."""

import asyncio
import json
import logging
import os
import stat
import sys
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

import click

from ..core.settings import Settings
from ..obs.log import setup_logging
from .main import EXIT_REFUSED

_LABEL: Final = 8
_KEPT: Final = frozenset("\n\t")

STATE_COLOURS: Final = {
    "queued": "yellow",
    "running": "blue",
    "waiting": "magenta",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "red",
}


class Unwritable(click.ClickException):
    """A command's output has nowhere to go, e.g. since the disk is full."""

    exit_code = EXIT_REFUSED


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a person reads the stream (standard output by default)."""
    return (stream or sys.stdout).isatty()


def paint(text: str, colour: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
    """Text in colour, where a terminal shows it and ``NO_COLOR`` is not set."""
    if not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=colour, bold=bold or None, dim=dim or None)


def state(name: str) -> str:
    """A run's state in its colour."""
    return paint(name, STATE_COLOURS.get(name))


def clean(text: str) -> str:
    """Text that cannot steer a terminal: what a model or a tool wrote is shown, never obeyed."""
    return "".join(c if c in _KEPT or unicodedata.category(c) != "Cc" else "\ufffd" for c in text)


def start_logs(settings: Settings, *, quiet: bool = False) -> None:
    """Send logs to standard error.

    Args:
        settings: `log_format`.
        quiet: Show warnings only where a person looks on, who is told by `say` what happens.
    """
    watched = quiet and is_terminal(sys.stderr)
    setup_logging(settings.log_format, level=logging.WARNING if watched else logging.INFO)
    if watched:
        logging.getLogger("reattach.auth").setLevel(logging.ERROR)


def say(label: str, text: str) -> None:
    """One line of a service: what it is about, in a column of its own, and what there is to say. Printed at once.

    A service does not end because nobody reads its lines any more.
    """
    with suppress(OSError):
        print(f"  {paint(f'{label:<{_LABEL}}', bold=True)}{text}", flush=True)


def note(text: str) -> None:
    """A remark that is not part of a command's output."""
    with suppress(OSError):
        click.echo(text, err=True)


def write(text: str) -> None:
    """A part of a command's output, shown at once.

    Raises:
        Unwritable: It cannot be written. A reader that has left is a `BrokenPipeError`.
    """
    with _writing():
        sys.stdout.write(text)
        sys.stdout.flush()


def write_bytes(data: bytes) -> None:
    """The same for bytes that are UTF-8 already."""
    with _writing():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def _writing() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        # What is still buffered would fail once more at the exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise Unwritable(f"the output cannot be written: {e.strerror}") from None


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, coloured: int | None = None) -> None:
    """Rows under headers, as wide as their widest entry; one column may hold states, which are coloured."""
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headers), *cells]) for i in range(len(headers))]
    write(paint("  ".join(f"{h:<{w}}" for h, w in zip(headers, widths, strict=True)).rstrip(), dim=True) + "\n")
    for row in cells:
        padded = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        if coloured is not None:
            padded[coloured] = paint(padded[coloured], STATE_COLOURS.get(row[coloured]))
        write("  ".join(padded).rstrip() + "\n")


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, aligned; a value of several lines stays in its column."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        first, *rest = value.split("\n")
        write(f"{paint(f'{name:<{width}}', dim=True)}  {first}\n" + "".join(f"{'':<{width}}  {line}\n" for line in rest))


def compact(value: Any, limit: int = 120) -> str:
    """A JSON value on one line, cut where it gets long."""
    text = clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= limit else text[: limit - 1] + "…"


async def until_unread() -> None:
    """Wait until nobody can read standard output any more: ``… | head`` has seen enough. For ever where that cannot be told."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    fd = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        await gone
    # The writing end of a pipe becomes "readable" when its reading end is closed, and never before.
    loop.add_reader(fd, lambda: gone.done() or gone.set_result(None))
    try:
        await gone
    finally:
        loop.remove_reader(fd)
