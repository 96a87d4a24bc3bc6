"""Claiming over HTTP: waiting without polling, one owner, lost answers, clients that leave, and who may."""

import asyncio
import json
import time
from typing import Any

import msgspec
import pytest

from reattach.core.ids import new_token
from reattach.core.run import RunRecord
from reattach.core.settings import Settings
from reattach.http.auth import Action, Principal
from reattach.http.claims import Claims
from reattach.http.waiters import Ask
from reattach.http.worker_bodies import MAX_AGENTS
from reattach.http.worker_facts import claim_name
from reattach.store import Claim, Handout, Store

from ..support import drive
from ..support.factories import OwnRedis, Replicas
from ..support.monitor import monitored
from ..support.service import Service
from ..support.waiting import wait_until
from .far import Far, ask, claim, types
from .raw import connection
from .test_auth import ByHeader


def anybody() -> Ask:
    """A worker that may do everything."""

    async def may(record: RunRecord) -> bool:
        return True

    return Ask(agents=("support",), worker="far", max_losses=3, backoff_ms=0, name=None, may=may)


async def state_of(store: Store, run_id: str) -> tuple[str, int]:
    """State and attempt of a run."""
    record = await store.runs.load(run_id)
    return record.state, record.attempt


async def test_nothing_to_do(service: Service) -> None:
    """204 after the time that was asked for; where that is none, as soon as every queue was looked at."""
    began = time.monotonic()
    assert (await ask(service, wait=0)).status_code == 204
    assert time.monotonic() - began < 5
    assert (await ask(service, wait=0.3)).status_code == 204
    assert time.monotonic() - began >= 0.3


async def test_a_run_that_waits_is_claimed_at_once(service: Service, store: Store) -> None:
    """Also with no time to wait."""
    run_id = await drive.create(store)
    assert (await claim(service, wait=0)).run_id == run_id
    assert (await ask(service, wait=0)).status_code == 204


async def test_a_run_that_comes_wakes_who_waits(service: Service, store: Store) -> None:
    """Without polling: the hint brings it, long before anybody looks around by himself, as often as one comes."""
    for _ in range(3):
        waiting = asyncio.create_task(claim(service, "other", "support", wait=20))
        assert (await ask(service, "third", wait=0)).status_code == 204  # by then the first request was read too
        began = time.monotonic()
        run_id = await drive.create(store)
        far = await waiting
        assert far.run_id == run_id and time.monotonic() - began < 5
        await far.do("finish", state="succeeded")


async def test_one_run_has_one_owner(replicas: Replicas, store: Store) -> None:
    """Many workers at two processes: every run is handed out once, nobody gets two, the rest is told there is none."""
    service, other = await replicas(lease=60.0), await replicas(lease=60.0)
    waiting = [asyncio.create_task(ask(at, wait=3, claim_id=f"claim-{n:016d}")) for n in range(15) for at in (service, other)]
    runs = {await drive.create(store) for _ in range(20)}
    answers = await asyncio.gather(*waiting)
    claims = [answer.json() for answer in answers if answer.status_code == 200]
    # The same name at two processes is one claim.
    assert {c["run"]["run_id"] for c in claims} <= runs
    by_fence = {c["lease"]["fence"]: c["run"]["run_id"] for c in claims}
    assert len(by_fence) == len(set(by_fence.values()))
    assert {a.status_code for a in answers} <= {200, 204}
    for run_id in runs:
        assert (await types(service, run_id)).count("run.started") <= 1


async def test_runs_are_handed_out_in_turn(service: Service, store: Store) -> None:
    """An agent with much work does not hold the others up."""
    for _ in range(12):
        await drive.create(store, "busy")
    quiet = await drive.create(store, "quiet")
    claimed = [(await claim(service, "busy", "quiet")).run_id for _ in range(9)]
    assert quiet in claimed


