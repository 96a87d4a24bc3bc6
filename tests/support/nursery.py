"""Processes of the product that are there at once: forked from one that has imported everything, so that hundreds can be killed.

What is forked is the command ``reattach`` itself, with the environment it is given, as if a person had started it.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .processes import ROOT, die_with_parent
from .waiting import wait_until_sync


class Newborn:
    """One forked process.

    Attributes:
        pid: Its process id.
        log: Where its standard output and error go.
    """

    def __init__(self, pid: int, log: Path) -> None:
        self.pid, self.log = pid, log

    @property
    def alive(self) -> bool:
        """Whether it exists; the nursery leaves no zombies."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill9(self) -> None:
        """Kill it hard: it does not get to its next line."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Make sure it is gone, and that it went without a traceback (G8).

        Raises:
            AssertionError: It logged one.
        """
        self.kill9()
        wait_until_sync(lambda: not self.alive, f"process {self.pid} to be gone")
        said = self.log.read_text(errors="replace")
        assert "Traceback (most recent call last)" not in said, f"process {self.pid} logged a traceback:\n{said[-6000:]}"


class Nursery:
    """The process that forks them. It ends with the tests, and its children with it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'service'}:{ROOT}", "PYTHONUNBUFFERED": "1"},
            cwd=ROOT,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )

    def start(self, *arguments: str, env: Mapping[str, str], log: Path) -> Newborn:
        """Fork a ``reattach`` with these arguments."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps({"arguments": arguments, "env": dict(env), "log": str(log)}).encode() + b"\n")
        stdin.flush()
        return Newborn(int(stdout.readline()), log)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _become(order: dict[str, Any]) -> None:
    """The child's life: never returns."""
    die_with_parent()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    os.environ.update(order["env"])
    code = 1
    try:
        from reattach.cli.main import main

        main(order["arguments"], standalone_mode=True)
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    finally:
        os._exit(code)


def _serve() -> None:
    """Import what workers and APIs need, then fork one for every line."""
    from reattach.store.scripts import load_scripts

    for module in ("reattach.cli.work", "reattach.cli.serve", "tests.support.agents"):
        importlib.import_module(module)
    load_scripts()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    for line in sys.stdin.buffer:
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
