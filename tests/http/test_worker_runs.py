"""What a worker in another language does to its run: the same fence, the same idempotency, the same truth as the SDK."""

import asyncio
from typing import Any

import pytest

from reattach.http.worker_bodies import MAX_BATCH
from reattach.store import Store

from ..store.hands import lost
from ..support import drive
from ..support.drive import Hand
from ..support.factories import Replicas
from ..support.service import Service
from ..support.waiting import wait_until
from .far import claim, events, types

NOTE: dict[str, Any] = {"tool_call_id": "call_1", "tool": "tickets.add_note", "arguments": {"ticket": 981}}
DONE: dict[str, Any] = {
    "tool_call_id": "call_1", "status": "receipt", "receipt_id": "receipt_558", "result_version": "ticket_981:v19", "result": {"note": 7},
}  # fmt: skip


async def test_a_whole_run(service: Service, store: Store) -> None:
    """Claim, text, an effect, a wait, an answer, the end; every step told in order, as from any other worker."""
    run_id = await drive.create(store, input=b'{"ticket":981}')
    far = await claim(service)
    assert (far.run_id, far.claim["run"]["input"], far.claim["run"]["attempt"]) == (run_id, {"ticket": 981}, 1)
    assert (far.claim["lease"]["next_batch"], far.claim["resumed"]) == (1, False)
    await far.append(1, ("message.delta", {"message_id": "m1", "text": "Looking"}), ("step.done", {"n": 1}))
    told = await far.do("intent", **NOTE)
    assert (told["kind"], told["idempotency_key"]) == ("go", f"{run_id}:call_1")
    await far.do("receipt", **DONE)
    assert await far.do("park", wait_id="approval_1", reason="approval", prompt="Refund?", timeout=60) == {"kind": "parked", "value": None}
    await service.client.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": "approval_1", "value": True})
    again = await claim(service)
    assert (again.claim["resumed"], again.claim["run"]["attempt"], again.claim["answers"]) == (True, 1, {"approval_1": True})
    assert again.claim["effects"]["call_1"]["result"] == {"note": 7}
    assert (await again.do("park", wait_id="approval_1", reason="approval")) == {"kind": "answered", "value": True}
    assert (await again.do("intent", **NOTE))["kind"] == "receipt"
    ended = await again.do("finish", state="succeeded", outcome={"note": "receipt_558"})
    assert ended["state"] == "succeeded"
    assert await types(service, run_id) == [
        "run.created", "run.started", "message.delta", "step.done", "tool.requested", "tool.completed", "run.waiting", "input.received",
        "run.resumed", "run.succeeded",
    ]  # fmt: skip
    snapshot = (await service.client.get(f"/agent-runs/{run_id}")).json()
    assert (snapshot["sequence"], snapshot["resources"]) == (ended["sequence"], {"ticket_981": "v19"})


async def test_everything_may_be_sent_again(service: Service, store: Store) -> None:
    """A lost answer, repeated, is the same answer, and nothing happens twice."""
    await drive.create(store)
    far = await claim(service)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("append", {"batch": 1, "events": [{"type": "step.done", "payload": {"n": 1}}]}),
        ("renew", {}),
        ("intent", NOTE),
        ("receipt", DONE),
        ("finish", {"state": "succeeded", "outcome": 1}),
    ]
    for verb, body in steps:
        assert await far.do(verb, **body) == await far.do(verb, **body), verb
    told = await types(service, far.run_id)
    assert told == ["run.created", "run.started", "step.done", "tool.requested", "tool.completed", "run.succeeded"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [("park", {"wait_id": "w", "reason": "approval", "timeout": 60}), ("release", {"cause": "drain"})],
)
async def test_giving_a_run_up_may_be_sent_again(service: Service, store: Store, verb: str, body: dict[str, Any]) -> None:
    """Also what gives the lease up knows its own repeat."""
    await drive.create(store)
    far = await claim(service)
    assert await far.do(verb, **body) == await far.do(verb, **body)
    assert await far.refused("renew") == (409, "lease_lost")
    assert len(await types(service, far.run_id)) == 3


EVERYTHING: list[tuple[str, dict[str, Any]]] = [
    ("append", {"batch": 1, "events": [{"type": "step.done", "payload": {}}]}),
    ("intent", NOTE),
    ("receipt", DONE),
    ("park", {"wait_id": "w", "reason": "r"}),
    ("finish", {"state": "succeeded"}),
    ("renew", {}),
    ("release", {}),
]