async def test_a_claim_whose_answer_was_lost(service: Service, replicas: Replicas, store: Store) -> None:
    """Sent again with its claim_id, anywhere, it is the same claim: no second attempt, and a lease that lasts."""
    other = await replicas()
    run_id = await drive.create(store)
    first = await claim(service, claim_id="claim-0000000000001")
    await first.append(1, ("step.done", {}))
    before = (await store.runs.load(run_id)).lease_until or 0
    again = await claim(other, claim_id="claim-0000000000001")
    assert (again.run_id, again.fence) == (run_id, first.fence)
    assert again.claim["lease"]["next_batch"] == 2
    assert ((await store.runs.load(run_id)).lease_until or 0) >= before
    assert await types(service, run_id) == ["run.created", "run.started", "step.done"]
    await again.do("finish", state="succeeded")
    assert (await ask(service, wait=0, claim_id="claim-0000000000001")).status_code == 204


async def test_an_answer_that_was_lost_on_its_way(service: Service, store: Store) -> None:
    """The connection breaks when the answer has left: the claim is asked for again and is the same, in its first attempt."""
    run_id = await drive.create(store)
    body = json.dumps({"agents": ["support"], "worker": "far", "wait": 30, "claim_id": "claim-0000000000001"}).encode()
    async with connection(service.base_url) as raw:
        raw.ask("POST", "/worker/claims", "content-type: application/json", f"content-length: {len(body)}", body=body)
        await raw.until(b'"answers"')
        raw.abort()
    again = await claim(service, claim_id="claim-0000000000001")
    assert (again.run_id, again.claim["run"]["attempt"]) == (run_id, 1)
    assert again.fence.encode() in raw.seen


async def test_a_process_that_dies_between_two_steps_of_a_claim(service: Service, store: Store) -> None:
    """What the claim shall be is written down before the run is claimed: asked again, another process finishes it at once."""
    run_id = await drive.create(store)
    [delivery] = await store.work.take("support", "http")
    developer = Principal(tenant="dev", subject="developer")
    name = claim_name(developer, "claim-0000000000001")
    assert name is not None
    handout = await store.handouts.keep(name, Handout(delivery=delivery, fence=new_token()))
    far = await claim(service, wait=0, claim_id="claim-0000000000001")
    assert (far.run_id, far.fence, far.claim["run"]["attempt"]) == (run_id, handout.fence, 1)
    await far.do("finish", state="succeeded")


async def test_an_outage_is_said(own_redis: OwnRedis, settings: Settings, replicas: Replicas) -> None:
    """503, never an empty 204; afterwards the same request works."""
    server = own_redis(persist=True)
    service = await replicas(msgspec.structs.replace(settings, redis=server.url, redis_timeout=0.5))
    assert (await ask(service, wait=0)).status_code == 204
    run_id = await drive.create(service.store)
    server.kill9()
    answer = await ask(service, wait=5, claim_id="claim-0000000000001")
    assert (answer.status_code, answer.json()["code"], "retry-after" in answer.headers) == (503, "store_unavailable", True)
    server.start()

    async def claimed() -> Far | None:
        answer = await ask(service, wait=5, claim_id="claim-0000000000001")
        return Far(service, answer.json()) if answer.status_code == 200 else None

    far = await wait_until(claimed, "a claim after the outage", timeout=20)
    assert far.run_id == run_id
    await far.do("finish", state="succeeded")


async def test_a_claim_id_is_good_while_its_lease_lasts(service: Service, store: Store) -> None:
    """Afterwards it is a claim like any other: a new fence, a new attempt."""
    await drive.create(store)
    first = await claim(service, claim_id="claim-0000000000001")
    await first.do("release")
    second = await claim(service, claim_id="claim-0000000000001")
    assert (second.run_id, second.claim["run"]["attempt"]) == (first.run_id, 2)
    assert second.fence != first.fence
    assert await first.refused("renew") == (409, "lease_lost")


async def test_a_claim_id_belongs_to_who_gave_it(replicas: Replicas, store: Store) -> None:
    """Another subject's claim of the same name is another claim."""
    service = await replicas(authenticator=ByHeader())
    body = {"agents": ["support"], "worker": "far", "wait": 0, "claim_id": "claim-0000000000001"}
    await drive.create(store)
    ann = await service.client.post("/worker/claims", json=body, headers={"x-who": "dev/ann"})
    bob = await service.client.post("/worker/claims", json=body, headers={"x-who": "dev/bob"})
    assert (ann.status_code, bob.status_code) == (200, 204)


