"""What an ended run leaves behind, and when it goes."""

from collections.abc import Mapping
from typing import Any

import pytest

from reattach.core.errors import InternalError
from reattach.core.run import Retention
from reattach.store import Store
from reattach.store.keys import KeyNames
from reattach.store.scripts import Reply, Script

from ..support.drive import claim, create, new_run, start
from ..support.waiting import wait_until

SHORT = Retention(deltas_ms=300, events_ms=600, run_ms=900)


async def ttl(store: Store, key: str) -> int:
    """Milliseconds until a key expires; -1 never, -2 gone."""
    return int(await store.door.call("PTTL", key))


async def keys_left(store: Store) -> list[str]:
    """Keys that name a run or a request; the place where a session of the same name would go on is kept a while longer."""
    found: list[bytes] = await store.door.call("KEYS", f"{store.settings.prefix}:*")
    named = sorted(k.decode() for k in found if any(part in k for part in (b":run:", b":idem:", b":tenant:", b":session:")))
    return [k for k in named if ":session:" not in k or await ttl(store, k) < 0]


async def test_an_ended_run_expires_by_itself_and_leaves_no_trace(store: Store) -> None:
    """Record, log, audit, effects, snapshot, idempotency key and list entries are gone after their time."""
    await store.runs.create(new_run(retention=SHORT, session_id="s"), key="k", fingerprint="f")
    await store.sweep.once()
    await (await claim(store)).finish()

    async def gone() -> bool:
        await store.sweep.once()
        return await keys_left(store) == []

    await wait_until(gone, "everything to expire", timeout=10)
    for tag in store.keys.tags:
        assert await store.door.call("ZCARD", store.keys.timers(tag)) == 0


async def test_a_key_lives_as_long_as_its_run(store: Store) -> None:
    """While the run lives its key has no expiry; afterwards both go at the same moment."""
    made = await store.runs.create(new_run(), key="k", fingerprint="f")
    key = made.record.idempotency or ""
    assert 0 < await ttl(store, key) <= 86_400_000
    await store.sweep.once()
    assert await ttl(store, key) == -1
    await (await claim(store)).finish()
    await store.sweep.once()
    difference = await ttl(store, key) - await ttl(store, store.keys.run(made.record.run_id))
    assert abs(difference) < 200


async def test_a_reservation_nobody_used_expires(store: Store) -> None:
    """A caller that died between reserve and create leaves no key for ever."""
    from reattach.store.keys import idempotency_name
    from reattach.store.scripts import load_scripts

    key = store.keys.idempotency(idempotency_name("dev", "me", "k"))
    await store.door.run(load_scripts()["reserve"], {"idempotency": key}, "run_00" + "z" * 24, "f", 200)
    assert 0 < await ttl(store, key) <= 200


async def test_the_log_is_kept_until_the_terminal_snapshot_is_stored(store: Store) -> None:
    """Deltas get their short expiry only when a fold that carries their text is safe."""
    hand = await start(store, retention=Retention(deltas_ms=1_000, events_ms=60_000, run_ms=120_000))
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}), ("message.delta", {"message_id": "m", "text": "half"}))
    await hand.finish("failed")
    log = store.keys.log(hand.run_id)
    assert await ttl(store, log) > 50_000
    assert not (await store.runs.load(hand.run_id)).sealed
    await store.sweep.once()
    assert (await store.runs.load(hand.run_id)).sealed
    assert 0 < await ttl(store, log) <= 1_000
    before = await store.runs.snapshot(hand.run_id)

    async def log_gone() -> bool:
        return await ttl(store, log) == -2

    await wait_until(log_gone, "the deltas to expire", timeout=5)
    fresh = await Store.open(store.settings)
    after = await fresh.runs.snapshot(hand.run_id)
    await fresh.close()
    assert after.messages == before.messages
    assert (await store.runs.read(hand.run_id)).bounds.earliest_sequence == 5


