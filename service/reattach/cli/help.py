"""Help texts: taken from docstrings, with examples left as they were written."""

import inspect
import re
from typing import Any, Final

import click

_EXAMPLES: Final = re.compile(r"(?m)(?<=\n\n)(?=    )")
"""The start of an indented paragraph."""


def keep_examples(text: str | None) -> str | None:
    """Mark the indented paragraphs of a docstring as lines that are not to be wrapped."""
    return None if text is None else _EXAMPLES.sub("\b\n", inspect.cleandoc(text))


class Command(click.Command):
    """A command whose docstring may show examples: paragraphs indented by four."""

    def __init__(self, *args: Any, help: str | None = None, **attributes: Any) -> None:
        super().__init__(*args, help=keep_examples(help), **attributes)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command

    def __init__(self, *args: Any, help: str | None = None, **attributes: Any) -> None:
        super().__init__(*args, help=keep_examples(help), **attributes)
