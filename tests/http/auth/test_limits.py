"""Limits as callers meet them: typed refusals with a time to come again, on every replica; what a dead process had counts no more."""

import asyncio
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.http.auth import OwnPolicy
from reattach.store import Store

from ...support import drive
from ...support.calls import ended
from ...support.factories import Replicas, Workers
from ...support.logs import LogCapture
from ...support.service import Service
from ...support.waiting import wait_until
from .people import Believed, Person

ANN = "acme/ann"


async def serve(replicas: Replicas, **options: Any) -> Service:
    """A replica with the own policy."""
    return await replicas(authenticator=Believed(), authorizer=OwnPolicy(), **options)


async def refused(person: Person, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """A request that is one too many."""
    answer = await person.ask(method, path, body, **headers)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests"), answer.text
    assert int(answer.headers["retry-after"]) >= 1
    return answer.json()


NEW: dict[str, Any] = {"agent": "support", "input": {}}


async def test_creating_runs(replicas: Replicas) -> None:
    """Each subject and each tenant; another tenant notices nothing; the same key is served as ever."""
    service = await serve(replicas, subject_runs=2, tenant_runs=3)
    ann, bob, eve = (Person(service.client, who) for who in (ANN, "acme/bob", "globex/ann"))
    keyed = await ann.ask("POST", "/agent-runs", NEW, idempotency_key="k")
    await ann.create()
    assert "unfinished" in (await refused(ann, "POST", "/agent-runs", NEW))["detail"]
    again = await ann.ask("POST", "/agent-runs", NEW, idempotency_key="k")
    assert (again.status_code, again.json()["run_id"]) == (200, keyed.json()["run_id"])
    await bob.create()
    await refused(bob, "POST", "/agent-runs", NEW)
    await eve.create()


async def test_rates_of_runs_and_tickets(replicas: Replicas) -> None:
    """With the rest of the minute as the time to come again."""
    service = await serve(replicas, subject_run_rate=2, subject_ticket_rate=1)
    ann = Person(service.client, ANN)
    run_id = await ann.create()
    await ann.create()
    assert "in a minute" in (await refused(ann, "POST", "/agent-runs", NEW))["detail"]
    assert await ann.code("POST", f"/agent-runs/{run_id}/tickets", {}) == "201"
    await refused(ann, "POST", f"/agent-runs/{run_id}/tickets", {})


async def test_sessions_are_made_as_often_as_runs(replicas: Replicas) -> None:
    """They can be made without a run."""
    service = await serve(replicas, subject_run_rate=2)
    ann = Person(service.client, ANN)
    for _ in range(2):
        assert await ann.code("POST", "/sessions", {}) == "201"
    await refused(ann, "POST", "/sessions", {})
    await ann.create()


async def test_made_up_agents(replicas: Replicas) -> None:
    """Are too many at some point."""
    service = await serve(replicas, tenant_agents=2)
    ann = Person(service.client, ANN)
    for name in ("a", "b", "a"):
        await ann.create(name)
    assert (await refused(ann, "POST", "/agent-runs", {"agent": "c", "input": {}}))["field"] == "agent"


async def test_open_streams_and_held_requests(replicas: Replicas, store: Store) -> None:
    """Counted together over two replicas; nobody who reads already is put out for another, and who leaves makes room."""
    here, there = await serve(replicas, subject_streams=2), await serve(replicas, subject_streams=2)
    hand = await drive.start(store, tenant="acme", initiator="ann")
    first, second = [await at.follow(hand.run_id, headers={"x-who": ANN}).open() for at in (here, there)]
    third = await here.follow(hand.run_id, headers={"x-who": ANN}).open()
    assert (third.stream.status, third.stream.problem()["code"]) == (429, "too_many_requests")
    await refused(Person(there.client, ANN), "GET", f"/agent-runs/{hand.run_id}?wait=10")
    await refused(Person(there.client, ANN), "GET", f"/agent-runs/{hand.run_id}/events?wait=10&after=2", accept="application/json")
    # Somebody else of the tenant is not ann.
    chief = await here.follow(hand.run_id, headers={"x-who": "acme/chief read"}).open()
    await first.close()

    async def room() -> bool:
        await third.open()
        return third.stream.status == 200

    await wait_until(room, "room for another", timeout=3)
    await hand.finish()
    for follower in (second, third, chief):
        assert await follower.until_end() == "clean"
        follower.check(1, 3)


async def test_a_held_request_that_ends_makes_room(replicas: Replicas, store: Store) -> None:
    """However it ends."""
    service = await serve(replicas, subject_streams=1)
    ann = Person(service.client, ANN)
    run_id = await ann.create()

    async def waited() -> bool:
        return await ann.code("GET", f"/agent-runs/{run_id}?wait=0.1") == "200"

    for _ in range(2):
        await wait_until(waited, "to wait again", timeout=3)
    task = asyncio.create_task(ann.ask("GET", f"/agent-runs/{run_id}?wait=30"))
    await wait_until(lambda: service.hub.stats().followers == 1, "it to wait")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await wait_until(waited, "to wait again", timeout=3)


async def test_what_a_dead_process_had_open_counts_no_more(replicas: Replicas, store: Store) -> None:
    """After a few keep-alive intervals, and for nobody who lives for as long as they do."""
    from reattach.store.limits import Who

    service = await serve(replicas, subject_streams=1, keepalive=0.3)
    hand = await drive.start(store, tenant="acme", initiator="ann")
    await store.limits.hold(Who("acme", "ann"), "dead", 1, 1, lease=0.5, bounded=False)
    ann = service.follow(hand.run_id, headers={"x-who": ANN})

    async def room() -> bool:
        await ann.open()
        return ann.stream.status == 200

    await wait_until(room, "room", timeout=3)
    # Longer than a lease of ours: what goes on is said again.
    started = asyncio.get_running_loop().time()
    other = service.follow(hand.run_id, headers={"x-who": ANN})
    while asyncio.get_running_loop().time() - started < 1.5:
        await other.open()
        assert other.stream.status == 429
    await hand.finish()
    assert await ann.until_end() == "clean"


async def test_a_full_process_says_when_to_come_again(replicas: Replicas, store: Store) -> None:
    """503, not all at the same moment; nobody is evicted for whoever comes."""
    service = await serve(replicas, max_streams=1)
    hand = await drive.start(store, tenant="acme", initiator="ann")
    ann = await service.follow(hand.run_id, headers={"x-who": ANN}).open()
    waits: set[str] = set()
    for _ in range(20):
        other = await service.follow(hand.run_id, headers={"x-who": ANN}).open()
        assert (other.stream.status, other.stream.problem()["code"]) == (503, "too_many_streams")
        waits.add(other.stream.headers["retry-after"])
    assert len(waits) > 1 and all(1 <= int(wait) <= 5 for wait in waits)
    await hand.finish()
    assert await ann.until_end() == "clean"
    ann.check(1, 3)


async def test_a_worker_far_away(replicas: Replicas, store: Store) -> None:
    """413 for a run that has no room left, 429 for one that appends too much in a minute."""
    service = await serve(replicas, run_events=3)
    fast = await serve(replicas, run_event_rate=3)
    worker = Person(service.client, "acme/worker work")
    for at, status, code in ((service, 413, "payload_too_large"), (fast, 429, "too_many_requests")):
        hand = await drive.start(store, tenant="acme", initiator="ann")
        path = f"{at.base_url}/worker/runs/{hand.run_id}/append"
        event: dict[str, Any] = {"type": "step.done", "payload": {}}
        body: dict[str, Any] = {"fence": hand.lease.fence, "batch": 1, "events": [event] * 3}
        assert (await worker.ask("POST", path, body)).status_code == 200
        answer = await worker.ask("POST", path, {**body, "batch": 2})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert ("retry-after" in answer.headers) is (status == 429)
        await hand.finish()


async def test_limits_are_published(replicas: Replicas) -> None:
    """What is set is what is told."""
    service = await serve(replicas, subject_runs=7, run_events=8, tenant_streams=9)
    told = (await Person(service.client, ANN).ask("GET", "/limits")).json()
    assert (told["subject"]["runs"], told["run"]["events"], told["tenant"]["streams"]) == (7, 8, 9)


agents = Agents()


@agents.agent("talkative")
async def talkative(run: Run) -> None:
    """Never stops."""
    while True:
        await run.emit("step.done", {})


@agents.agent("deaf")
async def deaf(run: Run) -> str:
    """Does not mind."""
    for _ in range(200):
        try:
            await run.emit("step.done", {})
        except Exception:
            await asyncio.sleep(0)
    return "well"


@agents.agent("brisk")
async def brisk(run: Run) -> str:
    """More than is allowed in a minute."""
    for n in range(300):
        await run.emit("step.done", {"n": n})
    return "well"


@pytest.mark.parametrize("agent", ["talkative", "deaf"])
async def test_a_handler_that_appends_too_much_fails(service: Service, workers: Workers, agent: str) -> None:
    """Its run fails with a code, and does not hang; one that does not mind has not succeeded."""
    await workers(agents, run_events=100)
    run_id = (await service.client.post("/agent-runs", json={"agent": agent, "input": {}})).json()["run_id"]
    shown = await ended(service.client, run_id)
    assert (shown["state"], shown["error"]["code"]) == ("failed", "payload_too_large")
    assert "100 events" in shown["error"]["message"] and shown["sequence"] <= 103


async def test_a_handler_that_appends_too_fast_waits(service: Service, workers: Workers, logs: LogCapture) -> None:
    """It goes on when the minute is over, with nothing lost and its lease kept, and can be stopped meanwhile."""
    await workers(agents, run_event_rate=100)
    run_id = (await service.client.post("/agent-runs", json={"agent": "brisk", "input": {}})).json()["run_id"]
    await wait_until(lambda: "run.slowed_down" in str(logs.at_least("warning")), "it to be slowed down")
    answer = await service.client.post(f"/agent-runs/{run_id}/cancel?wait=5", json={})
    assert answer.json()["state"] in ("cancelled", "running")
    page = (await service.client.get(f"/agent-runs/{run_id}/events?limit=1000")).json()["events"]
    numbers = [event["payload"]["n"] for event in page if event["type"] == "step.done"]
    assert numbers == list(range(len(numbers))) and len(numbers) < 300
