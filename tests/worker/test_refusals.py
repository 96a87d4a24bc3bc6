"""A store that takes no writes (memory or disk full, read-only, without its replicas): told as what it is, waited out, and never a gap."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.admin import Admin
from ..support.agents import agents as scripted
from ..support.servers import RedisServer
from ..support.waiting import wait_until_sync
from .seen import events, outcome, says, submit_script

# Configuration that a server keeps to itself by default is what makes its disk fail here.
OPTIONS = ("--enable-protected-configs", "yes", "--save", "3600 1", "--stop-writes-on-bgsave-error", "yes")


def _background_save(admin: Admin, status: str) -> None:
    admin.execute_command("BGSAVE")
    wait_until_sync(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == status, f"a save to end with {status}")


def refuse(admin: Admin, why: str, folder: str) -> None:
    """Let the server take no more writes."""
    match why:
        case "memory":
            admin.config_set("maxmemory", 1)
        case "disk":
            admin.config_set("dir", "/proc/self")
            _background_save(admin, "err")
        case "read-only":
            admin.replicaof("127.0.0.1", "1")
        case _:
            admin.config_set("min-replicas-to-write", 1)


def take_again(admin: Admin, why: str, folder: str) -> None:
    """Undo it."""
    match why:
        case "memory":
            admin.config_set("maxmemory", 0)
        case "disk":
            admin.config_set("dir", folder)
            _background_save(admin, "ok")
        case "read-only":
            admin.replicaof("NO", "ONE")
        case _:
            admin.config_set("min-replicas-to-write", 0)


def refusals(admin: Admin) -> int:
    """How many commands the server has answered with an error."""
    said: Any = admin.info("stats")
    return int(said["total_error_replies"])


DISK = pytest.param("disk", marks=pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that takes no files: /proc/self"))


@pytest.mark.parametrize("why", ["memory", DISK, "read-only", "replicas"])
async def test_a_store_that_refuses_writes(
    settings: Settings, own_redis: Callable[..., RedisServer], replicas: Callable[..., Any], workers: Callable[..., Any], why: str
) -> None:
    """Requests get a typed 503, streams stay, the worker waits in its first attempt; afterwards every event is there, once."""
    server = own_redis(options=OPTIONS)
    own = msgspec.structs.replace(settings, redis=server.url, lease=20.0)
    store = await Store.open(own)
    service = await replicas(own)
    try:
        with server.admin() as admin:
            await workers(scripted, own)
            steps: list[list[Any]] = [["emit", "tick.done", {"n": n}] for n in range(60)]
            run_id = await submit_script(store, *steps[:20], ["sleep", 0.3], *steps[20:], ["finish", "whole"])
            follower = await service.follow(run_id).open()
            await says(store, run_id, "tick.done", 20)
            folder = str(admin.config_get("dir")["dir"])
            await asyncio.to_thread(refuse, admin, why, folder)
            answer = await service.client.post("/agent-runs", json={"agent": "support", "input": {}})
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            told = refusals(admin)
            await asyncio.to_thread(wait_until_sync, lambda: refusals(admin) > told + 1, "the worker to be refused its batch")
            assert len(await events(store, run_id)) == 22
            await asyncio.to_thread(take_again, admin, why, folder)
            assert await outcome(store, run_id) == "whole"
            log = await events(store, run_id)
            assert [e.sequence for e in log] == list(range(1, len(log) + 1))
            assert [json.loads(e.payload)["n"] for e in log if e.type == "tick.done"] == list(range(60))
            assert "run.retrying" not in [e.type for e in log]
            await follower.until_end()
            assert (await service.client.post("/agent-runs", json={"agent": "support", "input": {}})).status_code == 201
    finally:
        await store.close()
