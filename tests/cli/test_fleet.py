"""``reattach serve --workers N``: several processes behave as one."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..conftest import SETTINGS
from ..support.client import Follower, make_client
from ..support.drive import Hand, start
from ..support.launch import environment
from ..support.waiting import wait_until_sync
from .shell import Service, is_running, reattach, wait_gone

SIZE = 3


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """A lease that outlives the start of some processes: the hand that plays the worker renews nothing."""
    request.node.stash[SETTINGS] = changed = msgspec.structs.replace(settings, lease=60.0)
    return changed


@pytest.fixture
def fleet(tmp_path: Path, settings: Settings) -> Iterator[Service]:
    """Three API processes on one port."""
    service = Service(tmp_path, "serve", "--workers", str(SIZE), "--port", "0", env=environment(settings))
    service.start()
    service.wait_for_output(f"{SIZE} processes")
    yield service
    pids = members(service) if service.alive else []
    service.close()
    wait_gone(*pids)
    assert "Traceback" not in service.output(), service.output()[-6000:]


def members(service: Service) -> list[int]:
    """The API processes that run now."""
    found = subprocess.run(["pgrep", "-P", str(service.process.pid)], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in found.split()]


def streams(service: Service) -> float:
    """Open streams, as the metrics tell."""
    text = httpx.get(f"{service.url}/metrics", trust_env=False).text
    return float(re.findall(r"(?m)^reattach_streams (\S+)", text)[0])


async def test_a_run_is_followed_through_any_of_them(fleet: Service, store: Store) -> None:
    """Viewers are spread over processes by the kernel; each gets all of it, and the metrics are those of all together."""
    hand: Hand = await start(store)
    async with make_client(fleet.url) as client:
        viewers = [await Follower(client, hand.run_id).open() for _ in range(12)]
        await hand.emit_many(50)
        wait_until_sync(lambda: streams(fleet) == 12, "all streams to be counted")
        for viewer in viewers[:6]:
            await viewer.until(52)
            await viewer.cut()
            await viewer.open()
        await hand.finish()
        for viewer in viewers:
            assert await viewer.until_end() == "clean"
            viewer.check(1, 53)
    wait_until_sync(lambda: streams(fleet) == 0, "no stream to be counted")


async def test_one_that_dies_is_started_again_and_takes_nobody_with_it(fleet: Service, store: Store) -> None:
    """Only its own viewers are cut, and they go on at another; what it held is not counted any more."""
    hand: Hand = await start(store)
    async with make_client(fleet.url) as client:
        viewers = [await Follower(client, hand.run_id).open() for _ in range(6)]
        before = members(fleet)
        os.kill(before[0], signal.SIGKILL)
        wait_until_sync(lambda: len(members(fleet)) == SIZE and before[0] not in members(fleet), "another one to run")
        wait_until_sync(lambda: f"was ended by {signal.SIGKILL.name}; starting again" in fleet.output(), "it to be told")
        await hand.emit_many(10)
        await hand.finish()
        for viewer in viewers:
            if await viewer.until_end() != "clean":
                assert await (await viewer.open()).until_end() == "clean"
            viewer.check(1, 13)
        assert (await client.get("/healthz")).status_code == 200


async def test_all_of_them_drain(fleet: Service, store: Store) -> None:
    """One SIGTERM: every stream is told, all end by themselves, with 0, and nobody listens any more."""
    hand: Hand = await start(store)
    async with make_client(fleet.url) as client:
        viewers = [await Follower(client, hand.run_id).open() for _ in range(6)]
        for viewer in viewers:
            await viewer.until(2)
        pids = members(fleet)
        fleet.term()
        for viewer in viewers:
            assert await viewer.until_end() == "cut"
            assert [frame.event for frame in viewer.control] == ["stream.closing"]
        assert fleet.wait() == 0
        assert not [pid for pid in pids if is_running(pid)]
        with pytest.raises(httpx.ConnectError):
            await client.get("/healthz")
    await hand.finish()


def test_one_that_cannot_serve_is_told_at_once(tmp_path: Path, settings: Settings) -> None:
    """A taken port, and settings that no process can serve with: a sentence and an exit code, no loop of restarts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = reattach("serve", "--workers", "2", "--port", port, env=environment(settings))
    assert done.returncode == 4
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    done = reattach("serve", "--workers", "2", "--port", "0", env={**environment(settings), "REATTACH_JWT_KEYS": "/nowhere/keys.json"})
    assert done.returncode == 4
    assert "no keys for tokens" in done.stderr
    assert "Traceback" not in done.stderr
