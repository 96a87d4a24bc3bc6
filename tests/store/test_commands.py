"""Every command, every branch of its reply, against real Redis. Two calls in a row are one call whose reply was lost."""

from typing import Any

import pytest

from reattach.core.errors import (
    BatchGap,
    EffectUnresolved,
    IdempotencyKeyReused,
    InvalidRequest,
    LeaseLost,
    Nondeterminism,
    RunClosed,
    RunNotFound,
    WaitNotOpen,
)
from reattach.core.event import Event
from reattach.core.receipt import Effect, EffectCall
from reattach.store import Lease, Store
from reattach.store.scripts import GROUP, load_scripts

from ..support.drive import Hand, claim, create, draft, new_run, start
from ..support.waiting import wait_until

NOBODY = "run_00zzzzzzzzzzzzzzzzzzzzzzzz"


async def log(store: Store, run_id: str) -> list[Event]:
    """The whole log."""
    return await store.events.after(run_id, 0, 1000)


async def types(store: Store, run_id: str) -> list[str]:
    """The log's event types."""
    return [e.type for e in await log(store, run_id)]


def call(call_id: str = "call_1", tool: str = "tickets.add_note") -> EffectCall:
    """A mutating tool call."""
    return EffectCall(call_id=call_id, tool=tool, arguments=b'{"ticket":981}', mutating=True)


def receipt(call_id: str = "call_1", tool: str = "tickets.add_note", **changes: Any) -> Effect:
    """What became of it."""
    facts: dict[str, Any] = {"status": "receipt", "receipt_id": "receipt_558", "result_version": "ticket_981:v19", "result": b"[]"}
    return Effect(call_id=call_id, tool=tool, mutating=True, arguments=b'{"ticket":981}', **(facts | changes))


async def lost(store: Store, hand: Hand) -> None:
    """Let the owner's lease end and a sweep take the run back."""

    async def reclaimed() -> bool:
        await store.sweep.once()
        return (await store.runs.load(hand.run_id)).fence is None

    await wait_until(reclaimed, "the lease to end and the run to be taken back", timeout=10)


# create and reserve -------------------------------------------------------------------------------------------------------------------


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


# claim, renew, release, reclaim -------------------------------------------------------------------------------------------------------


async def test_claim_starts_the_first_attempt(store: Store) -> None:
    """A claimed run runs, its attempt is 1, and the log says who works on it."""
    hand = await start(store)
    record = await store.runs.load(hand.run_id)
    assert (record.state, record.attempt, record.fence) == ("running", 1, hand.lease.fence)
    assert (await log(store, hand.run_id))[-1].payload == b'{"attempt":1,"worker":"hand"}'


async def test_claim_of_an_owned_run_is_refused(store: Store) -> None:
    """Whoever holds the same entry without the fence gets nothing while the lease lasts."""
    hand = await start(store)
    delivery = (await pending(store, hand))[0]
    assert await store.work.claim(delivery, consumer="other", worker="other", max_losses=3, backoff_ms=0) is None
    assert (await store.work.renew(hand.lease)).cancel_version == 0


async def pending(store: Store, hand: Hand) -> list[Any]:
    """The entry a hand holds, as if it had been delivered again."""
    from reattach.store import Delivery

    return [Delivery(run_id=hand.run_id, agent="support", shard=hand.run_id[4:6], entry=hand.lease.entry)]


async def test_claim_whose_reply_was_lost_is_the_same_acquisition(store: Store) -> None:
    """The same fence again: the same attempt, no second event."""
    hand = await start(store)
    keys = store.keys.of_run(hand.run_id, "support")
    args = (hand.run_id, GROUP, hand.lease.entry, "hand", hand.lease.fence, 1000, '"hand"', 3, 0)
    reply = await store.door.run(load_scripts()["claim"], keys, *args)
    assert (reply.word, reply.integer(0), reply.integer(1)) == ("OK", 1, 2)
    assert len(await log(store, hand.run_id)) == 2


async def test_claim_of_an_ended_run_drops_the_entry(store: Store) -> None:
    """An entry that outlived its run is acknowledged and says nothing."""
    run_id = await create(store)
    delivery = (await store.work.take("support", "c"))[0]
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    assert await store.work.claim(delivery, consumer="c", worker="c", max_losses=3, backoff_ms=0) is None
    assert await store.work.take("support", "c") == []


async def test_renew_branches(store: Store) -> None:
    """OK with the cancel version; fenced after release; closed after the end."""
    hand = await start(store)
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert (await hand.renew()).cancel_version == 1
    await hand.finish("cancelled")
    with pytest.raises(RunClosed):
        await hand.renew()
    other = await start(store)
    await store.work.release(other.lease, cause="drain")
    with pytest.raises(LeaseLost):
        await other.renew()


