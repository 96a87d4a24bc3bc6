"""Which policy decides: Reattach's own, a class of the operator's, or an address."""

import importlib
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from ...core.errors import InvalidRequest
from ...core.settings import Settings
from .principal import Authorizer
from .remote import RemotePolicy


@asynccontextmanager
async def open_policy(settings: Settings, otherwise: Authorizer) -> AsyncGenerator[Authorizer, None]:
    """The policy of a process, for the length of a block.

    Args:
        settings: `policy` names it.
        otherwise: Where that is empty.

    Raises:
        InvalidRequest: It cannot be used.
    """
    if not settings.policy:
        yield otherwise
    elif "://" in settings.policy:
        remote = RemotePolicy(settings.policy, timeout=settings.policy_timeout, keep=settings.policy_cache)
        try:
            yield remote
        finally:
            await remote.close()
    else:
        yield load_policy(settings.policy)


def load_policy(name: str) -> Authorizer:
    """Make what ``MODULE:CLASS`` names; an object with a method ``may`` is taken as it is.

    Raises:
        InvalidRequest: There is no such thing, it cannot be made, or it is no policy.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")) or not attribute.isidentifier():
        raise _useless(f"{name!r} names no policy: give MODULE:CLASS, like shop.access:Policy, or an https:// address")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
        policy: Any = found() if isinstance(found, type) else found
    except Exception as e:
        raise _useless(f"the policy {name} cannot be loaded: {type(e).__name__}: {e}") from e
    if not callable(getattr(policy, "may", None)):
        raise _useless(f"{name} is no policy: it has no method may(principal, action, record)")
    return policy


def _useless(why: str) -> InvalidRequest:
    return InvalidRequest(why, field="policy")