async def test_no_retention_is_too_short_for_the_terminal_snapshot(store: Store) -> None:
    """A run whose events expire before anybody folded them still has its snapshot, for as long as its record lives."""
    hand = await start(store, retention=Retention(deltas_ms=100, events_ms=100, run_ms=60_000))
    await hand.finish(outcome={"answer": 42})

    async def audit_gone() -> bool:
        return await ttl(store, store.keys.audit(hand.run_id)) == -2

    await wait_until(audit_gone, "the events to expire", timeout=5)
    snapshot = await store.runs.snapshot(hand.run_id)
    assert (snapshot.state, snapshot.outcome and bytes(snapshot.outcome)) == ("succeeded", b'{"answer":42}')
    assert await store.events.after(hand.run_id, 0, 100) == []
    assert (await store.runs.read(hand.run_id)).bounds.earliest_sequence == snapshot.sequence + 1


async def test_a_log_that_was_deleted_is_said_to_be(store: Store) -> None:
    """Whoever deletes a live run's log by hand gets an error about it, not a reader that never comes back."""
    hand = await start(store)
    await store.door.call("DEL", store.keys.log(hand.run_id))
    with pytest.raises(InternalError, match="log was lost"):
        await store.runs.snapshot(hand.run_id)
    await store.door.call("DEL", store.keys.run(hand.run_id), store.keys.audit(hand.run_id))


async def test_a_live_log_is_trimmed_only_as_far_as_it_is_covered(store: Store) -> None:
    """Deltas before a checkpoint may go, later ones may not; the audit stream still has the rest."""
    hand = await start(store)
    await hand.emit(
        ("message.started", {"message_id": "m", "role": "assistant"}),
        *(("message.delta", {"message_id": "m", "text": c}) for c in "abc"),
        ("message.checkpoint", {"message_id": "m", "text": "abc"}),
        ("message.delta", {"message_id": "m", "text": "d"}),
    )
    folded = await store.checkpoints.fold(hand.run_id)
    await store.checkpoints.store(hand.run_id, folded.fold)
    assert await store.checkpoints.trim(hand.run_id, 100) == 8
    left = await store.events.after(hand.run_id, 0, 100)
    assert [e.sequence for e in left] == [1, 2, 3, 7, 8]
    fresh = await Store.open(store.settings)
    snapshot = await fresh.runs.snapshot(hand.run_id)
    await fresh.close()
    assert bytes(snapshot.messages[0].content) == b'[{"type":"text","text":"abcd"}]'
    assert snapshot.earliest_sequence == 1
    assert await store.checkpoints.trim(hand.run_id, 3) == 8


async def test_a_stale_fold_replaces_nothing(store: Store) -> None:
    """A slower process that stores an older fold is refused; the newer one stays."""
    hand = await start(store)
    old = (await store.checkpoints.fold(hand.run_id)).fold.dump()
    await hand.emit(("step.done", {}))
    new = (await store.checkpoints.fold(hand.run_id)).fold
    await store.checkpoints.store(hand.run_id, new)
    from reattach.core.fold import Fold

    await store.checkpoints.store(hand.run_id, Fold.load(old))
    assert await store.door.call("HGET", store.keys.run(hand.run_id), "snapshot_sequence") == b"3"


async def test_a_timer_that_means_nothing_is_struck(store: Store) -> None:
    """Neither a member that is not ours nor one whose run is gone blocks the others."""
    await store.door.call("ZADD", store.keys.timers("00"), 1, "nonsense", 1, f"seal:run_00{'z' * 24}", 1, f"retry:run_00{'z' * 24}")
    await store.sweep.once()
    assert await store.door.call("ZCARD", store.keys.timers("00")) == 0


async def test_a_timer_of_a_newer_version_is_left_to_it(store: Store) -> None:
    """Two versions run side by side during a deploy: the older one neither strikes what it does not know nor stops at it."""
    member, timers = f"remind:run_00{'z' * 24}", store.keys.timers("00")
    await store.door.call("ZADD", timers, 1, member)
    await store.sweep.once()
    assert float(await store.door.call("ZSCORE", timers, member)) > 1
    await store.door.call("ZREM", timers, member)


