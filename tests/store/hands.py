"""What the store's tests share: a tool call, its receipt, and how an owner is lost."""

from typing import Any

from reattach.core.event import Event
from reattach.core.receipt import Effect, EffectCall
from reattach.store import Delivery, Store

from ..support.drive import Hand
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


def held(hand: Hand) -> Delivery:
    """The entry a hand holds, as if it had been delivered again."""
    return Delivery(run_id=hand.run_id, agent="support", shard=hand.run_id[4:6], entry=hand.lease.entry)
