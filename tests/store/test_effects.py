"""The gate before a tool and the receipt after it. Every branch of every reply; two calls in a row are one call whose reply was lost."""

import pytest

from reattach.core.errors import (
    EffectUnresolved,
    InvalidRequest,
    Nondeterminism,
)
from reattach.store import Store

from ..support.drive import claim, start
from .hands import call, log, lost, receipt, types


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


async def test_a_stop_does_not_change_what_a_lost_answer_said(store: Store) -> None:
    """The gate said go, the answer was lost, a stop came: asked again it says go, or an effect nobody ran would be one of unknown fate."""
    hand = await start(store)
    first = await store.work.intend(hand.lease, call())
    await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert await store.work.intend(hand.lease, call()) == first
    assert (await store.work.intend(hand.lease, call("call_2"))).kind == "cancelled"
    await store.work.commit(hand.lease, receipt())
    assert (await hand.finish("cancelled")).disposition == "cancelled_after_effect"
    assert "tool.unresolved" not in await types(store, hand.run_id)
