"""The command ``reattach``."""

import importlib
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from ..core.errors import ReattachError
from ..core.version import __version__
from ..obs.log import setup_logging
from .help import Group

EXIT_REFUSED: Final = 4
"""Exit code when what was asked for could not be done. 1: a run failed, or a check did. 2: wrong usage. 3: a run was cancelled."""

EXIT_INTERRUPTED: Final = 130

_COMMANDS: Final = {
    "dev": "dev:dev",
    "serve": "serve:serve",
    "work": "work:work",
    "tail": "tail:tail",
    "runs": "runs:runs",
    "token": "token:token",
    "revoke": "revoke:revoke",
    "doctor": "doctor:doctor",
}

_REMEDIES: Final[Mapping[str, str]] = {
    "store_unavailable": "look with: reattach doctor",
    "run_not_found": "find runs with: reattach runs ls",
    "future_cursor": "leave --after out to start from the beginning",
    "cursor_expired": "go on from the snapshot: reattach runs show RUN",
}


class Refused(click.ClickException):
    """A failure of Reattach, told in one sentence with its code and a way on."""

    exit_code = EXIT_REFUSED

    def __init__(self, error: ReattachError) -> None:
        """Tell of an error."""
        remedy = _REMEDIES.get(error.code)
        super().__init__(f"{error.detail} [{error.code}]" + (f"; {remedy}" if remedy else ""))


class Commands(Group):
    """Commands whose modules are imported when they are used: ``--help`` needs no web server."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order a newcomer needs them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, imported now."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        return getattr(importlib.import_module(f".{module}", __package__), attribute)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; its typed errors become sentences."""
        try:
            return super().invoke(ctx)
        except ReattachError as e:
            raise Refused(e) from None
        except KeyboardInterrupt:
            sys.exit(EXIT_INTERRUPTED)
        except BaseExceptionGroup as group:
            typed = group.subgroup(ReattachError)
            leaf: BaseException | None = typed
            while isinstance(leaf, BaseExceptionGroup):
                leaf = leaf.exceptions[0]
            if not isinstance(leaf, ReattachError):
                raise
            raise Refused(leaf) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, message="reattach %(version)s")
def main() -> None:
    """Agent runs that outlive their connections.

        reattach dev                     everything on this machine, with a demo agent; no Redis needed
        reattach dev shop.agents:agents  the same with your agents
        reattach tail RUN                follow a run, as often and from wherever you like
        reattach runs ls                 what ran and what runs

    Commands find the store by --redis URL (or REATTACH_REDIS), else the server that `reattach dev` runs in --data DIR.
    Each flag can be given as a variable as well: --redis-timeout is REATTACH_REDIS_TIMEOUT.

    Exit codes:

        0  done; a run that was followed succeeded
        1  a run that was followed failed; a check failed
        2  wrong usage
        3  a run that was followed was cancelled
        4  could not be done; the reason and its code are on standard error
        130  ended by Ctrl-C; what was followed goes on
    """
    # Standard output is a command's own; services turn their logs up.
    setup_logging(level=logging.ERROR)
