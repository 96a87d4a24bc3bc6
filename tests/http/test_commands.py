"""Stop and input."""

import asyncio
from typing import Any

import httpx
import pytest

from reattach.core.receipt import Effect, EffectCall
from reattach.store import Store

from ..support import drive
from ..support.service import Service


async def cancel(service: Service, run_id: str, body: Any = None, *, wait: float = 0, key: str | None = None) -> httpx.Response:
    """Ask to stop."""
    headers = {} if key is None else {"idempotency-key": key}
    arguments = {} if body is None else {"json": body}
    params = {"wait": str(wait)} if wait else {}
    return await service.client.post(f"/agent-runs/{run_id}/cancel", headers=headers, params=params, **arguments)


async def test_a_queued_run_is_cancelled_at_once(service: Service, store: Store) -> None:
    """200, before any effect; answer, snapshot and terminal event tell one story."""
    run_id = await drive.create(store)
    answer = await cancel(service, run_id, {"reason": "the customer hung up"})
    told = answer.json()
    assert (answer.status_code, told["disposition"], told["state"]) == (200, "cancelled_before_effect", "cancelled")
    assert list(told) == [
        "run_id", "state", "sequence", "disposition", "cancel", "receipts", "resources", "outcome", "error", "links",
    ]  # fmt: skip
    snapshot = (await service.client.get(f"/agent-runs/{run_id}")).json()
    assert snapshot["cancel"] == told["cancel"]
    assert (told["cancel"]["by"], told["cancel"]["reason"], told["cancel"]["version"]) == ("developer", "the customer hung up", 1)
    assert (snapshot["state"], snapshot["sequence"]) == (told["state"], told["sequence"])
    events = (await service.client.get(f"/agent-runs/{run_id}/events?limit=100")).json()["events"]
    assert (events[-1]["type"], events[-1]["payload"]) == ("run.cancelled", {"disposition": "cancelled_before_effect"})


async def test_cancelling_needs_no_body(service: Service, store: Store) -> None:
    """An empty body and an empty object are the same."""
    assert (await cancel(service, await drive.create(store))).status_code == 200
    assert (await cancel(service, await drive.create(store), {})).status_code == 200


async def test_a_running_run_is_asked_to_stop(service: Service, store: Store) -> None:
    """202 while the worker has not reached a boundary; asking again adds nothing."""
    hand = await drive.start(store)
    for _ in range(3):
        answer = await cancel(service, hand.run_id)
        assert (answer.status_code, answer.json()["disposition"], answer.json()["state"]) == (202, "cancellation_pending", "running")
        assert answer.json()["cancel"]["version"] == 1
    assert (await hand.renew()).cancel_version == 1


async def test_waiting_for_the_decision(service: Service, store: Store) -> None:
    """?wait holds the answer until the worker has stopped, with the receipts of what it did."""
    hand = await drive.start(store)
    call = EffectCall(call_id="call_1", tool="tickets.add_note", arguments=b"{}", mutating=True)
    assert (await store.work.intend(hand.lease, call)).kind == "go"
    receipt = Effect(
        call_id="call_1", tool=call.tool, status="receipt", mutating=True, receipt_id="receipt_558", result_version="ticket_981:v19"
    )
    await store.work.commit(hand.lease, receipt)
    waiting = asyncio.create_task(cancel(service, hand.run_id, wait=20))
    follower = await service.follow(hand.run_id).open()
    await follower.until("run.cancel_requested")
    await hand.finish("cancelled")
    answer = await asyncio.wait_for(waiting, 5)
    told = answer.json()
    assert (answer.status_code, told["disposition"], told["state"]) == (200, "cancelled_after_effect", "cancelled")
    assert told["receipts"] == [
        {"tool_call_id": "call_1", "tool": "tickets.add_note", "receipt_id": "receipt_558", "result_version": "ticket_981:v19"}
    ]
    assert told["resources"] == {"ticket_981": "v19"}


async def test_a_wait_that_is_not_decided_in_time(service: Service, store: Store) -> None:
    """202 after the stated time."""
    hand = await drive.start(store)
    answer = await cancel(service, hand.run_id, wait=0.3)
    assert (answer.status_code, answer.json()["disposition"]) == (202, "cancellation_pending")