async def test_release_hands_over_at_once(store: Store) -> None:
    """A released run is queued with the next attempt; it is not a loss, and the old owner is fenced."""
    hand = await start(store)
    await store.work.release(hand.lease, cause="drain")
    await store.work.release(hand.lease, cause="drain")
    assert (await types(store, hand.run_id)).count("run.retrying") == 1
    again = await claim(store)
    assert (again.run_id, again.lease.attempt) == (hand.run_id, 2)
    assert (await store.runs.load(hand.run_id)).losses == 0
    with pytest.raises(LeaseLost):
        await hand.emit(("step.done", {}))


async def test_reclaim_takes_a_dead_owners_run_back(store: Store) -> None:
    """After the lease the run is queued again with the next attempt; every write of the old owner is refused."""
    hand = await start(store)
    await lost(store, hand)
    assert (await log(store, hand.run_id))[-1].payload == b'{"attempt":2,"cause":"worker_lost"}'
    again = await claim(store)
    assert again.lease.attempt == 2 and again.lease.fence != hand.lease.fence
    for refused in (
        hand.emit(("step.done", {})),
        hand.renew(),
        hand.finish(),
        store.work.intend(hand.lease, call()),
        store.work.commit(hand.lease, receipt()),
        store.work.release(hand.lease, cause="drain"),
        store.work.park(hand.lease, wait_id="w", reason="r", timeout_ms=None),
    ):
        with pytest.raises(LeaseLost):
            await refused


async def test_reclaim_leaves_a_living_owner_alone(store: Store) -> None:
    """While the lease is renewed a sweep changes nothing, also with no event for longer than a lease."""
    hand = await start(store)
    for _ in range(4):
        await hand.renew()
        assert (await store.sweep.once()).reclaimed == 0
    await hand.finish()


async def test_reclaim_fails_a_run_whose_owners_keep_dying(store: Store) -> None:
    """After the last loss the run has failed with worker_lost."""
    run_id = await create(store)
    for _ in range(2):
        await lost(store, await claim(store, max_losses=2))
    last = (await log(store, run_id))[-1]
    assert last.type == "run.failed" and b'"code":"worker_lost"' in last.payload


async def test_reclaim_returns_an_entry_that_was_delivered_and_never_claimed(store: Store) -> None:
    """A reader that dies between delivery and claim costs time only: no attempt, no event."""
    run_id = await create(store)
    assert await store.work.take("support", "dies")

    async def returned() -> Any:
        await store.sweep.deliveries(["support"])
        return await store.work.take("support", "lives")

    await wait_until(returned, "the entry to come back", timeout=10)
    assert await types(store, run_id) == ["run.created"]


async def test_sweeps_at_once_reclaim_once(store: Store) -> None:
    """Several sweepers find the same dead owner: one retry is written."""
    import asyncio

    hand = await start(store)

    async def reclaimed() -> bool:
        await asyncio.gather(*(store.sweep.once() for _ in range(5)))
        return (await store.runs.load(hand.run_id)).state == "queued"

    await wait_until(reclaimed, "the lease to end", timeout=10)
    assert (await types(store, hand.run_id)).count("run.retrying") == 1


@pytest.mark.expects_errors("a poisoned entry is reported as one")
async def test_a_queue_entry_that_names_no_run_is_set_aside(store: Store) -> None:
    """It blocks nothing and an operator finds it."""
    run_id = await create(store)
    tag = run_id[4:6]
    await store.door.call("XADD", store.keys.queue(tag, "support"), "*", "nonsense", "1")

    async def taken() -> Any:
        return await store.work.take("support", "c", limit=2) or await store.door.call("XLEN", store.keys.poison(tag, "support"))

    await wait_until(taken, "the entries to be read")
    await store.work.take("support", "c", limit=2)
    assert await store.door.call("XLEN", store.keys.poison(tag, "support")) == 1


# append -------------------------------------------------------------------------------------------------------------------------------


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


# intend and commit --------------------------------------------------------------------------------------------------------------------


async def test_an_effect_is_asked_for_once_and_its_receipt_is_kept(store: Store) -> None:
    """Go, receipt, and from then on the receipt; each call repeated changes nothing."""
    hand = await start(store)
    for _ in range(2):
        assert (await store.work.intend(hand.lease, call())).kind == "go"
    sequences = {(await store.work.commit(hand.lease, receipt())).sequence for _ in range(2)}
    assert sequences == {4}
    known = await store.work.intend(hand.lease, call())
    assert known.kind == "receipt" and known.effect == receipt()
    assert await types(store, hand.run_id) == ["run.created", "run.started", "tool.requested", "tool.completed"]


