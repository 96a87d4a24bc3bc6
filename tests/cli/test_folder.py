"""The data folder: who may use it, and how the server in it is found."""

import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach.cli.folder import DataFolder, Owner, find_store
from reattach.core.errors import InvalidRequest
from reattach.core.settings import Settings


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A folder that does not exist yet."""
    return DataFolder(str(tmp_path / "data"))


async def test_a_new_folder_is_private_and_out_of_version_control(folder: DataFolder) -> None:
    """What agents said and did is nobody else's to read, and nothing to commit."""
    folder.release(await folder.lock("a test"))
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / ".gitignore").read_text() == "*\n"


async def test_a_folder_that_is_shared_on_purpose_stays_so(folder: DataFolder) -> None:
    """A folder that already held something keeps its mode."""
    folder.path.mkdir(mode=0o755)
    (folder.path / "something").touch()
    folder.release(await folder.lock("a test"))
    assert folder.path.stat().st_mode & 0o777 == 0o755


async def test_a_folder_in_use_is_refused_and_by_whom_is_said(folder: DataFolder) -> None:
    """One sentence: the command, its process and since when."""
    lock = await folder.lock("reattach dev")
    with pytest.raises(InvalidRequest) as refused:
        await DataFolder(str(folder.path)).lock("another")
    folder.release(lock)
    owner = msgspec.json.decode((folder.path / "lock").read_bytes(), type=Owner)
    assert refused.value.detail == (
        f"the data folder {folder.path} is in use by `reattach dev` (process {os.getpid()}, since {owner.since}): "
        "stop that first, or choose another with --data"
    )


async def test_a_lock_file_that_was_left_behind_does_not_matter(folder: DataFolder) -> None:
    """Only who holds the lock counts, not what a file says."""
    folder.path.mkdir()
    (folder.path / "lock").write_text('{"pid":1,"command":"reattach dev","since":"long ago"}')
    folder.release(await folder.lock("a test"))


async def test_the_lock_outlives_its_owner_while_a_child_holds_it(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that still saves after its supervisor was killed keeps the next one out, and is waited for."""
    lock = await folder.lock("reattach dev")
    inherited = os.dup(lock)
    folder.release(lock)
    waits = 0

    def owner(_: Any) -> bool:
        nonlocal waits
        waits += 1
        if waits == 3:
            os.close(inherited)
        return False

    monkeypatch.setattr(Owner, "alive", property(owner))
    folder.release(await folder.lock("the next one"))
    assert waits == 3


async def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """A file in the way."""
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match=r"the data folder .*/file/data cannot be used: Not a directory"):
        await DataFolder(str(tmp_path / "file" / "data")).lock("a test")


async def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    """Addresses of sockets are short; the place follows from the folder's name, is private, and is the same next time."""
    long = tmp_path / ("x" * 120)
    folder = DataFolder(str(long))
    folder.release(await folder.lock("a test"))
    assert len(os.fsencode(folder.socket)) <= 100
    assert folder.socket.parent.stat().st_mode & 0o777 == 0o700
    assert DataFolder(str(long)).socket == folder.socket
    assert DataFolder(str(long) + "y").socket != folder.socket
    folder.socket.parent.rmdir()


async def test_a_short_name_that_somebody_else_took_is_refused(tmp_path: Path) -> None:
    """A folder under /tmp that others can enter may be a trap."""
    folder = DataFolder(str(tmp_path / ("y" * 120)))
    folder.socket.parent.mkdir(mode=0o755)
    folder.socket.parent.chmod(0o755)
    try:
        with pytest.raises(InvalidRequest, match="belongs to somebody else"):
            await folder.lock("a test")
    finally:
        folder.socket.parent.rmdir()


def test_a_server_is_found_only_while_it_answers(folder: DataFolder) -> None:
    """The written address alone does not make a server."""
    folder.path.mkdir()
    folder.announce()
    assert folder.running() is None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder.socket))
        server.listen()
        assert folder.running() == f"unix://{folder.socket}"
        assert find_store(Settings(data=str(folder.path))).redis == f"unix://{folder.socket}"
    assert folder.running() is None


def test_without_a_store_a_command_says_how_to_get_one(folder: DataFolder) -> None:
    """Both ways out are named."""
    with pytest.raises(InvalidRequest, match=r"give --redis URL \(or REATTACH_REDIS\), or start `reattach dev`"):
        find_store(Settings(data=str(folder.path)))
    assert find_store(Settings(redis="redis://elsewhere")).redis == "redis://elsewhere"
