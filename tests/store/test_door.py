"""The door: batching, cancellation, lost scripts, retries, translation of failures."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from reattach.core.errors import InvalidRequest, StoreUnavailable
from reattach.core.settings import Settings
from reattach.store import Ring, Store
from reattach.store.door import all_of
from reattach.store.redis import Target, named, translate
from reattach.store.scripts import load_scripts

from ..support.drive import create, start
from ..support.processes import ROOT
from ..support.waiting import wait_until


async def test_calls_of_one_turn_travel_together(store: Store) -> None:
    """A hundred calls made at once leave in a handful of batches."""
    sizes: list[int] = []
    store.door.observe = sizes.append
    replies = await asyncio.gather(*(store.door.call("ECHO", f"n{n}") for n in range(100)))
    assert replies == [f"n{n}".encode() for n in range(100)]
    assert len(sizes) <= 2


async def test_a_cancelled_caller_never_shifts_replies(store: Store, proxies: Callable[..., Any]) -> None:
    """Callers that give up at random moments leave every other one with its own answer."""
    proxy = await proxies(store.settings.redis)
    proxy.latency = 0.002
    other = await Store.open(msgspec.structs.replace(store.settings, redis=f"redis://127.0.0.1:{proxy.port}/0"))

    async def ask(n: int) -> None:
        task = asyncio.ensure_future(other.door.call("ECHO", f"n{n}"))
        if n % 3 == 0:
            await asyncio.wait([task], timeout=(n % 7) / 1000)
            task.cancel()
        try:
            assert await task == f"n{n}".encode()
        except asyncio.CancelledError:
            assert n % 3 == 0

    await asyncio.gather(*(ask(n) for n in range(300)))
    assert await other.door.call("ECHO", "last") == b"last"
    await other.close()


async def test_a_server_that_forgot_its_scripts_is_told_again(store: Store) -> None:
    """A flush of the script cache between any two commands is noticed by nobody."""
    hand = await start(store)
    for n in range(5):
        await store.door.call("SCRIPT", "FLUSH")
        assert (await hand.emit(("step.done", {"n": n}))).sequence == n + 3
        await store.door.call("SCRIPT", "FLUSH")
        await hand.renew()


@pytest.fixture
async def apart(own_redis: Callable[..., Any], settings: Settings) -> AsyncIterator[Store]:
    """A store on a server of its own, whose every connection may be killed."""
    store = await Store.open(msgspec.structs.replace(settings, redis=own_redis().url))
    yield store
    await store.close()


async def test_a_lost_connection_is_made_anew(apart: Store) -> None:
    """Killed connections cost a caller nothing but time, and no command is applied twice."""
    store = apart
    hand = await start(store)
    for n in range(5):
        await store.door.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert (await hand.emit(("step.done", {"n": n}))).sequence == n + 3


async def test_nobody_there_is_a_typed_error(settings: Settings) -> None:
    """No traceback of the client library reaches a caller, and it does not hang."""
    with pytest.raises(StoreUnavailable) as e:
        await Store.open(msgspec.structs.replace(settings, redis="redis://127.0.0.1:1/0", redis_timeout=0.2))
    assert e.value.retryable and e.value.retry_after


async def test_a_full_server_refuses_in_words(own_redis: Callable[..., Any], settings: Settings) -> None:
    """Out of memory is store_unavailable, at once and for reads not at all."""
    server = own_redis(options=("--maxmemory", "1", "--maxmemory-policy", "noeviction"))
    with pytest.raises(StoreUnavailable):
        await Store.open(msgspec.structs.replace(settings, redis=server.url))


@pytest.mark.parametrize("url", ["http://x", "localhost:6379", "redis+sentinel://x:1", ""])
def test_urls_that_cannot_be_meant(url: str) -> None:
    """Each is refused with what is allowed, and its text is not repeated."""
    with pytest.raises(InvalidRequest) as e:
        Target(url, timeout=1)
    assert "redis" in e.value.detail and (not url or url not in e.value.detail)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@x:secret/0",
        "redis://[::secret",
        "redis://x/0?socket_timeout=secret",
        "redis://x/0?secret=1",
        "redis+cluster://x:secret",
        "redis+cluster://x:1?secret=1",
        "redis+sentinel://x:secret/m",
        "redis+sentinel://x:1/m/secret",
    ],
)
async def test_urls_with_a_part_that_is_not_valid(url: str) -> None:
    """Each is refused as a whole: a password with a slash in it ends up in the port."""
    with pytest.raises(InvalidRequest) as e:
        Target(url, timeout=1).client()
    assert "the Redis URL cannot be used" in e.value.detail and "secret" not in e.value.detail


@pytest.mark.parametrize("url", ["redis://u:p%40%2Fs@x:1/0", "redis+sentinel://u:p%40%2Fs@x:1/m"])
async def test_a_password_may_hold_any_character(url: str) -> None:
    """Percent-encoded, as in every URL, and behind Sentinels as well."""
    kept = Target(url, timeout=1).client().connection_pool.connection_kwargs
    assert (kept["username"], kept["password"]) == ("u", "p@/s")


def test_a_url_is_shown_without_its_password() -> None:
    """Credentials never reach a log."""
    assert Target("redis://user:secret@host:1/0?x=secret", timeout=1).safe_url == "redis://host:1/0"
    for mark in "/?#":
        assert Target(f"redis://user:secret{mark}1@host:1/0", timeout=1).safe_url == "redis://…"


def test_a_bug_is_not_an_outage() -> None:
    """Only failures of the network or the server become store_unavailable."""
    bug = ValueError("x")
    assert translate(bug) is bug


async def test_processes_that_disagree_on_shards_do_not_start(store: Store) -> None:
    """A wrong shard count would look for runs in the wrong place."""
    with pytest.raises(InvalidRequest, match="shards"):
        await Store.open(msgspec.structs.replace(store.settings, shards=8))


async def test_bells_ring_and_survive_a_lost_connection(apart: Store) -> None:
    """News rings once it is durable; after a cut everything is announced as possibly missed."""
    store = apart
    heard: list[Ring] = []
    states: list[bool] = []
    listener = asyncio.create_task(store.bells(heard.append, on_state=states.append).run())
    await wait_until(lambda: states == [True], "the bells to listen")
    run_id = await create(store)
    await wait_until(lambda: any(run_id in ring.runs for ring in heard), "the bell of the new run")
    heard.clear()
    await store.door.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await wait_until(lambda: any(ring.everything for ring in heard), "the announcement after the cut")
    assert states == [True, False, True]
    listener.cancel()
    await asyncio.wait([listener])
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")


def test_every_script_declares_what_it_uses() -> None:
    """No script makes a key name, and each binds exactly what its header says."""
    for script in load_scripts().values():
        body = script.text
        assert "KEYS[" not in body.split(f"-- {script.name}: ")[1], f"{script.name} reaches past its header"
        assert ":run:" not in body and "ra:" not in body


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not there")
def test_a_write_to_a_connection_that_just_closed_is_an_outage() -> None:
    """A worker or an API that took uvloop's error for a bug would die of a cut connection."""
    # In a process of its own: uvloop keeps a pipe for as long as its process lives.
    told = subprocess.run([sys.executable, "-m", "tests.store.closing"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert told.stdout.split() == ["RuntimeError", "StoreUnavailable"]
    assert not isinstance(translate(named(RuntimeError("a bug"))), StoreUnavailable)


async def test_what_cannot_be_written_fails_alone(store: Store) -> None:
    """Text that has no UTF-8 form fails its own caller, not the commands of other runs that would have travelled with it."""
    calls = [store.door.call("ECHO", text) for text in ("a", "\ud800", "b")]
    first, second, third = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, third) == (b"a", b"b") and isinstance(second, UnicodeEncodeError)


async def test_where_one_of_many_fails_none_goes_on_alone() -> None:
    """Whoever hears of the failure may close the door at once: nothing of what was asked for may still be under way."""
    ended: list[str] = []

    async def slow() -> None:
        await asyncio.sleep(0.05)
        ended.append("slow")

    async def fails() -> None:
        raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        await all_of([fails(), slow()])
    assert ended == ["slow"]


async def test_a_lane_that_has_just_ended_keeps_nobody_waiting(store: Store) -> None:
    """What is asked for in the very turn in which every lane ends gets a lane, whoever asked before it has gone away."""

    async def ended() -> None:
        pass

    lanes = {asyncio.create_task(ended()) for _ in range(2)}
    await asyncio.wait(lanes)
    store.door._lanes |= lanes  # pyright: ignore[reportPrivateUsage]
    try:
        assert await asyncio.wait_for(store.door.call("ECHO", "last"), 1) == b"last"
    finally:
        store.door._lanes -= lanes  # pyright: ignore[reportPrivateUsage]