async def test_a_lost_lease_can_do_nothing(service: Service, store: Store) -> None:
    """Every operation of the old owner is refused as lease_lost, before and after there is a new one; the run does not change."""
    await drive.create(store)
    far = await claim(service)
    await lost(store, Hand(store, FakeClaim(far.run_id, far.fence)))
    before = await types(service, far.run_id)
    for verb, body in EVERYTHING:
        assert await far.refused(verb, **body) == (409, "lease_lost"), verb
    new = await claim(service)
    assert (new.run_id, new.claim["run"]["attempt"]) == (far.run_id, 2) and new.fence != far.fence
    for verb, body in EVERYTHING:
        assert await far.refused(verb, **body) == (409, "lease_lost"), verb
    assert await types(service, far.run_id) == [*before, "run.started"]
    await new.do("finish", state="succeeded")


class FakeClaim:
    """What a hand needs to be called the owner of a run."""

    def __init__(self, run_id: str, fence: str) -> None:
        self.lease = self
        self.run_id, self.fence = run_id, fence


async def test_an_ended_run_is_closed(service: Service, store: Store) -> None:
    """run_closed, with the state it is in; the end itself is told again."""
    await drive.create(store)
    far = await claim(service)
    ended = await far.do("finish", state="failed", error={"code": "no_such_ticket", "message": "There is none."})
    for verb, body in EVERYTHING:
        if verb == "finish":
            assert await far.do(verb, **body) == ended
        elif verb == "receipt":
            assert await far.refused(verb, **body) == (409, "effect_unresolved")
        else:
            assert await far.refused(verb, **body) == (409, "run_closed"), verb
    snapshot = (await service.client.get(f"/agent-runs/{far.run_id}")).json()
    assert snapshot["error"] == {"code": "no_such_ticket", "message": "There is none."}


async def test_a_batch_that_is_missing(service: Service, store: Store) -> None:
    """batch_gap says which comes first; a repeat of the last one writes nothing, whatever it carries."""
    await drive.create(store)
    far = await claim(service)
    answer = await far.try_to("append", batch=2, events=[{"type": "step.done", "payload": {}}])
    assert (answer.status_code, answer.json()["code"], answer.json()["expected"]) == (409, "batch_gap", 1)
    first = await far.append(1, ("step.done", {"n": 1}))
    assert await far.append(1, ("step.done", {"n": 2})) == first
    assert [e["payload"] for e in await events(service, far.run_id) if e["type"] == "step.done"] == [{"n": 1}]


async def test_values_are_carried_byte_for_byte(service: Service, store: Store) -> None:
    """Numbers keep their digits, empty lists stay lists, from a worker to every reader and back to the next worker."""
    await drive.create(store, input=b'{"n":9007199254740993,"e":[],"f":1.10}')
    far = await claim(service)
    exact = '{"n":9007199254740993,"e":[],"f":1.10,"o":{}}'
    path, kind = f"/worker/runs/{far.run_id}", {"content-type": "application/json"}
    for verb, body in [
        ("append", f'"batch":1,"events":[{{"type":"step.done","payload":{exact}}}]'),
        ("intent", f'"tool_call_id":"c","tool":"t.x","arguments":{exact}'),
        ("receipt", f'"tool_call_id":"c","status":"receipt","result":{exact}'),
        ("release", '"cause":"drain"'),
    ]:
        answer = await service.client.post(f"{path}/{verb}", content=f'{{"fence":"{far.fence}",{body}}}', headers=kind)
        assert answer.status_code == 200, answer.text
    page = await service.client.get(f"/agent-runs/{far.run_id}/events", params={"limit": 100})
    for member in ("payload", "arguments", "result"):
        assert f'"{member}":{exact}' in page.text
    claimed = await service.client.post("/worker/claims", json={"agents": ["support"], "worker": "far", "wait": 5})
    assert f'"arguments":{exact}' in claimed.text and f'"result":{exact}' in claimed.text
    assert '"input":{"n":9007199254740993,"e":[],"f":1.10}' in claimed.text


