"""Ctrl-C and SIGTERM: the first one drains, a later one does not wait for anybody."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import uvloop

from .console import note

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_ONE_SIGNAL: Final = 0.5
"""Signals closer together are one: `timeout`, `make` and terminals tell a process and then its whole group, which it is in."""


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a service to its end on the fast loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(without_lost_connections)
        runner.run(main)


def without_lost_connections(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what nobody caught, but for the end of a connection that nobody asked about.

    Every asyncio stream keeps the way it ended for whoever waits for its close, which the Redis client does not do for a connection that
    broke; whether that is reported depends on the order in which the garbage is collected. Whoever used the connection was told.
    """
    future = context.get("future")
    if isinstance(context.get("exception"), ConnectionError) and not isinstance(future, asyncio.Task) and future is not None:
        return
    loop.default_exception_handler(context)


@contextmanager
def stop_signals(stop: Callable[[], None], *, hurry: Callable[[], None] | None = None) -> Generator[None, None, None]:
    """Within the block, the first signal asks to stop; the last one that is waited for ends the process at once.

    The handlers are Python's, not the loop's: code of the user's that blocks the loop cannot keep a person from ending the process.

    Args:
        stop: Called on the loop at the first signal.
        hurry: Called on the loop at the second signal, which makes the third one the last.
    """
    loop, steps = asyncio.get_running_loop(), [stop] if hurry is None else [stop, hurry]
    last = -_ONE_SIGNAL

    def received(number: int, _: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _ONE_SIGNAL:
            return
        last = now
        if steps:
            loop.call_soon_threadsafe(steps.pop(0))
            return
        note("ended at once; what was under way is taken up again at the next start")
        # The kernel ends the children with us, the embedded server with time to save.
        os._exit(128 + number)

    before = {number: signal.signal(number, received) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
