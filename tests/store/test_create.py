"""Creating runs, and the keys that name them. Every branch of every reply; two calls in a row are one call whose reply was lost."""

import pytest

from reattach.core.errors import (
    IdempotencyKeyReused,
    RunNotFound,
)
from reattach.store import Store
from reattach.store.scripts import GROUP, load_scripts

from ..support.drive import new_run
from .hands import NOBODY, log, types


async def test_create_writes_record_event_and_queue_entry(store: Store) -> None:
    """A created run is queued, has one event, and can be claimed."""
    made = await store.runs.create(new_run(), key=None, fingerprint="f")
    assert not made.replayed
    assert (made.record.state, made.record.sequence, made.record.attempt) == ("queued", 1, 0)
    assert await types(store, made.record.run_id) == ["run.created"]
    assert [d.run_id for d in await store.work.take("support", "c")] == [made.record.run_id]


async def test_create_again_with_the_key_returns_the_same_run(store: Store) -> None:
    """The same key and body name the same run; another body is refused and changes nothing."""
    first = await store.runs.create(new_run(), key="k", fingerprint="f")
    again = await store.runs.create(new_run(), key="k", fingerprint="f")
    assert again.replayed and again.record.run_id == first.record.run_id
    with pytest.raises(IdempotencyKeyReused):
        await store.runs.create(new_run(), key="k", fingerprint="other")
    assert len((await store.runs.page("dev")).runs) == 1


async def test_a_key_belongs_to_one_tenant_and_initiator(store: Store) -> None:
    """The same key text of somebody else is another key."""
    first = await store.runs.create(new_run(), key="k", fingerprint="f")
    for other in ({"tenant": "other"}, {"initiator": "somebody"}):
        made = await store.runs.create(new_run(**other), key="k", fingerprint="f")
        assert not made.replayed and made.record.run_id != first.record.run_id


async def test_a_key_finds_its_run_whatever_session_it_names(store: Store) -> None:
    """A session decides the run's shard, the key's record stays where the key alone finds it."""
    made = [await store.runs.create(new_run(session_id=f"s{n}"), key=f"k{n}", fingerprint="f") for n in range(8)]
    for n, first in enumerate(made):
        again = await store.runs.create(new_run(session_id=f"s{n}"), key=f"k{n}", fingerprint="f")
        assert again.replayed and again.record.run_id == first.record.run_id
        with pytest.raises(IdempotencyKeyReused):
            await store.runs.create(new_run(session_id="elsewhere"), key=f"k{n}", fingerprint="g")


async def test_a_crash_between_reserve_and_create_is_healed_by_the_retry(store: Store) -> None:
    """A reserved key without a run shows nothing; the same key then creates that very run."""
    from reattach.store.keys import idempotency_name

    key = store.keys.idempotency(idempotency_name("dev", "developer", "k"))
    reserved = f"run_{key[key.index('{') + 1 :][:2]}{NOBODY[6:]}"
    reply = await store.door.run(load_scripts()["reserve"], {"idempotency": key}, reserved, "f", 60_000)
    assert (reply.word, reply.text(0)) == ("OK", reserved)
    with pytest.raises(RunNotFound):
        await store.runs.load(reserved)
    made = await store.runs.create(new_run(), key="k", fingerprint="f")
    assert made.record.run_id == reserved and not made.replayed


async def test_create_whose_reply_was_lost_did_create(store: Store) -> None:
    """The same call sent twice answers OK twice, and writes once; another call for the same id is told that it exists."""
    keys = store.keys.of_run(NOBODY, "support") | {"tenant": store.keys.tenant_runs("00", "dev"), "session": None}
    fields = ["tenant", "dev", "initiator", "me", "resource_scope", "dev/x", "release_id", "r", "input", "{}"]
    fields += ["retain_deltas", 1000, "retain_events", 1000, "retain_run", 1000]
    for nonce, word in (("n1", "OK"), ("n1", "OK"), ("n2", "EXISTS")):
        reply = await store.door.run(load_scripts()["create"], keys, NOBODY, GROUP, "support", nonce, "{}", *fields)
        assert (reply.word, reply.integer(0)) == (word, 1)
    assert len(await log(store, NOBODY)) == 1
    await store.runs.cancel(NOBODY, by="me", reason=None, key=None, fingerprint="")
