"""When a credential ends. The one place of the API that asks this machine for the date: a token says it in the world's time."""

import time

from .principal import Principal


def now() -> float:
    """Unix seconds."""
    return time.time()


def left(principal: Principal) -> float | None:
    """Seconds until a principal's credential ends, not above zero when it has; None: it never does."""
    return None if principal.expires_at is None else principal.expires_at - now()
