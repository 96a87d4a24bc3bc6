"""Several API processes on one port: one loop for each core, one address, one metrics page.

The socket is bound once and inherited, so that a process that dies takes no connection with it that another could still accept, and port 0
is one port. Which process a client reaches is the kernel's choice; it makes no difference, as every process can serve every run.
"""

import asyncio
import signal
import socket
import sys
from tempfile import TemporaryDirectory
from typing import Final

from prometheus_client import multiprocess

from ..core.settings import Settings
from .children import Child, Keeper
from .console import say
from .handshake import spawn_and_hear
from .options import environment

MOST: Final = 64
_MARGIN: Final = 5.0


class Fleet:
    """The API processes behind one socket; each that crashes is started again."""

    def __init__(self, settings: Settings, sock: socket.socket, size: int) -> None:
        """Prepare; `start` starts them.

        Args:
            settings: Of every process.
            sock: Listening.
            size: How many processes.
        """
        self._settings, self._sock = settings, sock
        self._members = [_Member(settings, sock, number) for number in range(1, size + 1)]
        self._metrics = TemporaryDirectory(prefix="reattach-metrics-")

    async def start(self) -> None:
        """Start all of them; returns when all accept requests.

        Raises:
            InternalError: One ended before it did; it said itself why. None is left running.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for member in self._members:
                    group.create_task(member.start(self._metrics.name))
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Let all of them drain at the same time."""
        await asyncio.gather(*(member.stop() for member in self._members))
        self._metrics.cleanup()

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [member.pid for member in self._members]


class _Member:
    def __init__(self, settings: Settings, sock: socket.socket, number: int) -> None:
        self._settings, self._fd, self._name = settings, sock.fileno(), f"API process {number}"
        self._keeper = Keeper(self._spawn, lambda text: say("api", f"process {number} {text}"))
        self._metrics = ""

    @property
    def pid(self) -> int:
        return 0 if self._keeper.child is None else self._keeper.child.pid

    async def start(self, metrics: str) -> None:
        self._metrics = metrics
        await self._keeper.start()

    async def stop(self) -> None:
        await self._keeper.stop(self._settings.grace + _MARGIN)

    async def _spawn(self) -> Child:
        if self.pid:
            # What the dead one counted stays counted; what it held (open streams) is gone.
            multiprocess.mark_process_dead(self.pid, self._metrics)  # pyright: ignore[reportUnknownMemberType]
        program = [sys.executable, "-P", "-m", "reattach", "serve", "--socket-fd", str(self._fd)]
        env = environment(self._settings) | {"PROMETHEUS_MULTIPROC_DIR": self._metrics}
        child, _ = await spawn_and_hear(self._name, program, env=env, orphaned=signal.SIGTERM, pass_fds=[self._fd])
        return child