async def test_a_failed_effect_stays_failed(store: Store) -> None:
    """Its error is answered from the record, not by calling again."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    failure = receipt(status="failed", receipt_id=None, result_version=None, result=None, error=b'{"code":"boom"}')
    await store.work.commit(hand.lease, failure)
    known = await store.work.intend(hand.lease, call())
    assert known.kind == "failed" and known.effect == failure


async def test_no_effect_starts_after_a_cancel_request_but_a_receipt_is_still_written(store: Store) -> None:
    """The gate says cancelled; what already ran is recorded, and the ending says so."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert (await store.work.intend(hand.lease, call("call_2"))).kind == "cancelled"
    assert (await store.work.commit(hand.lease, receipt())).cancel_version == 1
    done = await hand.finish("cancelled")
    assert done.disposition == "cancelled_after_effect"


async def test_an_intention_without_receipt_is_unresolved_for_the_next_owner(store: Store) -> None:
    """It is named once in the log, never run silently; a policy may run it again."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await lost(store, hand)
    again = await claim(store)
    assert again.claim.effects["call_1"].status == "intent"
    for _ in range(2):
        assert (await store.work.intend(again.lease, call())).kind == "unresolved"
    assert (await types(store, hand.run_id)).count("tool.unresolved") == 1
    assert (await store.work.intend(again.lease, call(), again=True)).kind == "go"
    await store.work.commit(again.lease, receipt())


async def test_another_tool_under_the_same_call_id_is_an_error(store: Store) -> None:
    """A handler that asks for something else at the same place is told."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.work.commit(hand.lease, receipt())
    with pytest.raises(Nondeterminism):
        await store.work.intend(hand.lease, call(tool="tickets.delete"))


async def test_a_receipt_needs_an_intention(store: Store) -> None:
    """Nothing is written for a call that the gate never saw."""
    hand = await start(store)
    with pytest.raises(EffectUnresolved):
        await store.work.commit(hand.lease, receipt())


@pytest.mark.parametrize("text", ["", "a b", "wait:x", "x" * 129, "é", "a\n"])
async def test_call_ids_have_an_alphabet(store: Store, text: str) -> None:
    """A call id that could break a record apart is refused before anything is written."""
    hand = await start(store)
    with pytest.raises(InvalidRequest):
        await store.work.intend(hand.lease, call(text))
    assert len(await log(store, hand.run_id)) == 2


# park, signal, expire -----------------------------------------------------------------------------------------------------------------


async def test_a_parked_run_is_answered_once_and_goes_on(store: Store) -> None:
    """Waiting holds no lease; the answer resumes the same attempt; the wait is then answered from the record."""
    hand = await start(store)
    for _ in range(2):
        assert (await store.work.park(hand.lease, wait_id="w1", reason="approval", prompt="ok?", timeout_ms=60_000)).kind == "parked"
    assert (await store.runs.load(hand.run_id)).state == "waiting"
    sequences = {await store.runs.answer(hand.run_id, wait_id="w1", value=b"true", by="me", key="k", fingerprint="f") for _ in range(2)}
    assert sequences == {4}
    again = await claim(store)
    assert (again.lease.attempt, again.claim.resumed, again.claim.answers) == (1, True, {"w1": b"true"})
    parked = await store.work.park(again.lease, wait_id="w1", reason="approval", timeout_ms=None)
    assert (parked.kind, parked.value) == ("answered", b"true")
    assert await types(store, hand.run_id) == ["run.created", "run.started", "run.waiting", "input.received", "run.resumed"]


async def test_an_answer_that_does_not_fit_is_refused(store: Store) -> None:
    """Not waiting, another wait, another answer under the same key, a second answer, no such run."""
    hand = await start(store)
    answer: dict[str, Any] = {"value": b"1", "by": "me", "key": "k", "fingerprint": "f"}
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w1", **answer)
    await store.work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=None)
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w2", **answer)
    await store.runs.answer(hand.run_id, wait_id="w1", **answer)
    changed: dict[str, Any] = {**answer, "fingerprint": "g"}
    with pytest.raises(IdempotencyKeyReused):
        await store.runs.answer(hand.run_id, wait_id="w1", **changed)
    second: dict[str, Any] = {**answer, "key": "k2"}
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(hand.run_id, wait_id="w1", **second)
    with pytest.raises(RunNotFound):
        await store.runs.answer(NOBODY, wait_id="w1", **answer)


@pytest.mark.parametrize(("sleep", "state"), [(False, "failed"), (True, "queued")])
async def test_the_limit_of_a_wait_fires_once(store: Store, sleep: bool, state: str) -> None:
    """A wait that nobody answered fails the run with its own code; a sleep goes on."""
    hand = await start(store)
    await store.work.park(hand.lease, wait_id="w1", reason="r", timeout_ms=50, sleep=sleep)

    async def fired() -> bool:
        await store.sweep.once()
        return (await store.runs.load(hand.run_id)).state == state

    await wait_until(fired, "the limit to pass")
    await store.sweep.once()
    names = await types(store, hand.run_id)
    assert names[3:] == (["input.received"] if sleep else ["run.failed"])
    if not sleep:
        assert b"wait_expired" in (await log(store, hand.run_id))[-1].payload


