"""The data folder of the embedded server: who uses it, where the server is found, and what else lies in it."""

import asyncio
import fcntl
import hashlib
import os
import socket
import stat
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from ..core.errors import InvalidRequest
from ..core.settings import Settings

_LONGEST_SOCKET: Final = 100
"""Addresses of Unix sockets end at 104 bytes on macOS and 108 on Linux, the closing zero included."""

_WAIT_FOR_SAVE: Final = 15.0
_WAIT: Final = 0.5


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who uses a folder: what its lock file says."""

    pid: int
    command: str
    since: str

    @property
    def alive(self) -> bool:
        """Whether that process exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class DataFolder:
    """One folder.

    Attributes:
        path: Absolute.
        log: What the server says of itself.
    """

    def __init__(self, path: str) -> None:
        """Name a folder; nothing is created before `lock`."""
        self.path = Path(path).expanduser().absolute()
        self.log = self.path / "server.log"
        self._lock = self.path / "lock"
        self._url = self.path / "url"

    @property
    def socket(self) -> Path:
        """Where the server listens: in the folder, or, where that path is too long for a socket, in a private one with a short name.

        The name follows from the folder's: clients of a server that was restarted find it at the same place.
        """
        inside = self.path / "valkey.sock"
        if len(os.fsencode(inside)) <= _LONGEST_SOCKET:
            return inside
        name = f"reattach-{os.getuid()}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]}"
        base = tempfile.gettempdir()
        return Path("/tmp" if len(os.fsencode(base)) > _LONGEST_SOCKET - 60 else base) / name / "valkey.sock"

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"unix://{quote(str(self.socket))}"

    async def lock(self, command: str) -> int:
        """Create the folder where needed and take it for this process and the children that inherit the lock.

        Args:
            command: How others are told who uses the folder.

        Returns:
            The lock: a file descriptor. Whoever has it open holds the lock, so that a server which still saves after its
            supervisor was killed keeps the next one out.

        Raises:
            InvalidRequest: It cannot be used, or somebody uses it already.
        """
        self._create()
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await self._wait_for(lock)
            owner = Owner(pid=os.getpid(), command=command, since=time.strftime("%Y-%m-%d %H:%M:%S"))
            os.ftruncate(lock, 0)
            os.pwrite(lock, msgspec.json.encode(owner) + b"\n", 0)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def announce(self) -> None:
        """Write down where the server is, for the other commands."""
        fresh = self._url.with_suffix(".new")
        fresh.write_text(self.url + "\n", "utf-8")
        fresh.replace(self._url)

    def release(self, lock: int) -> None:
        """Give the folder up; the data stays."""
        self._url.unlink(missing_ok=True)
        os.close(lock)

    def running(self) -> str | None:
        """The URL of the server that serves this folder now; None when none does."""
        try:
            url = self._url.read_text("utf-8").strip()
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(2)
                probe.connect(str(self.socket))
        except OSError:
            return None
        return url

    def _create(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not any(self.path.iterdir()):
                self.path.chmod(0o700)
                (self.path / ".gitignore").write_text("*\n", "utf-8")
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
            if self.socket.parent != self.path:
                _private(self.socket.parent)
        except OSError as e:
            raise InvalidRequest(f"the data folder {self.path} cannot be used: {e.strerror}", field="data") from e

    async def _wait_for(self, lock: int) -> None:
        start = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                owner = self._owner()
            # An owner that is gone left a server behind that was told to save and end; a file that is still empty, a starting owner.
            patience = _WAIT if owner is None or owner.alive else _WAIT_FOR_SAVE
            if time.monotonic() - start > patience:
                who = "another process" if owner is None else f"`{owner.command}` (process {owner.pid}, since {owner.since})"
                raise InvalidRequest(
                    f"the data folder {self.path} is in use by {who}: stop that first, or choose another with --data", field="data"
                )
            await asyncio.sleep(0.05)

    def _owner(self) -> Owner | None:
        try:
            return msgspec.json.decode(self._lock.read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            return None


def _private(folder: Path) -> None:
    """Make a folder under a shared one that is only ours, or refuse one that somebody else put there."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(13, f"{folder} belongs to somebody else") from None


def find_store(settings: Settings) -> Settings:
    """The settings with a Redis URL: the given one, else that of the embedded server that runs in the data folder.

    Raises:
        InvalidRequest: There is neither.
    """
    if settings.redis is not None:
        return settings
    folder = DataFolder(settings.data)
    url = folder.running()
    if url is None:
        raise InvalidRequest(
            f"no Redis was named and no embedded server runs in {folder.path}: "
            "give --redis URL (or REATTACH_REDIS), or start `reattach dev` with the same --data first",
            field="redis",
        )
    return msgspec.structs.replace(settings, redis=url)
