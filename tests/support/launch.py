"""The product's own processes, started the way a person starts them."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

from reattach.core.settings import Settings

from .processes import ROOT, Child, free_port
from .secrecy import SECRECY
from .waiting import wait_until_sync

AGENTS = "tests.support.agents:agents"
C = TypeVar("C", bound=Child)
_numbers = itertools.count(1)

_FLAGS = (
    "redis", "prefix", "shards", "lease", "concurrency", "grace", "keepalive", "redis_timeout", "stream_lifetime", "max_streams", "data",
    "write_timeout",
)  # fmt: skip


def environment(settings: Settings) -> dict[str, str]:
    """The settings as a process is given them."""
    given = {f"REATTACH_{name.upper()}": str(value) for name in _FLAGS if (value := getattr(settings, name)) is not None}
    return {**given, "PYTHONPATH": f"{ROOT / 'service'}:{ROOT}", "REATTACH_LOG_FORMAT": "json", "PYTHONUNBUFFERED": "1"}


class Api(Child):
    """``reattach serve`` on a port that stays the same across restarts."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.port = settings.port or free_port()
        number = next(_numbers)
        command = [sys.executable, "-m", "reattach", "serve", "--port", str(self.port)]
        super().__init__(f"API {number}", command, log=folder / f"api-{number}.log", env=environment(settings))

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        super().start()

        def ready() -> bool:
            assert self.alive, f"{self.name} ended with {self.process.poll()}:\n{self.output()[-4000:]}"
            try:
                return httpx.get(f"{self.base_url}/readyz", timeout=2, trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        wait_until_sync(ready, f"{self.name} to be ready", timeout=20)


class WorkerProcess(Child):
    """``reattach work MODULE:agents``."""

    def __init__(self, settings: Settings, folder: Path, *, agents: str = AGENTS, env: dict[str, str] | None = None) -> None:
        number = next(_numbers)
        command = [sys.executable, "-m", "reattach", "work", agents]
        super().__init__(f"worker {number}", command, log=folder / f"worker-{number}.log", env={**environment(settings), **(env or {})})


class Launcher:
    """Starts processes for one test, and sees to it that none survives it or went wrong unnoticed."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._children: list[Child] = []

    def api(self, settings: Settings | None = None) -> Api:
        """Start an API process."""
        return self._start(lambda: Api(settings or self._settings, self._folder))

    def worker(self, settings: Settings | None = None, *, agents: str = AGENTS, **env: str) -> WorkerProcess:
        """Start a worker process."""
        return self._start(lambda: WorkerProcess(settings or self._settings, self._folder, agents=agents, env=env))

    def _start(self, make: Callable[[], C]) -> C:
        child = make()
        self._children.append(child)
        child.start()
        return child

    def close(self) -> None:
        """End them all, then look at what they logged (G8).

        Raises:
            AssertionError: One of them logged an unhandled traceback.
        """
        for child in self._children:
            child.close()
        for child in self._children:
            said = child.output()
            SECRECY.logged(said)
            assert "Traceback (most recent call last)" not in said, f"{child.name} logged a traceback:\n{said[-6000:]}"
