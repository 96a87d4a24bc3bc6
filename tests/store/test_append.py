"""Appending events. Every branch of every reply; two calls in a row are one call whose reply was lost."""

import pytest

from reattach.core.errors import (
    BatchGap,
    RunClosed,
)
from reattach.store import Store

from ..support.drive import draft, start
from .hands import log, types


async def test_append_numbers_events_without_a_gap(store: Store) -> None:
    """Sequences go on from the last event; the answer is the last one."""
    hand = await start(store)
    assert (await hand.emit(("step.one", {}), ("step.two", {}))).sequence == 4
    assert [e.sequence for e in await log(store, hand.run_id)] == [1, 2, 3, 4]


async def test_append_of_the_same_batch_writes_once(store: Store) -> None:
    """A resent batch answers as the first time, also when a cancel request took the next sequence meanwhile."""
    hand = await start(store)
    first = await store.work.append(hand.lease, 1, [draft("step.one", {})])
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    again = await store.work.append(hand.lease, 1, [draft("step.one", {})])
    assert again.sequence == first.sequence == 3 and again.cancel_version == 1
    assert (await types(store, hand.run_id)).count("step.one") == 1


async def test_append_after_the_end(store: Store) -> None:
    """The last batch resent after the end is known; a new one is refused."""
    hand = await start(store)
    await hand.emit(("step.one", {}))
    await hand.finish()
    assert (await store.work.append(hand.lease, 1, [draft("step.one", {})])).sequence == 3
    with pytest.raises(RunClosed):
        await hand.emit(("step.two", {}))


async def test_append_refuses_a_gap(store: Store) -> None:
    """Batch 3 after batch 1 is refused and names the one that is missing."""
    hand = await start(store)
    await hand.emit(("step.one", {}))
    with pytest.raises(BatchGap) as e:
        await store.work.append(hand.lease, 3, [draft("step.three", {})])
    assert e.value.extra == {"expected": 2}


async def test_payloads_are_carried_byte_for_byte(store: Store) -> None:
    """No number is rounded and no empty list becomes an object, at sequences of any size."""
    hand = await start(store)
    payload = b'{"n":9007199254740993,"b":100000000000000000000000,"f":0.10,"e":[],"o":{},"z":null,"x":-0.0,"t":"1e16"}'
    await store.door.call("HSET", store.keys.run(hand.run_id), "sequence", 99_999_999_999_998)
    for key in (store.keys.log(hand.run_id), store.keys.audit(hand.run_id)):
        await store.door.call("XTRIM", key, "MAXLEN", 0)
    await hand.emit(*(("step.done", payload) for _ in range(5)))
    found = await store.events.after(hand.run_id, 99_999_999_999_998, 10)
    assert [e.sequence for e in found] == list(range(99_999_999_999_999, 100_000_000_000_004))
    assert {e.payload for e in found} == {payload}
    for key in (store.keys.run(hand.run_id), store.keys.log(hand.run_id), store.keys.audit(hand.run_id)):
        await store.door.call("DEL", key)