async def test_retries_are_spaced(store: Store) -> None:
    """The second loss of an owner waits for the agent's backoff, on the server's clock."""
    run_id = await create(store)
    for attempt in (1, 2):
        for delivery in await store.work.take("support", "c"):
            await store.work.claim(delivery, consumer="c", worker="c", max_losses=5, backoff_ms=700)

        async def taken_back(attempt: int = attempt) -> bool:
            await store.sweep.once()
            return (await store.runs.load(run_id)).losses == attempt

        await wait_until(taken_back, f"loss {attempt} to be noticed", timeout=10)
    assert (await store.runs.load(run_id)).entry is None

    async def requeued() -> bool:
        await store.sweep.once()
        return (await store.runs.load(run_id)).entry is not None

    await wait_until(requeued, "the pause to end", timeout=5)
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")


async def test_retries_are_spread(store: Store) -> None:
    """What one dead worker had does not come back all at once: each run pauses its agent's backoff and up to a quarter more."""
    runs = [await create(store, agent) for agent in ("support", "slow") for _ in range(6)]
    backoffs = {"support": 40_000, "slow": 100_000}
    for attempt in (1, 2):
        for agent, pause in backoffs.items():
            for delivery in await store.work.take(agent, "c", limit=6):
                assert await store.work.claim(delivery, consumer="c", worker="c", max_losses=5, backoff_ms=pause)

        async def taken_back(attempt: int = attempt) -> bool:
            await store.sweep.once()
            return {(await store.runs.load(run_id)).losses for run_id in runs} == {attempt}

        await wait_until(taken_back, f"loss {attempt} of all to be noticed", timeout=10)
    pauses = dict[str, set[int]]((agent, set[int]()) for agent in backoffs)
    for run_id in runs:
        record = await store.runs.load(run_id)
        due = float(await store.door.call("ZSCORE", store.keys.timers(run_id[4:6]), f"retry:{run_id}"))
        pauses[record.agent].add(round(due) - record.last_activity_at)
        await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    for agent, pause in backoffs.items():
        assert pause <= min(pauses[agent]) and max(pauses[agent]) <= 1.25 * pause
        assert len(pauses[agent]) > 3, f"{agent} comes back all at once: {pauses}"


async def test_a_remembered_fold_of_a_lost_history_is_not_continued(store: Store) -> None:
    """A failover lost the last events and the run grew past them since: the snapshot is of what the log has, not of what was remembered."""
    hand = await start(store)
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}), ("message.delta", {"message_id": "m", "text": "lost"}))
    await store.runs.snapshot(hand.run_id)
    other = await Store.open(store.settings)
    for key in (other.keys.log(hand.run_id), other.keys.audit(hand.run_id)):
        await other.door.call("XDEL", key, "4-0")
    payload = '{"message_id":"m","text":"kept"}'
    await other.door.call("DEL", other.keys.log(hand.run_id))
    for event in (await other.events.after(hand.run_id, 0, 10))[:3]:
        await other.door.call(
            "XADD", other.keys.log(hand.run_id), f"{event.sequence}-0", "type", event.type, "at", event.at, "payload", event.payload
        )
    await other.door.call("XADD", other.keys.log(hand.run_id), "4-0", "type", "message.delta", "at", "1", "payload", payload)
    await other.close()
    snapshot = await store.runs.snapshot(hand.run_id)
    assert bytes(snapshot.messages[0].content) == b'[{"type":"text","text":"kept"}]'


async def test_a_key_gets_its_expiry_however_sweepers_meet(store: Store) -> None:
    """One read the run before it ended and is slow; another has written the key's expiry and struck the timer: it still has one."""
    record = (await store.runs.create(new_run(), key="k", fingerprint="f")).record
    hand, fast = await claim(store), await Store.open(store.settings)
    run, waited = store.door.run, False

    async def overtaken(script: Script, keys: Mapping[str, KeyNames], *args: Any) -> Reply:
        nonlocal waited
        if script.name == "keep" and not waited:
            waited = True
            await hand.finish()
            await fast.sweep.once()
        return await run(script, keys, *args)

    store.door.run = overtaken
    hand.store = fast
    await store.sweep.once()
    store.door.run = run
    await fast.close()
    assert waited and record.idempotency is not None
    assert await store.door.call("PTTL", record.idempotency) > 0