@pytest.mark.parametrize(
    "kind", ["run.succeeded", "run.retrying", "input.received", "stream.closing", "Step", "step", "a.b\n", "a." + "b" * 63]
)
async def test_no_event_can_be_forged(service: Service, store: Store, kind: str) -> None:
    """Only Reattach ends a run or answers it: such types are refused, with all events of the batch."""
    await drive.create(store)
    far = await claim(service)
    answer = await far.try_to("append", batch=1, events=[{"type": "step.done", "payload": {}}, {"type": kind, "payload": {}}])
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "invalid_request", "type")
    assert await types(service, far.run_id) == ["run.created", "run.started"]


_EVENT: dict[str, Any] = {"type": "step.done", "payload": {}}
_NOTHING: list[Any] = []


@pytest.mark.parametrize(
    ("verb", "body", "code"),
    [
        ("append", {"batch": 0, "events": [_EVENT]}, "invalid_request"),
        ("append", {"batch": 1, "events": _NOTHING}, "invalid_request"),
        ("append", {"batch": 1, "events": [_EVENT] * (MAX_BATCH + 1)}, "invalid_request"),
        ("append", {"batch": 1, "events": [{"type": "step.done", "payload": _NOTHING}]}, "invalid_request"),
        ("append", {"batch": 1, "events": [{"type": "step.done", "payload": {"x": "y" * 300_000}}]}, "payload_too_large"),
        ("append", {"batch": 1, "events": [{**_EVENT, "resource_scope": "a b"}]}, "invalid_request"),
        ("append", {"batch": 1, "events": [_EVENT], "fence": ""}, "invalid_request"),
        ("append", {"batch": 1, "events": [_EVENT], "fence": "x" * 32}, "invalid_request"),
        ("append", {"batch": 1, "events": [{"type": "s.d", "payload": {"x": "y" * 250_000}}] * 5}, "payload_too_large"),
        ("intent", {"tool_call_id": "wait:x", "tool": "t"}, "invalid_request"),
        ("intent", {"tool_call_id": "c", "tool": "a b"}, "invalid_request"),
        ("intent", {"tool_call_id": "c", "tool": "t", "arguments": [1]}, "invalid_request"),
        ("receipt", {"tool_call_id": "c", "status": "failed"}, "invalid_request"),
        ("receipt", {"tool_call_id": "c", "status": "failed", "error": {"code": "x"}, "result": 1}, "invalid_request"),
        ("receipt", {"tool_call_id": "c", "status": "intent"}, "invalid_request"),
        ("receipt", {"tool_call_id": "c", "status": "receipt"}, "effect_unresolved"),
        ("park", {"wait_id": "w", "reason": "sleep", "sleep": True}, "invalid_request"),
        ("park", {"wait_id": "w", "reason": "r", "timeout": 1e12}, "invalid_request"),
        ("park", {"wait_id": "w w", "reason": "r"}, "invalid_request"),
        ("finish", {"state": "failed"}, "invalid_request"),
        ("finish", {"state": "running"}, "invalid_request"),
        ("finish", {"state": "succeeded", "error": {"code": "x"}}, "invalid_request"),
        ("finish", {"state": "cancelled"}, "run_closed"),
        ("renew", {"wait": 100}, "invalid_request"),
        ("release", {"cause": ""}, "invalid_request"),
    ],
)  # fmt: skip
async def test_what_is_refused_changes_nothing(service: Service, store: Store, verb: str, body: dict[str, Any], code: str) -> None:
    """Every limit has its refusal, typed; the run goes on as if nothing had been sent."""
    await drive.create(store)
    far = await claim(service)
    assert (await far.refused(verb, **body))[1] == code
    await far.append(1, ("step.done", {}))
    assert await types(service, far.run_id) == ["run.created", "run.started", "step.done"]


async def test_the_deepest_payload_goes_through(service: Service, store: Store) -> None:
    """64 levels, as everywhere; one more is refused."""
    await drive.create(store)
    far = await claim(service)

    def deep(levels: int) -> dict[str, Any]:
        return {"d": deep(levels - 1)} if levels > 1 else {}

    await far.append(1, ("step.done", deep(64)))
    assert (await far.refused("append", batch=2, events=[{"type": "step.done", "payload": deep(65)}])) == (422, "invalid_request")


