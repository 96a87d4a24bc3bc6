"""Commands run as a person runs them: in a pipe, or in a terminal."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..support.processes import ROOT, Child
from ..support.waiting import wait_until_sync

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def command(*arguments: str) -> list[str]:
    """The command line of ``reattach …``."""
    return [sys.executable, "-m", "reattach", *arguments]


def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without settings of the person's who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REATTACH_")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'service'}:{ROOT}", **(env or {})}


def reattach(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, its output in pipes."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def in_terminal(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command in a terminal; its exit code and what the terminal was sent, colours included."""
    terminal, end = pty.openpty()
    with subprocess.Popen(
        command(*arguments), cwd=cwd, env=environment({"TERM": "xterm", **(env or {})}), stdin=end, stdout=end, stderr=end, close_fds=True
    ) as process:
        os.close(end)
        shown = b""
        try:
            while part := os.read(terminal, 65_536):
                shown += part
        except OSError:
            pass  # Linux's way of saying that the other side is closed
        finally:
            os.close(terminal)
        code = process.wait(30)
    return code, shown.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Text without colours."""
    return COLOURS.sub("", text)


class Service(Child):
    """A command that goes on until it is stopped: ``dev``, ``serve``, ``work``, ``tail``."""

    def __init__(self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        super().__init__(f"reattach {arguments[0]}", command(*arguments), log=folder / f"{arguments[0]}.log", env=environment(env))

    @property
    def url(self) -> str:
        """Where its API listens, as it printed it."""
        found = re.findall(r"http://127\.0\.0\.1:\d+", self.output())
        assert found, f"{self.name} printed no address:\n{self.output()}"
        return found[-1]

    def children(self) -> dict[str, int]:
        """Its child processes: ``store`` and ``worker``."""
        # The server's own name, since it rewrites its arguments; the worker's arguments, since its name is Python's.
        columns = ["ps", "-ww", "-o", "pid=,comm=,args=", "--ppid", str(self.process.pid)]
        found: dict[str, int] = {}
        for line in subprocess.run(columns, capture_output=True, text=True, check=False).stdout.splitlines():
            pid, name, words = line.split(maxsplit=2)
            if name.endswith("-server") or "reattach work" in words:
                found["store" if name.endswith("-server") else "worker"] = int(pid)
        return found


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and only waits for its parent to notice does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
    return state != "" and not state.startswith("Z")


def wait_gone(*pids: int) -> None:
    """Wait until none of the processes runs.

    Raises:
        AssertionError: One of them goes on.
    """
    wait_until_sync(lambda: not [pid for pid in pids if is_running(pid)], f"processes {pids} to end")
