"""The hands that tests drive runs with, and the checks after every test."""

import asyncio
from typing import Any

import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.admin import Admin
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


DAMAGES: list[tuple[str, list[Any], str]] = [
    ("a hole in the log", ["XDEL", "{run}:log", "2-0"], "does not run up to"),
    ("a forged audit entry", ["XADD", "{run}:audit", "9-0", "type", "x.y", "at", 1, "payload", "{}"], "audit differs"),
    ("another state", ["HSET", "{run}", "state", "failed"], "run.succeeded"),
    ("a key that stays", ["PERSIST", "{run}"], "without expiry"),
]


@pytest.mark.leaves_wreckage("damages a run on purpose")
@pytest.mark.parametrize(("damage", "complaint"), [(d, c) for _, d, c in DAMAGES], ids=[name for name, _, _ in DAMAGES])
async def test_damage_is_noticed(store: Store, admin: Admin, settings: Settings, damage: list[Any], complaint: str) -> None:
    """The checks after every test would see a hole, a forged entry, two stories, a key that stays for ever."""
    hand = await start(store)
    await hand.emit(("a.b", {}))
    await hand.finish()
    [run] = read_runs(admin, settings.prefix)
    admin.execute_command(*(str(word).replace("{run}", run.base) for word in damage))

    with pytest.raises(AssertionError, match=complaint):
        await asyncio.to_thread(check_redis, admin, settings, patience=0.1)


async def test_live_runs_need_no_expiry(store: Store, admin: Admin, settings: Settings) -> None:
    """A queued run's keys may stay; the store's own are on the list of reasons."""
    await create(store, session_id="s1")
    assert unexplained_keys(admin, settings.prefix) == []
