"""Waiting for a condition, always bounded, never by sleeping a guessed time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

TIMEOUT = 10.0
_FIRST, _LONGEST = 0.002, 0.05


def describe_failure(description: str, timeout: float, last: object) -> str:
    """What a person reads when a wait ran out."""
    return f"waited {timeout:g} s for {description}; last seen: {last!r}"


async def wait_until(predicate: Callable[[], T | Awaitable[T | None] | None], description: str, *, timeout: float = TIMEOUT) -> T:
    """Call `predicate` (sync or async) until it is truthy, and give back what it returned.

    Args:
        predicate: Looks at the world; must not change it.
        description: What is waited for, for the failure message.
        timeout: Seconds.

    Raises:
        AssertionError: It did not become truthy in time.
    """
    deadline, pause = time.monotonic() + timeout, _FIRST
    while True:
        answer = predicate()
        last = cast(T, await answer if inspect.isawaitable(answer) else answer)
        if last:
            return last
        if time.monotonic() > deadline:
            raise AssertionError(describe_failure(description, timeout, last))
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST)


def wait_until_sync(predicate: Callable[[], T | None], description: str, *, timeout: float = TIMEOUT) -> T:
    """The same for code that has no event loop."""
    deadline, pause = time.monotonic() + timeout, _FIRST
    while True:
        last = predicate()
        if last:
            return last
        if time.monotonic() > deadline:
            raise AssertionError(describe_failure(description, timeout, last))
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST)
