"""Milliseconds since the epoch (the store's form) and RFC 3339 (the wire's form)."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def rfc3339(ms: int) -> str:
    """``1788430471000`` → ``2026-09-03T10:14:31.000Z``: UTC with exactly three decimals (RFC 3339, section 5.6).

    The date part is cached per second, since thousands of events share one.
    """
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"
