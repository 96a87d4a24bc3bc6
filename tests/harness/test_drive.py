"""The hands that tests drive runs with, and the checks after every test."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import create, start
from ..support.invariants import check_redis, read_runs, unexplained_keys


async def test_a_run_by_hand(store: Store) -> None:
    """Create, claim, append, finish: the log and the snapshot are as expected."""
    hand = await start(store)
    await hand.emit(("message.delta", {"message_id": "m", "text": "Hi"}), ("note.made", {"n": 1}))
    await hand.emit_many(3)
    done = await hand.finish(outcome={"ok": True})
    assert (done.state, done.sequence) == ("succeeded", 8)
    snapshot = await store.runs.snapshot(hand.run_id)
    assert (snapshot.state, snapshot.sequence) == ("succeeded", 8)


@pytest.mark.leaves_wreckage("damages a run on purpose")
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda r, key: r.xdel(f"{key}:log", "2-0"), "does not run up to"),
        (lambda r, key: r.xadd(f"{key}:audit", {"type": "x.y", "at": 1, "payload": "{}"}, id="9-0"), "audit differs"),
        (lambda r, key: r.hset(key, "state", "failed"), "run.succeeded"),
        (lambda r, key: r.persist(key), "without expiry"),
    ],
)
async def test_damage_is_noticed(
    store: Store, admin: "redis.Redis", settings: Settings, damage: Callable[["redis.Redis", str], Any], complaint: str
) -> None:
    """The checks after every test would see a hole, a forged entry, two stories, a key that stays for ever."""
    hand = await start(store)
    await hand.emit(("a.b", {}))
    await hand.finish()
    [run] = read_runs(admin, settings.prefix)
    damage(admin, run.base)
    import anyio.to_thread

    with pytest.raises(AssertionError, match=complaint):
        await anyio.to_thread.run_sync(check_redis, admin, settings)


async def test_live_runs_need_no_expiry(store: Store, admin: "redis.Redis", settings: Settings) -> None:
    """A queued run's keys may stay; the store's own are on the list of reasons."""
    await create(store, session_id="s1")
    assert unexplained_keys(admin, settings.prefix) == []
