"""Replies that the store's own methods hide or ask around: a run that is gone, one that has ended, something that comes too early."""

from typing import Any

import pytest

from reattach.core.errors import RunClosed
from reattach.core.ids import new_run_id as fresh_id
from reattach.store import Store
from reattach.store.scripts import GROUP, load_scripts

from ..support.drive import Hand, create, start
from .hands import call, log, receipt

NOW_GONE: dict[str, tuple[Any, ...]] = {
    "cancel": (GROUP, "", "", "{}"),
    "checkpoint": (1, 0, 1, "fold"),
    "cover": (1, "message.checkpoint", "{}", ""),
    "signal": ("support", "w1", '"input_1"', "", "", "{}", "1"),
    "retry": ("support",),
    "expire": (GROUP, "support"),
    "reclaim": (GROUP, "support", "", 1000),
}
"""Arguments behind the run's id."""


async def reply(store: Store, script: str, run_id: str, *args: Any) -> str:
    """The first word a command answers with."""
    return (await store.door.run(load_scripts()[script], store.keys.of_run(run_id, "support"), *args)).word


async def keys_of(store: Store, run_id: str) -> int:
    """How many of a run's own keys exist."""
    return int(await store.door.call("EXISTS", *(k for k in store.keys.of_run(run_id).values() if k and ":run:" in k)))


@pytest.mark.parametrize("script", NOW_GONE)
async def test_a_run_that_is_gone_stays_so(store: Store, script: str) -> None:
    """It may expire between the look at it and the command: nothing of it comes back."""
    run_id = fresh_id(0)
    assert await reply(store, script, run_id, run_id, *NOW_GONE[script]) == "GONE"
    assert await reply(store, "trim", run_id, 5) == "GONE"
    assert await keys_of(store, run_id) == 0


async def test_what_is_not_due_is_left_alone(store: Store) -> None:
    """A sweeper that comes early, or after a lease was renewed, changes nothing."""
    hand = await start(store)
    assert await reply(store, "reclaim", hand.run_id, hand.run_id, GROUP, "support", hand.lease.entry, 1000) == "HELD"
    await store.work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=60_000)
    assert await reply(store, "expire", hand.run_id, hand.run_id, GROUP, "support") == "EARLY"
    waiting = await create(store)
    await store.door.call("ZADD", store.keys.timers(waiting[4:6]), 1 << 50, f"retry:{waiting}")
    assert await reply(store, "retry", waiting, waiting, "support") == "EARLY"
    await store.door.call("ZREM", store.keys.timers(waiting[4:6]), f"retry:{waiting}")
    assert [(await store.runs.load(run_id)).state for run_id in (hand.run_id, waiting)] == ["waiting", "queued"]
    for run_id in (hand.run_id, waiting):
        await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")


async def ask(hand: Hand, what: str) -> None:
    """One of the things that only an owner may do."""
    work = hand.store.work
    match what:
        case "intend":
            await work.intend(hand.lease, call("call_2"))
        case "commit":
            await work.commit(hand.lease, receipt())
        case "park":
            await work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=None)
        case _:
            await work.release(hand.lease, cause="drain")


@pytest.mark.parametrize("what", ["intend", "commit", "park", "release"])
async def test_an_ended_run_is_closed_to_its_owner(store: Store, what: str) -> None:
    """Also with the fence that ended it, and an effect that was open then: typed, and the log stays as it is."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await hand.finish()
    before = await log(store, hand.run_id)
    with pytest.raises(RunClosed):
        await ask(hand, what)
    assert await log(store, hand.run_id) == before
