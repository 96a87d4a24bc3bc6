"""Programs in a terminal of their own, as the README's reader runs them."""

import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ..support.processes import die_with_parent
from ..support.waiting import wait_until_sync

_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b\x07]*(?:\x1b\\|\x07)")
"""Bold letters and links, which curl makes of headers."""

_MARK: Final = "-- the block ended --"


class Terminal:
    """A program whose output goes to a terminal, where it is read as it comes."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        """Start it."""
        ours, theirs = pty.openpty()
        self._shown = bytearray()
        try:
            self.process = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=theirs, stderr=theirs,
                start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        finally:
            os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(ours,))
        self._reader.start()

    def _read(self, terminal: int) -> None:
        try:
            while part := os.read(terminal, 65_536):
                self._shown += part
        except OSError:
            pass  # Linux's way of saying that the other side is closed
        finally:
            os.close(terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Make sure that it is gone, and everything that it started in its session."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._reader.join(10)

    def output(self, start: int = 0) -> str:
        """What it has shown so far, without style."""
        return _STYLE.sub("", self._shown[start:].decode("utf-8", "replace").replace("\r\n", "\n"))

    def wait_for(self, text: str, *, start: int = 0, timeout: float = 30) -> str:
        """Everything shown since `start`, once `text` is among it.

        Raises:
            AssertionError: It ended before, or did not show it in time.
        """

        def shown() -> bool:
            return text in self.output(start) or self.process.poll() is not None

        wait_until_sync(shown, f"{text!r} after\n{self.output(start)}", timeout=timeout)
        assert text in self.output(start), f"it ended with {self.process.poll()} before showing {text!r}:\n{self.output(start)}"
        return self.output(start)


class Shell(Terminal):
    """A shell that is given one block after the other and keeps its variables; a command that fails ends it."""

    def __init__(self, *, cwd: Path, env: Mapping[str, str]) -> None:
        """Start it."""
        super().__init__(["bash", "--norc", "--noprofile", "-eu"], cwd=cwd, env=env)

    def run(self, block: str, *, timeout: float = 45) -> str:
        """Run a block; what it showed.

        Raises:
            AssertionError: A command failed, or the block did not end in time.
        """
        start = len(self._shown)
        assert self.process.stdin is not None
        # Not the shell's own input for the commands: they would read the next blocks.
        self.process.stdin.write(f"{{\n{block}\n}} </dev/null\nprintf '%s\\n' '{_MARK}'\n".encode())
        self.process.stdin.flush()
        return self.wait_for(f"{_MARK}\n", start=start, timeout=timeout).partition(_MARK)[0]
