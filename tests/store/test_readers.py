"""Readers of the queues: their names do not pile up, and nothing they had is lost with them."""

import pytest

from reattach.store import Store
from reattach.store.scripts import GROUP

from ..support.drive import Hand, claim, create


async def names(store: Store, run_id: str) -> set[str]:
    """The readers a run's queue knows."""
    found = await store.door.call("XINFO", "CONSUMERS", store.keys.queue(run_id[4:6], "support"), GROUP)
    return {about[1].decode() for about in found}


async def test_a_reader_that_is_gone_is_forgotten_unless_it_holds_something(store: Store) -> None:
    """Only after idleness, and never while an entry is in its name."""
    run_id = await create(store, session_id="s")
    hand = await claim(store, consumer="holds")
    other = await claim_in(store, "s", "gone")
    await other.finish()
    assert await names(store, run_id) == {"holds", "gone"}
    assert await store.sweep.readers.tidy(["support"]) == 0
    assert await store.sweep.readers.tidy(["support", "nobody"], idle_ms=0) == 1
    assert await names(store, run_id) == {"holds"}
    await hand.finish()


async def claim_in(store: Store, session_id: str, consumer: str) -> Hand:
    """A second run of a session, which lives in the first one's shard."""
    await create(store, session_id=session_id)
    return await claim(store, consumer=consumer)


@pytest.mark.expects_errors("a broken record is reported")
async def test_a_run_that_cannot_be_served_holds_up_no_other(store: Store) -> None:
    """A broken record in front of the timers leaves the others theirs."""
    broken, whole = await create(store), await create(store)
    for run_id in (broken, whole):
        await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    await store.door.call("HSET", store.keys.run(broken), "sequence", "none")
    await store.sweep.once()
    assert (await store.runs.load(whole)).sealed
    await store.door.call("HSET", store.keys.run(broken), "sequence", 3)
    # It waits its turn again, behind everything that can be served, and is reported once, not in every round.
    before = await store.door.call("ZRANGE", store.keys.timers(broken[4:6]), 0, -1, "WITHSCORES")
    assert (await store.sweep.once()).timers == 0
    assert await store.door.call("ZRANGE", store.keys.timers(broken[4:6]), 0, -1, "WITHSCORES") == before