# cancel and finish --------------------------------------------------------------------------------------------------------------------


async def test_cancel_of_a_queued_run_ends_it_at_once(store: Store) -> None:
    """Nobody will ever be handed it; the same key hears the same answer, any other that it had ended."""
    run_id = await create(store)
    ask: dict[str, Any] = {"by": "me", "reason": "changed my mind", "fingerprint": "f"}
    first = await store.runs.cancel(run_id, key="k", **ask)
    assert (first.disposition, first.sequence) == ("cancelled_before_effect", 3)
    assert await store.runs.cancel(run_id, key="k", **ask) == first
    assert (await store.runs.cancel(run_id, key="k2", **ask)).disposition == "already_terminal"
    with pytest.raises(IdempotencyKeyReused):
        await store.runs.cancel(run_id, key="k", by="me", reason=None, fingerprint="g")
    assert await types(store, run_id) == ["run.created", "run.cancel_requested", "run.cancelled"]
    assert await store.work.take("support", "c") == []


async def test_cancel_of_a_waiting_run_ends_it_at_once(store: Store) -> None:
    """With the truth about what had been done before it waited."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.work.commit(hand.lease, receipt())
    await store.work.park(hand.lease, wait_id="w", reason="r", timeout_ms=60_000)
    reply = await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert reply.disposition == "cancelled_after_effect"


async def test_cancel_of_a_running_run_is_recorded_once(store: Store) -> None:
    """Pending until the worker reaches a boundary; asking again adds nothing."""
    hand = await start(store)
    for _ in range(3):
        reply = await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
        assert reply.disposition == "cancellation_pending"
    assert (await types(store, hand.run_id)).count("run.cancel_requested") == 1
    assert (await hand.finish("cancelled")).disposition == "cancelled_before_effect"


async def test_cancel_of_a_run_whose_worker_died_ends_it(store: Store) -> None:
    """A stop that nobody is left to obey is obeyed by the sweep, and an effect of unknown fate is named."""
    hand = await start(store)
    await store.work.intend(hand.lease, call())
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    await lost(store, hand)
    assert (await types(store, hand.run_id))[-3:] == ["run.cancel_requested", "tool.unresolved", "run.cancelled"]
    assert b"cancelled_after_effect" in (await log(store, hand.run_id))[-1].payload


async def test_cancel_of_nothing_leaves_nothing(store: Store) -> None:
    """An unknown run is not found and no mark stays behind."""
    with pytest.raises(RunNotFound):
        await store.runs.cancel(NOBODY, by="me", reason=None, key="k", fingerprint="f")
    assert not await store.door.call("EXISTS", *(k for k in store.keys.of_run(NOBODY).values() if k and "run:" in k))


async def test_first_terminal_writer_wins(store: Store) -> None:
    """A second ending, also with another outcome, is told the stored one."""
    hand = await start(store)
    first = await hand.finish("succeeded", outcome={"a": 1})
    second = await hand.finish("failed")
    assert (first.state, second.state, second.sequence) == ("succeeded", "succeeded", first.sequence)
    assert (await types(store, hand.run_id))[-1] == "run.succeeded"


async def test_a_run_that_succeeds_although_a_stop_was_asked_for_says_so(store: Store) -> None:
    """The handler was done before it saw the request: the outcome stands."""
    hand = await start(store)
    await store.runs.cancel(hand.run_id, by="me", reason=None, key="k", fingerprint="f")
    assert (await hand.finish()).disposition == "already_terminal"
    assert (await store.runs.cancel(hand.run_id, by="me", reason=None, key="k", fingerprint="f")).disposition == "already_terminal"


async def test_nobody_is_cancelled_unasked(store: Store) -> None:
    """A worker cannot end a run as cancelled without a request."""
    hand = await start(store)
    with pytest.raises(RunClosed):
        await hand.finish("cancelled")


async def test_a_lease_is_only_its_fence(store: Store) -> None:
    """A lease with a made-up fence can do nothing, whatever else in it is right."""
    hand = await start(store)
    forged = Lease(run_id=hand.run_id, agent="support", fence="0" * 32, entry=hand.lease.entry, consumer="hand", attempt=1)
    with pytest.raises(LeaseLost):
        await store.work.append(forged, 1, [draft("step.done", {})])
    with pytest.raises(LeaseLost):
        await store.work.finish(forged, state="succeeded")