async def test_a_run_that_ends_otherwise_keeps_its_outcome(service: Service, store: Store) -> None:
    """The request came too late: already_terminal, with the original outcome."""
    hand = await drive.start(store)
    waiting = asyncio.create_task(cancel(service, hand.run_id, wait=20))
    follower = await service.follow(hand.run_id).open()
    await follower.until("run.cancel_requested")
    await hand.finish(outcome={"note": 1})
    for answer in (await asyncio.wait_for(waiting, 5), await cancel(service, hand.run_id)):
        told = answer.json()
        assert (answer.status_code, told["disposition"], told["state"]) == (200, "already_terminal", "succeeded")
        assert (told["outcome"], told["cancel"]["disposition"]) == ({"note": 1}, "already_terminal")


async def test_a_failed_run_says_why(service: Service, store: Store) -> None:
    """Its error is in the answer; nothing changes."""
    hand = await drive.start(store)
    await hand.finish("failed", error={"code": "boom", "message": "no"})
    told = (await cancel(service, hand.run_id)).json()
    assert (told["disposition"], told["error"], told["sequence"]) == ("already_terminal", {"code": "boom", "message": "no"}, 3)


async def test_cancelling_twice_with_one_key_is_one_request(service: Service, store: Store) -> None:
    """Another body under the same key is refused."""
    run_id = await drive.create(store)
    first, again = await cancel(service, run_id, {"reason": "a"}, key="k"), await cancel(service, run_id, {"reason": "a"}, key="k")
    assert first.json() == again.json() and again.json()["disposition"] == "cancelled_before_effect"
    other = await cancel(service, run_id, {"reason": "b"}, key="k")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


async def test_cancelling_in_parallel(service: Service, store: Store) -> None:
    """All are answered 2xx; there is one request and one end (case O15 B)."""
    hand = await drive.start(store)
    answers = await asyncio.gather(*(cancel(service, hand.run_id) for _ in range(20)))
    assert {a.status_code for a in answers} == {202}
    await hand.finish("cancelled")
    events = (await service.client.get(f"/agent-runs/{hand.run_id}/events?limit=100")).json()["events"]
    assert [e["type"] for e in events] == ["run.created", "run.started", "run.cancel_requested", "run.cancelled"]


async def test_an_answer_reaches_its_wait_once(service: Service, store: Store) -> None:
    """202 with the event's place; the value is carried byte for byte; a used or wrong wait_id is 409."""
    hand = await drive.start(store)
    await store.work.park(hand.lease, wait_id="w1", reason="approval", prompt="Refund?", timeout_ms=None)
    path = f"/agent-runs/{hand.run_id}/inputs"
    wrong = await service.client.post(path, json={"wait_id": "w2", "value": True})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wait_not_open")
    body = b'{"wait_id":"w1","value":{"n":9007199254740993,"e":[]}}'
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    answer = await service.client.post(path, content=body, headers=headers)
    told = answer.json()
    assert (answer.status_code, told["event_id"]) == (202, f"{hand.run_id}:{told['sequence']}")
    assert (await service.client.post(path, content=body, headers=headers)).json() == told
    assert (await service.client.post(path, json={"wait_id": "w1", "value": 1})).status_code == 409
    page = await service.client.get(f"/agent-runs/{hand.run_id}/events", params={"limit": 100, "after": told["sequence"] - 1})
    assert b'"value":{"n":9007199254740993,"e":[]}' in page.content


@pytest.mark.parametrize("value", ["null", "false", "[]", '"yes"', "0"])
async def test_an_answer_is_any_json(service: Service, store: Store, value: str) -> None:
    """Not only objects."""
    hand = await drive.start(store)
    await store.work.park(hand.lease, wait_id="w", reason="question", prompt=None, timeout_ms=None)
    answer = await service.client.post(
        f"/agent-runs/{hand.run_id}/inputs", content=f'{{"wait_id":"w","value":{value}}}', headers={"content-type": "application/json"}
    )
    assert answer.status_code == 202


async def test_a_run_that_does_not_wait_takes_no_input(service: Service, store: Store) -> None:
    """409, whatever its state."""
    run_id = await drive.create(store)
    answer = await service.client.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": "w", "value": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "wait_not_open")
