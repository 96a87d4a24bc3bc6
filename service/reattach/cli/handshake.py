"""Starting a child process and hearing from it that it serves: it writes one line to a pipe when it does."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

from ..core.errors import InternalError
from .children import Child, describe_exit


async def spawn_and_hear(
    name: str, program: Sequence[str], *, env: Mapping[str, str], orphaned: signal.Signals, pass_fds: Sequence[int] = ()
) -> tuple[Child, bytes]:
    """Start a program with ``--ready-fd N`` behind its arguments; the child, and the line it wrote there.

    Args:
        name: What it is, for the error.
        program: An absolute path and its arguments.
        env: Added to this process's environment.
        orphaned: What it is sent when this process is gone.
        pass_fds: Further file descriptors that it inherits.

    Raises:
        InternalError: It ended before it wrote a line; it said itself why.
    """
    reading, writing = os.pipe()
    try:
        child = await Child.spawn([*program, "--ready-fd", str(writing)], orphaned=orphaned, env=env, pass_fds=[writing, *pass_fds])
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        line = await _first_line(reading)
        if not line:
            raise InternalError(f"{name} {describe_exit(await child.wait())} before it was ready")
    except BaseException:
        child.kill()
        await child.wait()
        raise
    return child, line


def tell(ready_fd: int, line: bytes) -> None:
    """The child's side: write the line and close the pipe."""
    with os.fdopen(ready_fd, "wb") as pipe:
        pipe.write(line + b"\n")


async def _first_line(fd: int) -> bytes:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb"))
    try:
        return await reader.readline()
    finally:
        transport.close()