async def test_the_same_claim_twice_at_the_same_time(service: Service, store: Store) -> None:
    """The older request is told to ask again; the run goes to the newer one, whose client is still there."""
    first = asyncio.create_task(ask(service, wait=20, claim_id="claim-0000000000001"))
    assert (await ask(service, "other", wait=0)).status_code == 204
    second = asyncio.create_task(ask(service, wait=20, claim_id="claim-0000000000001"))
    assert (await first).status_code == 204
    run_id = await drive.create(store)
    assert (await second).json()["run"]["run_id"] == run_id


async def test_a_client_that_leaves_swallows_nothing(service: Service, store: Store) -> None:
    """Its place is free at once: the next run goes to the one that is still there, in its first attempt."""
    body = json.dumps({"agents": ["support"], "worker": "far", "wait": 30}).encode()
    async with connection(service.base_url) as raw:
        raw.ask("POST", "/worker/claims", "content-type: application/json", f"content-length: {len(body)}", body=body)
        assert (await ask(service, wait=0)).status_code == 204
    far = asyncio.create_task(claim(service, wait=20))
    run_id = await drive.create(store)
    assert (await far).run_id == run_id
    record = await store.runs.load(run_id)
    assert record.losses == 0


@pytest.mark.parametrize("sends", range(1, 6))
async def test_a_connection_that_breaks_while_its_run_is_claimed(service: Service, store: Store, sends: int) -> None:
    """Whatever had been sent to Redis by then, the run goes to the next worker."""
    assert (await ask(service, wait=0)).status_code == 204
    run_id = await drive.create(store)
    body = json.dumps({"agents": ["support"], "worker": "far", "wait": 30}).encode()
    async with connection(service.base_url) as raw:
        count = 0

        def sent(_: int) -> None:
            nonlocal count
            count += 1
            if count == sends:
                raw.abort()

        service.store.door.observe = sent
        raw.ask("POST", "/worker/claims", "content-type: application/json", f"content-length: {len(body)}", body=body)
        await wait_until(lambda: count >= sends or raw.seen or raw.ended, "the connection to break")
        service.store.door.observe = None
    far = await claim(service, wait=20)
    assert far.run_id == run_id
    await far.do("finish", state="succeeded")


@pytest.mark.parametrize("sends", range(1, 10))
async def test_a_claim_that_is_cancelled_leaves_its_run_in_the_queue(store: Store, sends: int) -> None:
    """Whatever had been sent to Redis by then."""
    run_id = await drive.create(store)
    claims = Claims(store)
    asking = asyncio.create_task(claims.claim(anybody(), 10))
    count = 0

    def sent(_: int) -> None:
        nonlocal count
        count += 1
        if count == sends:
            asking.cancel()

    store.door.observe = sent
    got = (await asyncio.gather(asking, return_exceptions=True))[0]
    if not isinstance(got, BaseException):  # so many were not needed
        assert got is not None
        claims.give_back(got.lease)
    store.door.observe = None
    await claims.close()
    record = await store.runs.load(run_id)
    assert (record.state, record.losses) == ("queued", 0)
    assert (await drive.claim(store)).run_id == run_id


async def test_a_claim_that_is_cancelled_with_its_run_in_hand(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the moment between the run's being claimed and its being handed over."""
    run_id = await drive.create(store)
    claims = Claims(store)
    asking = asyncio.create_task(claims.claim(anybody(), 10))
    real = store.work.claim

    async def claimed(*args: Any, **options: Any) -> Claim | None:
        got = await real(*args, **options)
        asyncio.get_running_loop().call_soon(asking.cancel)
        return got

    monkeypatch.setattr(store.work, "claim", claimed)
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], asyncio.CancelledError)
    await claims.close()
    monkeypatch.undo()
    assert await state_of(store, run_id) == ("queued", 2)
    assert [e.payload for e in await store.events.after(run_id, 2, 10)] == [b'{"attempt":2,"cause":"worker_gone"}']


async def test_a_worker_that_dies_is_replaced(service: Service, store: Store) -> None:
    """With no other process than the API: it looks after the leases of the workers it serves."""
    run_id = await drive.create(store)
    first = await claim(service)
    began = time.monotonic()
    second = await claim(service, wait=20)
    assert (second.run_id, second.claim["run"]["attempt"]) == (run_id, 2)
    assert time.monotonic() - began < 3 * service.settings.lease
    assert await first.refused("renew") == (409, "lease_lost")
    assert await types(service, run_id) == ["run.created", "run.started", "run.retrying", "run.started"]


