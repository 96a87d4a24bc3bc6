"""Child processes that cannot outlive the tests, whatever happens to the tests."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from .waiting import wait_until_sync

ROOT = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1
_DICE = random.SystemRandom()
_libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Runs in the child before exec: the kernel kills it when the test process goes, even by kill -9."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port(highest: int = 32_000) -> int:
    """A port that nothing listens on right now, from below those that outgoing connections are given meanwhile."""
    while True:
        # Not the module's own numbers: they are the same in every test process.
        port = _DICE.randint(10_000, highest)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    """Whether a server could listen on a port of this machine."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Child:
    """One process with its output in a file.

    Attributes:
        name: How failures call it.
        log: Where its standard output and error go, together.
    """

    def __init__(self, name: str, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name, self.command, self.log = name, list(command), log
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None

    def start(self) -> None:
        """Start it; output is appended, so that a restart keeps what the first life said."""
        if self._file is not None:  # it ended by itself, and nobody waited for it
            self._file.close()
        self._file = self.log.open("ab")
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self._env},
            cwd=ROOT,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The running (or last) process."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """Everything it printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def send(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def term(self) -> None:
        """Ask it to stop, as a deploy does."""
        self.send(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop it without its knowing, as a suspended laptop or an overcommitted host does."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self.send(signal.SIGCONT)

    def kill9(self) -> None:
        """Kill it hard, together with its children, and wait until it is gone."""
        if self.alive:
            os.killpg(self.process.pid, signal.SIGKILL)
        self._reap(10)

    def wait(self, timeout: float = 15) -> int:
        """Wait until it ended by itself; its exit code.

        Raises:
            AssertionError: It did not end in time.
        """
        try:
            return self._reap(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {timeout:g} s; it said:\n{self.output()[-4000:]}") from None

    def _reap(self, timeout: float) -> int:
        code = self.process.wait(timeout)
        if self._file is not None:
            self._file.close()
            self._file = None
        return code

    def close(self) -> None:
        """Make sure it is gone."""
        if self._process is not None:
            self.kill9()

    def wait_for_output(self, text: str, *, timeout: float = 20) -> None:
        """Wait until it printed `text`.

        Raises:
            AssertionError: It ended before, or did not print it in time.
        """

        def said() -> bool:
            return text in self.output() or not self.alive

        wait_until_sync(said, f"{self.name} to print {text!r}", timeout=timeout)
        assert text in self.output(), f"{self.name} ended with {self.process.poll()} before printing {text!r}:\n{self.output()[-4000:]}"
