"""The processes of one measurement: started here, remembered by id, and exactly those are stopped."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..support.processes import ROOT, free_port


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    found += descendants(int(child))
    except OSError:
        pass  # it ended while it was looked at
    return found


@dataclass
class _Actor:
    role: str
    command: Sequence[str]
    env: Mapping[str, str]
    process: subprocess.Popen[bytes]


class Stage:
    """A folder, the processes of one target by role, and a Redis of its own where it wants one."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bench-"))
        self.redis_port = 0
        self._actors: list[_Actor] = []
        self._restarting: threading.Thread | None = None

    def spawn(self, role: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start a process; its output goes to a file of the folder."""
        self._actors.append(_Actor(role, command, env or {}, self._popen(role, command, env or {})))

    def _popen(self, role: str, command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        paths = {"PYTHONPATH": f"{ROOT / 'service'}:{ROOT}"}
        with open(self.folder / f"{role}-{time.monotonic_ns()}.log", "wb") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **paths, **env}, start_new_session=True
            )

    def redis(self) -> int:
        """Start a Redis that stores nothing on disk; its port."""
        self.redis_port = port = free_port()
        options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self.folder, "maxclients": 19000}
        options |= {"tcp-backlog": 4096}
        self.spawn("redis", ["redis-server", *(part for name, value in options.items() for part in (f"--{name}", str(value)))])
        self.wait(port)
        return port

    def wait(self, port: int, seconds: float = 20) -> None:
        """Until somebody listens.

        Raises:
            RuntimeError: A process ended, or nobody did in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            if gone := next((a.role for a in self._actors if a.process.poll() is not None), None):
                raise RuntimeError(f"{gone} ended: {self.logs()[-600:]}")
            time.sleep(0.03)
        raise RuntimeError(f"nothing listens on port {port}: {self.logs()[-600:]}")

    def restart(self, role: str, after: float) -> None:
        """End the processes of a role as an orchestrator does, `after` seconds from now, and start them again."""

        def go() -> None:
            time.sleep(after)
            for actor in [a for a in self._actors if a.role == role]:
                _end(actor.process, 8)
                actor.process = self._popen(role, actor.command, actor.env)

        self._restarting = threading.Thread(target=go, daemon=True)
        self._restarting.start()

    def logs(self) -> str:
        """The last of what each process said."""
        return "\n".join(f.read_text(errors="replace")[-2000:] for f in sorted(self.folder.glob("*.log")))

    def pids(self) -> dict[str, list[int]]:
        """Processes by role, with their children."""
        found: dict[str, list[int]] = {}
        for actor in self._actors:
            found.setdefault(actor.role, []).extend(descendants(actor.process.pid))
        return found

    def stop(self) -> None:
        """End everything that was started, and remove the folder."""
        if self._restarting is not None:
            self._restarting.join(12)  # else it would start a server after the end
        everything = [pid for pids in self.pids().values() for pid in pids]
        for actor in reversed(self._actors):
            _end(actor.process, 1)
        for pid in everything:  # children whose parent was killed before it could end them
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
