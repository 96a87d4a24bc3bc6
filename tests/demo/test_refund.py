"""The agent that waits for a person: parked without a worker, answered once, and the decision is noted once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reattach.demo.agents import agents
from reattach.demo.tickets import Tickets
from reattach.store import Store

from ..worker.seen import error, outcome, reaches, submit, texts, types

Start = Callable[..., Any]


async def _waiting(store: Store, run_id: str) -> Any:
    await reaches(store, run_id, "waiting")
    return (await store.runs.snapshot(run_id)).waiting


@pytest.mark.parametrize(
    ("said", "approved"), [(True, True), ({"approved": True}, True), (False, False), ("true", False), (1, False), ({"approved": 1}, False)]
)
async def test_a_refund_is_decided_by_a_person(said: Any, approved: bool, store: Store, workers: Start, tickets: Tickets) -> None:
    """Only a clear yes is one; either way the ticket gets one note, on whatever worker goes on."""
    first = await workers(agents, name="first")
    run_id = await submit(store, "refund", {"ticket": 978, "amount": 59.9})
    waiting = await _waiting(store, run_id)
    assert waiting.prompt == "Refund 59.90 EUR to Jonas Feldmann (ticket 978)?"
    assert tickets.read(978).version == "v3"
    await first.close()
    await workers(agents, name="second")
    await store.runs.answer(run_id, wait_id=waiting.wait_id, value=json.dumps(said).encode(), by="test", key=None, fingerprint="")
    result = await outcome(store, run_id)
    assert result == {"ticket": 978, "approved": approved, "note": "receipt_558", "version": "ticket_978:v4"}
    assert tickets.read(978).notes[-1].body == f"Refund of 59.90 EUR {'approved' if approved else 'declined'}."
    assert len(texts(await store.runs.snapshot(run_id))) == 2
    assert (await types(store, run_id)).count("tool.requested") == 2


@pytest.mark.parametrize("given", [{}, {"ticket": 981, "amount": 0}, {"ticket": 981, "amount": "40"}, {"ticket": 981, "timeout": 0}])
async def test_wrong_input_teaches(given: Any, store: Store, workers: Start) -> None:
    """An input of no use fails the run with an example of a right one."""
    await workers(agents)
    failed = await error(store, await submit(store, "refund", given))
    assert failed["code"] == "invalid_input" and '{"ticket": 981, "amount": 40}' in failed["message"]


async def test_nobody_answers(store: Store, workers: Start, tickets: Tickets) -> None:
    """After its limit the run fails, typed, and nothing was noted."""
    await workers(agents)
    failed = await error(store, await submit(store, "refund", {"ticket": 978, "timeout": 0.2}))
    assert failed["code"] == "wait_expired"
    assert tickets.read(978).version == "v3"
