"""Hands that drive one run step by step through the worker's side of the store, so that a test decides when what happens."""

import json
from typing import Any

from reattach.core.event import Draft
from reattach.core.run import NewRun, Retention
from reattach.store import Store

from .waiting import wait_until

TENANT, SUBJECT = "dev", "developer"
"""Who the development authenticator says everybody is."""


def new_run(agent: str = "support", **facts: Any) -> NewRun:
    """What a test creates a run from when it does not care."""
    values: dict[str, Any] = {"tenant": TENANT, "initiator": SUBJECT, "input": b"{}", "retention": Retention(), **facts}
    return NewRun(agent=agent, **values)


async def create(store: Store, agent: str = "support", **facts: Any) -> str:
    """Create a run; its id."""
    return (await store.runs.create(new_run(agent, **facts), key=None, fingerprint="")).record.run_id


class Hand:
    """The owner of one run.

    Attributes:
        lease: What it owns the run by.
        batch: Number of the last batch it appended.
    """

    def __init__(self, store: Store, claim: Any) -> None:
        self.store, self.claim, self.lease, self.batch = store, claim, claim.lease, 0

    @property
    def run_id(self) -> str:
        """The run it owns."""
        return self.lease.run_id

    async def emit(self, *drafts: tuple[str, Any]) -> Any:
        """Append one batch of ``(type, payload)``; a payload may be a value or raw JSON bytes."""
        self.batch += 1
        return await self.store.work.append(self.lease, self.batch, [draft(kind, payload) for kind, payload in drafts])

    async def emit_many(self, count: int, kind: str = "step.done", start: int = 1, size: int = 100) -> None:
        """Append `count` numbered events in batches."""
        for first in range(start, start + count, size):
            await self.emit(*((kind, {"n": n}) for n in range(first, min(first + size, start + count))))

    async def finish(self, state: str = "succeeded", *, outcome: Any = None, error: Any = None) -> Any:
        """End the run."""
        return await self.store.work.finish(
            self.lease,
            state=state,
            outcome=raw(outcome) if state == "succeeded" else None,
            error=raw(error or {"code": "test", "message": "as asked"}) if state == "failed" else None,
        )

    async def renew(self) -> Any:
        """Keep the lease."""
        return await self.store.work.renew(self.lease)


def raw(value: Any) -> bytes:
    """A value as JSON bytes; bytes stay what they are."""
    return value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def draft(kind: str, payload: Any) -> Draft:
    """An event to append."""
    return Draft(kind, raw(payload))


async def claim(store: Store, agent: str = "support", *, consumer: str = "hand", max_losses: int = 3) -> Hand:
    """Take the next run of an agent, whoever created it."""

    async def taken() -> Any:
        for delivery in await store.work.take(agent, consumer):
            got = await store.work.claim(delivery, consumer=consumer, worker=consumer, max_losses=max_losses, backoff_ms=0)
            if got is not None:
                return got
        return None

    return Hand(store, await wait_until(taken, f"a run of {agent} to claim"))


async def start(store: Store, agent: str = "support", **facts: Any) -> Hand:
    """Create a run and own it at once."""
    run_id = await create(store, agent, **facts)
    hand = await claim(store, agent)
    assert hand.run_id == run_id, "another run of this agent was waiting"
    return hand
