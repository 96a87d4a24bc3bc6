"""Calling a tool's function, whatever kind it is."""

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

KEY: Final = "idempotency_key"
"""A function with a parameter of this name is handed one: the same for every try of the same call."""


def wants_key(fn: Callable[..., Any]) -> bool:
    """Whether the function takes an idempotency key by name."""
    try:
        parameter = inspect.signature(fn).parameters.get(KEY)
    except (TypeError, ValueError):  # some built-ins have no signature
        return False
    return parameter is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY


async def call(fn: Callable[..., Any], arguments: Mapping[str, Any], key: str) -> Any:
    """Call ``fn(**arguments)``, and with an ``idempotency_key`` where it takes one.

    A coroutine function runs on the loop; any other function runs in a thread of its own with the caller's context, so it may block.
    """
    given = dict(arguments)
    if KEY not in given and wants_key(fn):
        given[KEY] = key
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        return await fn(**given)
    value = await in_thread(partial(fn, **given))
    return await value if inspect.isawaitable(value) else value


async def in_thread(fn: Callable[[], Any]) -> Any:
    """Run a function in a daemon thread.

    Not in the loop's pool: that has few threads and joins them at exit, so a tool that hangs would stop other runs' tools from starting
    and the process from ending.
    """
    result: concurrent.futures.Future[Any] = concurrent.futures.Future()
    result.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(fn)
        except StopIteration as e:
            result.set_exception(RuntimeError(f"the function raised StopIteration: {e}"))  # a future cannot carry it
        except BaseException as e:  # whatever it is, it belongs to the caller, not to this thread
            result.set_exception(e)
        else:
            result.set_result(value)

    threading.Thread(target=work, name=f"tool {getattr(fn, '__name__', '')}".strip(), daemon=True).start()
    return await asyncio.wrap_future(result)