async def test_attempts_are_counted(service: Service, store: Store) -> None:
    """A run that loses as many workers as its claim allows fails."""
    run_id = await drive.create(store)
    await claim(service, attempts=1)

    async def failed() -> bool:
        return (await state_of(store, run_id))[0] == "failed"

    await wait_until(failed, "the run to fail")
    assert (await service.client.get(f"/agent-runs/{run_id}")).json()["error"]["code"] == "worker_lost"


async def test_draining_answers_who_waits(replicas: Replicas, store: Store) -> None:
    """A process that stops holds nobody: its workers ask elsewhere, and nothing is lost on the way."""
    service = await replicas()
    waiting = asyncio.create_task(ask(service, wait=60))
    assert (await ask(service, wait=0)).status_code == 204
    began = time.monotonic()
    await service.stop()
    assert (await waiting).status_code == 204 and time.monotonic() - began < 2
    other = await replicas()
    run_id = await drive.create(store)
    assert (await claim(other)).run_id == run_id


async def test_an_idle_worker_costs_nothing(own_redis: OwnRedis, settings: Settings, replicas: Replicas) -> None:
    """Asking again and again for agents that have no work sends Redis nothing but the reader's blocked read."""
    server = own_redis()
    service = await replicas(msgspec.structs.replace(settings, redis=server.url, shards=16))
    assert (await ask(service, "one", "two", wait=0)).status_code == 204
    with monitored(server.port) as feed:
        for _ in range(20):
            assert (await ask(service, "one", "two", wait=0)).status_code == 204
        feed.expect(b"that-was-all")
        await service.store.door.call("GET", "{00}that-was-all")
        feed.wait_for(b"that-was-all")
    assert not [call for call in feed.calls if call.words[0].upper() == b"XREADGROUP"]


class OnlyAgent:
    """May work on runs of one agent."""

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        return action != "work" or record is None or record.agent == "support"


async def test_who_may_not_work_gets_nothing(replicas: Replicas, store: Store) -> None:
    """As if there were nothing: the run stays where it is, for who may."""
    service = await replicas(authorizer=OnlyAgent())
    run_id = await drive.create(store, "refunds")
    assert (await ask(service, "refunds", wait=0.3)).status_code == 204
    assert await state_of(store, run_id) == ("queued", 0)
    open_to_all = await replicas()
    far = await claim(open_to_all, "refunds")
    assert far.run_id == run_id
    answer = await far.try_to("renew", on=service)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_another_tenants_runs_do_not_exist(replicas: Replicas, store: Store) -> None:
    """Neither to claim nor, with a fence that leaked, to touch."""
    service = await replicas(authenticator=ByHeader())
    run_id = await drive.create(store)
    body = {"agents": ["support"], "worker": "far", "wait": 0.3}
    nothing = await service.client.post("/worker/claims", json=body, headers={"x-who": "other/eve"})
    assert nothing.status_code == 204 and await state_of(store, run_id) == ("queued", 0)
    answer = await service.client.post("/worker/claims", json=body, headers={"x-who": "dev/ann"})
    far = Far(service, answer.json())
    assert far.run_id == run_id
    leaked = await service.client.post(f"/worker/runs/{run_id}/renew", json={"fence": far.fence}, headers={"x-who": "other/eve"})
    assert (leaked.status_code, leaked.json()["code"]) == (404, "run_not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"agents": []}, "agents"),
        ({"agents": [f"a{n}" for n in range(MAX_AGENTS + 1)]}, "agents"),
        ({"agents": ["Support"]}, "agents"),
        ({"worker": "a b"}, "worker"),
        ({"worker": None}, "worker"),
        ({"wait": -1}, "wait"),
        ({"wait": 61}, "wait"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": -1}, "backoff"),
        ({"claim_id": "short"}, "claim_id"),
        ({"other": 1}, "other"),
    ],
)
async def test_what_a_claim_may_say(service: Service, body: dict[str, object], field: str) -> None:
    """Every limit has a refusal that names its field."""
    answer = await service.client.post("/worker/claims", json={"agents": ["support"], "worker": "far", "wait": 0, **body})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["field"].startswith(field)
