"""Scopes: what a credential was given. ``ACTION`` for the whole tenant, ``ACTION:PATH`` for one resource and everything beneath it.

A path is compared segment by segment, never as text: ``acme/tickets`` covers ``acme/tickets/9`` and not ``acme/tickets-private``. Nothing
is decoded, folded or shortened first. What would have to be (a percent sign, an empty segment, ``.`` and ``..``) is refused where a run is
created and gives nothing where it is granted.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ...core.run import SCOPE_PATTERN

EVERYTHING: Final = "*"
ACTIONS: Final = frozenset({"create", "list", "read", "cancel", "input", "work", "admin", EVERYTHING})
"""What may stand before the colon."""

_PATH: Final = re.compile(SCOPE_PATTERN[1:-1])


def is_path(text: str) -> bool:
    """Whether the text is a `resource_scope`: segments joined by ``/``, none of them empty, ``.`` or ``..``."""
    return _PATH.fullmatch(text) is not None


def beneath(path: str, above: str) -> bool:
    """Whether a path is `above` itself or has it as its first segments."""
    return path == above or path.startswith(above + "/")


@lru_cache(maxsize=4096)
def parse(scope: str) -> tuple[str, str | None] | None:
    """A scope as action and path, None for the whole tenant. None instead of both: it is no scope, and gives nothing."""
    action, colon, path = scope.partition(":")
    if action not in ACTIONS or (colon and not is_path(path)):
        return None
    return action, path if colon else None


def granted(scopes: Iterable[str], action: str, path: str | None) -> bool:
    """Whether one of the scopes covers an action.

    Args:
        scopes: What the credential was given.
        action: What is to be done.
        path: The `resource_scope` that it is done to; None where it is nothing in particular: then any scope with the action will do.
    """
    for scope in scopes:
        found = parse(scope)
        if found is None or found[0] not in (action, EVERYTHING):
            continue
        if path is None or found[1] is None or beneath(path, found[1]):
            return True
    return False


def paths(scopes: Iterable[str], action: str) -> list[str | None]:
    """The paths that an action is given for; None among them: the whole tenant."""
    found = (parse(scope) for scope in scopes)
    return [each[1] for each in found if each is not None and each[0] in (action, EVERYTHING)]
