"""``reattach doctor`` on stores that are well and on stores that are not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reattach.cli.doctor import Check, checks
from reattach.core.settings import Settings

from ..support.servers import RedisServer
from ..support.topologies import running_cluster
from .shell import in_terminal, plain, reattach

NAMES = ["reachable", "server", "eviction", "persistence", "clock", "features", "scripts", "shards", "size"]
OwnRedis = Callable[..., RedisServer]


async def look(server: RedisServer, shards: int = 16) -> dict[str, Check]:
    """Every check, by name."""
    return {check.name: check async for check in checks(Settings(redis=server.url, redis_timeout=1.0, shards=shards))}


async def test_a_good_store(own_redis: OwnRedis) -> None:
    """Every check is made, in order, and all is well."""
    found = await look(own_redis(persist=True))
    assert list(found) == NAMES
    assert {check.verdict for check in found.values()} == {"ok"}
    assert found["persistence"].found == "append-only file, synced before every answer"


async def test_eviction_fails(own_redis: OwnRedis) -> None:
    """A server that deletes keys under pressure deletes runs."""
    found = await look(own_redis(options=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")))
    assert found["eviction"].verdict == "fail"
    assert "allkeys-lru" in found["eviction"].found
    assert "CONFIG SET maxmemory-policy noeviction" in found["eviction"].remedy


async def test_no_persistence_is_a_warning(own_redis: OwnRedis) -> None:
    """It works, until the next restart."""
    found = await look(own_redis())
    assert found["persistence"].verdict == "warn"
    assert "a restart loses runs" in found["persistence"].found


async def test_lazy_persistence_says_what_may_be_lost(own_redis: OwnRedis) -> None:
    """The default of most servers is well enough, and not the whole truth."""
    found = await look(own_redis(persist=True, options=("--appendfsync", "everysec")))
    assert found["persistence"] == Check("persistence", "ok", "append-only file, appendfsync everysec: a crash may lose about a second")


async def test_a_replica_fails(own_redis: OwnRedis) -> None:
    """It takes no writes."""
    primary = own_redis(persist=True)
    found = await look(own_redis(persist=True, options=("--replicaof", "127.0.0.1", str(primary.port))))
    assert found["server"].verdict == "fail"
    assert "read-only replica" in found["server"].found


async def test_another_number_of_shards_fails(own_redis: OwnRedis) -> None:
    """The remedy is the flag to give."""
    server = own_redis(persist=True)
    with server.admin() as admin:
        admin.hset("ra:config", "shards", 4)
    found = await look(server)
    assert found["shards"].verdict == "fail"
    assert found["shards"].remedy == "give --shards 4"
    assert (await look(server, shards=4))["shards"].verdict == "ok"


async def test_looking_changes_nothing(own_redis: OwnRedis) -> None:
    """No key is written, so the first real process still decides."""
    server = own_redis(persist=True)
    await look(server)
    with server.admin() as admin:
        assert admin.dbsize() == 0


async def test_a_user_without_rights_is_told_so(own_redis: OwnRedis) -> None:
    """What a server keeps to itself is a warning; what is forbidden and needed fails."""
    server = own_redis(persist=True)
    with server.admin() as admin:
        admin.acl_setuser("poor", enabled=True, passwords=["+x"], keys=["*"], commands=["+ping", "+info", "+time", "+hget", "+dbsize"])
    url = server.url.replace("redis://", "redis://poor:x@")
    found = {check.name: check async for check in checks(Settings(redis=url, redis_timeout=1.0))}
    assert {name: check.verdict for name, check in found.items() if check.verdict != "ok"} == {"features": "fail", "scripts": "fail"}
    assert "no permissions" in found["scripts"].found
    assert "poor:x" not in found["reachable"].found


async def test_a_cluster_is_as_good(tmp_path: Path) -> None:
    """Every check is made there too; scripts are loaded on every primary."""
    with running_cluster(tmp_path) as cluster:
        found = {check.name: check async for check in checks(Settings(redis=cluster.url, redis_timeout=1.0))}
    assert list(found) == NAMES
    assert {name: check.verdict for name, check in found.items() if check.verdict != "ok"} == {"persistence": "warn"}


def test_a_store_that_is_not_there_fails(tmp_path: Path) -> None:
    """Exit code 1, one line, and nothing that could not be known."""
    ended = reattach("doctor", env={"REATTACH_REDIS": "redis://:hunter2@127.0.0.1:1", "REATTACH_REDIS_TIMEOUT": "0.2"})
    assert ended.returncode == 1
    assert ended.stdout.startswith("fail  reachable   redis://127.0.0.1:1: the store cannot be reached now (Error ")
    assert "; is it running, is the URL right" in ended.stdout
    assert ended.stdout.count("\n") == 1
    assert "hunter2" not in ended.stdout + ended.stderr
    nothing = reattach("doctor", "--data", str(tmp_path))
    assert nothing.returncode == 1
    assert nothing.stdout.startswith("fail  store       no Redis was named")


@pytest.mark.parametrize("shown", ["pipe", "terminal"])
def test_a_line_for_each_check(own_redis: OwnRedis, shown: str) -> None:
    """The same in a pipe and in a terminal, where it is coloured."""
    url = own_redis(persist=True).url
    if shown == "pipe":
        ended = reattach("doctor", "--redis", url)
        code, text = ended.returncode, ended.stdout
    else:
        code, coloured = in_terminal("doctor", "--redis", url)
        text = plain(coloured)
        assert coloured.count("\x1b[32mok") == len(NAMES)
    assert code == 0
    assert [line.split()[:2] for line in text.splitlines()] == [["ok", name] for name in NAMES]
