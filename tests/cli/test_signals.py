"""What a service says of errors that nobody caught."""

import asyncio
import gc

import pytest

from reattach.cli.signals import without_lost_connections

from ..support.waiting import wait_until


async def test_only_the_end_of_a_broken_connection_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A future nobody looked at is a bug, unless it only says how a connection ended; a task is one in any case."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(without_lost_connections)

    async def fails() -> None:
        raise ConnectionResetError("a task")

    for error in (ConnectionResetError("the end"), ValueError("a bug")):
        future = loop.create_future()
        future.set_exception(error)
        del future
    task = asyncio.ensure_future(fails())
    await wait_until(task.done, "the task to fail")
    del task
    gc.collect()
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert told == ["a bug", "a task"]