async def test_an_effect_without_a_receipt_is_unresolved(service: Service, store: Store) -> None:
    """The next worker is told so, and decides: it may make the call again under the same key, or say what it found."""
    await drive.create(store)
    far = await claim(service)
    assert (await far.do("intent", **NOTE))["kind"] == "go"
    await far.do("release")
    far = await claim(service)
    assert far.claim["effects"]["call_1"]["status"] == "intent"
    told = await far.do("intent", **NOTE)
    assert (told["kind"], told["effect"]["tool"]) == ("unresolved", "tickets.add_note")
    assert (await far.do("intent", **NOTE, again=True)) == {"kind": "go", "idempotency_key": told["idempotency_key"], "effect": None}
    await far.do("receipt", **DONE)
    assert await far.refused("intent", tool_call_id="call_1", tool="tickets.other") == (409, "nondeterminism")
    await far.do("finish", state="succeeded")
    assert (await types(service, far.run_id))[-4:] == ["tool.unresolved", "tool.requested", "tool.completed", "run.succeeded"]


async def test_failed_and_unresolved_calls(service: Service, store: Store) -> None:
    """What a worker says of a call is what everybody reads."""
    await drive.create(store)
    far = await claim(service)
    await far.do("intent", **NOTE)
    await far.do("receipt", tool_call_id="call_1", status="unresolved", why="timeout")
    await far.do("intent", tool_call_id="call_2", tool="tickets.read", mutating=False)
    await far.do("receipt", tool_call_id="call_2", status="failed", error={"code": "no_such_ticket"})
    told = {e["type"]: e["payload"] for e in await events(service, far.run_id)}
    assert told["tool.unresolved"] == {"tool_call_id": "call_1", "tool": "tickets.add_note", "why": "timeout"}
    assert told["tool.failed"]["error"] == {"code": "no_such_ticket", "message": "no_such_ticket"}
    await far.do("finish", state="failed", error={"code": "gave_up"})


async def test_a_stop_reaches_a_worker_that_renews(replicas: Replicas, store: Store) -> None:
    """At once, where it waits for it; every other answer carries it too, and the gate before a tool says cancelled."""
    service = await replicas(lease=60.0)
    await drive.create(store)
    far = await claim(service)
    before = (await store.runs.load(far.run_id)).lease_until
    waiting = asyncio.create_task(far.do("renew", wait=60))

    async def renewed() -> bool:
        return (await store.runs.load(far.run_id)).lease_until != before

    await wait_until(renewed, "the lease to be renewed, so that only the answer is held")
    assert (await service.client.post(f"/agent-runs/{far.run_id}/cancel")).status_code == 202
    assert (await asyncio.wait_for(waiting, 5))["cancel_version"] == 1
    assert (await far.append(1, ("step.done", {})))["cancel_version"] == 1
    assert (await far.do("intent", **NOTE))["kind"] == "cancelled"
    assert (await far.do("park", wait_id="w", reason="r"))["kind"] == "cancelled"
    ended = await far.do("finish", state="cancelled")
    assert (ended["state"], ended["disposition"]) == ("cancelled", "cancelled_before_effect")


async def test_a_renewal_waits_no_longer_than_the_lease_allows(service: Service, store: Store) -> None:
    """A third of it, so that the next one is in time; a stop that is known already does not cut it short again and again."""
    await drive.create(store)
    far = await claim(service)
    await service.client.post(f"/agent-runs/{far.run_id}/cancel")
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert (await far.do("renew", wait=60))["cancel_version"] == 1
    assert loop.time() - began < 0.5
    assert (await far.do("renew", wait=60, cancel_version=1))["cancel_version"] == 1
    assert 0.5 < loop.time() - began < service.settings.lease
    await far.do("finish", state="cancelled")


async def test_any_process_will_do(service: Service, replicas: Replicas, store: Store) -> None:
    """The fence is all that ties a worker to its run: each request may go to another replica."""
    other = await replicas()
    await drive.create(store)
    far = await claim(service)
    for on in (other, service, other):
        assert (await far.try_to("renew", on=on)).status_code == 200
    assert (await far.try_to("finish", on=other, state="succeeded")).status_code == 200


async def test_a_run_that_does_not_exist(service: Service, store: Store) -> None:
    """404, as everywhere."""
    await drive.create(store)
    far = await claim(service)
    far.run_id = "run_00zzzzzzzzzzzzzzzzzzzzzzzz"
    for verb, body in EVERYTHING:
        assert await far.refused(verb, **body) == (404, "run_not_found")
