"""Child processes: never orphaned, out of reach of the terminal's Ctrl-C, started again when they crash."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..core.errors import ReattachError

_TETHER: Final = Path(__file__).with_name("tether.py")
_MODE: Final = "exec" if sys.platform == "linux" else "watch"
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_HEALTHY: Final = 10.0


class Child:
    """One running program.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, process: Process) -> None:
        """Take over a process that was just started."""
        self._process = process
        self.pid = process.pid

    @classmethod
    async def spawn(
        cls,
        program: Sequence[str],
        *,
        orphaned: signal.Signals,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        mode: str = _MODE,
    ) -> "Child":
        """Start a program in a session of its own: a Ctrl-C in the terminal is this process's to hand on, in its order.

        Args:
            program: An absolute path and its arguments.
            orphaned: What the program is sent when this process is gone without a word.
            env: Added to this process's environment.
            pass_fds: File descriptors that it inherits.
            mode: How it is bound to this process; see `tether`.
        """
        # The kernel watches the thread that starts the child, not the process: this must be the main one, which lives longest.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_TETHER), mode, str(os.getpid()), str(int(orphaned)), *program,
            stdin=PIPE if mode == "watch" else DEVNULL,
            env={**os.environ, **(env or {})},
            pass_fds=pass_fds,
            start_new_session=True,
        )  # fmt: skip
        return cls(process)

    @property
    def running(self) -> bool:
        """Whether it has not ended, as far as this process was told."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait until it ended; its exit code, negative for a signal."""
        return await self._process.wait()

    async def stop(self, patience: float) -> int:
        """Ask it to end, wait, then insist; its exit code.

        Args:
            patience: Seconds between asking (SIGTERM) and insisting (SIGKILL).
        """
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self) -> None:
        """End it at once."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            # It may have ended a moment ago without the loop having heard.
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


class Keeper:
    """Keeps one child running: whenever it ends by itself, it is started again, more and more slowly while it does not stay up.

    Attributes:
        child: The running (or last) one.
    """

    def __init__(self, start: Callable[[], Awaitable[Child]], report: Callable[[str], None]) -> None:
        """Prepare; `start` is awaited first.

        Args:
            start: Starts the child and returns when it serves. A `ReattachError` says why it could not.
            report: Told, in words, why the child is started again.
        """
        self._start, self._report = start, report
        self._task: asyncio.Task[None] | None = None
        self.child: Child | None = None

    async def start(self) -> Child:
        """Start the child and watch it from then on.

        Raises:
            ReattachError: It could not be started at all.
        """
        self.child = await self._start()
        self._task = asyncio.create_task(self._watch(self.child), name="reattach-keeper")
        return self.child

    async def stop(self, patience: float) -> None:
        """End the child; it is not started again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self.child is not None:
            await self.child.stop(patience)

    async def _watch(self, child: Child) -> None:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        while True:
            since = loop.time()
            why = describe_exit(await child.wait())
            pause = _FIRST_PAUSE if loop.time() - since > _HEALTHY else pause
            while True:
                self._report(f"{why}; starting again")
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                try:
                    child = self.child = await self._start()
                    break
                except (ReattachError, OSError) as e:
                    why = str(e)


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
