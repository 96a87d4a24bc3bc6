"""Tickets: a permission to read one run, for a while, for clients that can send nothing but an address."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from reattach.core.settings import Settings
from reattach.http.auth import Principal
from reattach.http.auth.policy import OwnPolicy

from ...support import drive
from ...support.admin import Admin
from ...support.calls import check_problem
from ...support.client import Stream
from ...support.factories import Replicas
from ...support.invariants import all_keys
from ...support.issuer import SECRET, hs256
from ...support.logs import LogCapture
from ...support.service import Service

ISSUER = hs256()


@pytest.fixture
async def guarded(replicas: Replicas, tmp_path: Path) -> Service:
    """A replica that wants tokens."""
    (tmp_path / "secret").write_text(SECRET)
    return await replicas(jwt_keys=str(tmp_path / "secret"), cookie="login", keepalive=0.4)


def bearer(**claims: Any) -> dict[str, str]:
    """The header with a token."""
    return {"authorization": f"Bearer {ISSUER.token(**claims)}"}


async def make(service: Service, run_id: str, body: Any = None, **claims: Any) -> dict[str, Any]:
    """A ticket for a run."""
    answer = await service.client.post(f"/agent-runs/{run_id}/tickets", json=body or {}, headers=bearer(**claims))
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def watch(service: Service, url: str, **params: str) -> Stream:
    """A stream as an EventSource opens it: with an address and nothing else."""
    path, _, query = url.partition("?")
    return Stream(service.client, path, headers={}, params={**dict(parse_qsl(query)), **params})


async def test_a_ticket_is_all_that_an_event_source_needs(guarded: Service, replicas: Replicas) -> None:
    """Made by one process, used with another, as often as one likes until it ends: the stream, a page, the snapshot, HEAD."""
    hand = await drive.start(guarded.store, initiator="ann")
    made = await make(guarded, hand.run_id)
    assert made["url"] == f"/agent-runs/{hand.run_id}/events?ticket={made['ticket']}"
    other = await replicas(guarded.settings)
    stream = await watch(other, made["url"]).head()
    assert stream.streaming
    await hand.finish()
    assert await stream.finished() == "clean"
    assert [frame.event for frame in stream.frames if frame.id][-1] == "run.succeeded"
    for service in (guarded, other):
        for path in (made["url"], f"{made['url']}&after=1&limit=1", f"/agent-runs/{hand.run_id}?ticket={made['ticket']}"):
            assert (await service.client.get(path, headers={"accept": "application/json"})).status_code == 200
        assert (await service.client.head(made["url"])).status_code == 200


async def test_what_the_answer_says_is_so(guarded: Service) -> None:
    """When it ends, on the server's clock; it may be asked to end earlier, and not later."""
    run_id = await drive.create(guarded.store, initiator="ann")
    first, second = await make(guarded, run_id, exp=time.time() + 3600), await make(guarded, run_id, {"expires_in": 30})
    assert first["ticket"] != second["ticket"]
    assert (first["expires_in"], second["expires_in"]) == (900, 30)
    assert second["expires_at"].endswith("Z") and second["expires_at"] < first["expires_at"]
    path = f"/agent-runs/{run_id}/tickets"
    for body, field in (
        ({"expires_in": 901}, "expires_in"),
        ({"expires_in": 0}, "expires_in"),
        ({"expires_in": "x"}, "expires_in"),
        ({"a": 1}, "a"),
    ):
        answer = await guarded.client.post(path, json=body, headers=bearer())
        assert check_problem(answer, 422, "invalid_request")["field"] == field
    assert (await guarded.client.post(path, headers=bearer())).status_code == 201, "a body is not needed"


async def test_it_opens_nothing_else(guarded: Service) -> None:
    """Not another run, whether that exists or not, nor anything that changes its own, nor a list, nor another ticket."""
    run_id, other = [await drive.create(guarded.store, initiator="ann") for _ in range(2)]
    ticket = (await make(guarded, run_id))["ticket"]
    nobody = f"{run_id[:-6]}zzzzzz"
    answers: list[httpx.Response] = []
    for path in (f"/agent-runs/{other}", f"/agent-runs/{nobody}", "/agent-runs/nonsense"):
        for part in ("", "/events"):
            answers.append(await guarded.client.get(f"{path}{part}?ticket={ticket}"))
            check_problem(answers[-1], 401, "unauthenticated")
    assert len({answer.text for answer in answers}) == 1, "no answer tells which runs exist"
    for path in ("/agent-runs", "/limits", f"/agent-runs/{run_id}/inputs", "/openapi.json/x"):
        assert (await guarded.client.get(f"{path}?ticket={ticket}")).status_code in (401, 404, 405)
    for path in (
        "/agent-runs",
        f"/agent-runs/{run_id}/cancel",
        f"/agent-runs/{run_id}/inputs",
        f"/agent-runs/{run_id}/tickets",
        "/worker/claims",
    ):
        check_problem(await guarded.client.post(f"{path}?ticket={ticket}", json={}), 401, "unauthenticated")
    assert (await guarded.store.runs.load(run_id)).cancel_version == 0
    for header in ({"authorization": f"Bearer {ticket}"}, {"cookie": f"login={ticket}"}):
        check_problem(await guarded.client.get(f"/agent-runs/{run_id}", headers=header), 401, "unauthenticated")


RANDOM = "A" * 43
NO_TICKETS = ["", "x", "tkt_", f"tkt_{RANDOM}", f"tkt_{RANDOM[1:]}", f"TKT_{RANDOM}", "tkt_" + RANDOM * 20, "%00", "tkt_%0d%0a", "%ff", "é"]


@pytest.mark.parametrize("given", NO_TICKETS)
async def test_what_is_no_ticket_is_refused(guarded: Service, given: str) -> None:
    """In one sentence that repeats nothing, and never falls back to what the browser sends by itself."""
    run_id = await drive.create(guarded.store, initiator="ann")
    for headers in ({}, {"cookie": f"login={ISSUER.token()}"}):
        answer = await guarded.client.get(f"/agent-runs/{run_id}/events?ticket={given}", headers=headers)
        check_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert len(given) < 5 or given not in answer.text


async def test_a_token_wins_and_a_cookie_loses(guarded: Service) -> None:
    """Of two credentials the header counts, also when it does not do; the ticket counts before a cookie."""
    run_id = await drive.create(guarded.store, initiator="ann")
    url = (await make(guarded, run_id))["url"]
    page = {"accept": "application/json"}
    assert (await guarded.client.get(url, headers={**page, **bearer(exp=1)})).status_code == 401
    assert (await guarded.client.get(url, headers={**page, **bearer(sub="bob")})).status_code == 403
    assert (await guarded.client.get(url, headers={**page, "cookie": f"login={ISSUER.token(sub='bob')}"})).status_code == 200
    wrong = await guarded.client.get(f"/agent-runs/{run_id}?ticket=x", headers=bearer())
    assert wrong.status_code == 200, "a token needs no ticket"
    twice = await guarded.client.get(f"{url}&ticket=x", headers=page)
    check_problem(twice, 401, "unauthenticated")


async def test_only_who_may_read_makes_one(guarded: Service) -> None:
    """As for the snapshot: 403 in one's own tenant, 404 in another's, exactly as for a run that does not exist."""
    run_id = await drive.create(guarded.store, initiator="ann")
    nobody = f"{run_id[:-6]}zzzzzz"
    for claims, status in (({"sub": "bob"}, 403), ({"tenant": "other"}, 404), ({"sub": "bob", "scope": "read"}, 201)):
        answer = await guarded.client.post(f"/agent-runs/{run_id}/tickets", headers=bearer(**claims))
        assert answer.status_code == status
    absent, foreign = [await guarded.client.post(f"/agent-runs/{r}/tickets", headers=bearer(tenant="other")) for r in (nobody, run_id)]
    assert absent.text.replace(nobody, "…") == foreign.text.replace(run_id, "…")


async def test_its_stream_ends_with_it(guarded: Service) -> None:
    """At most a keep-alive interval later, with the reason; the next ticket goes on behind the last event, and nothing is missing."""
    hand = await drive.start(guarded.store, initiator="ann")
    made = await make(guarded, hand.run_id, {"expires_in": 1.0})
    began = time.monotonic()
    first = watch(guarded, made["url"])
    assert await first.finished(timeout=5) == "cut"
    assert 0.8 <= time.monotonic() - began <= 1.0 + 0.4 + 0.4
    assert json.loads(first.frames[-1].data) == {"reason": "unauthorized"}
    answer = await guarded.client.get(made["url"])
    check_problem(answer, 401, "unauthenticated")
    await hand.emit(("step.done", {"n": 1}))
    last = [frame.id for frame in first.frames if frame.id][-1]
    second = await watch(guarded, (await make(guarded, hand.run_id))["url"], after=last).head()
    await hand.finish()
    assert await second.finished() == "clean"
    ids = [frame.id for stream in (first, second) for frame in stream.frames if frame.id]
    assert ids == [f"{hand.run_id}:{n}" for n in range(1, 5)]


async def test_it_outlives_neither_the_token_nor_the_rights_of_its_maker(guarded: Service) -> None:
    """It ends with the token it was made with at the latest, and can do what that could."""
    run_id = await drive.create(guarded.store, initiator="ann", resource_scope="dev/a/b")
    made = await make(guarded, run_id, exp=time.time() + 30)
    assert 28 < made["expires_in"] <= 30
    scoped = await make(guarded, run_id, sub="bob", scope="read:dev/a", sid="login-1", iat=int(time.time()) - 7)
    facts, left = await guarded.store.tickets.find(scoped["ticket"]) or (None, 0)
    assert facts is not None and 0 < left <= 60
    assert (facts.tenant, facts.subject, facts.scopes, facts.session) == ("dev", "bob", ("read:dev/a",), "login-1")
    assert facts.issued_at is not None and facts.issued_at < time.time() - 5


async def test_what_is_taken_from_its_maker_is_taken_from_it(replicas: Replicas, tmp_path: Path) -> None:
    """The policy is asked about who made it, at connect and while its stream is open."""

    class Policy(OwnPolicy):
        banned = ""

        async def may(self, principal: Principal, action: Any, record: Any) -> bool:
            return principal.subject != self.banned and await super().may(principal, action, record)

    (tmp_path / "secret").write_text(SECRET)
    policy = Policy()
    service = await replicas(jwt_keys=str(tmp_path / "secret"), authorizer=policy, keepalive=0.4)
    hand = await drive.start(service.store, initiator="ann")
    url = (await make(service, hand.run_id))["url"]
    stream = await watch(service, url).head()
    policy.banned = "ann"
    assert await stream.finished(timeout=2) == "cut"
    assert json.loads(stream.frames[-1].data) == {"reason": "unauthorized"}
    check_problem(await service.client.get(url, headers={"accept": "application/json"}), 403, "forbidden")


async def test_redis_knows_no_ticket(guarded: Service, admin: Admin, settings: Settings) -> None:
    """It has a digest that expires by itself: who reads it can use nothing."""
    run_id = await drive.create(guarded.store, initiator="ann")
    ticket = (await make(guarded, run_id))["ticket"]
    keys = [key for key in all_keys(admin, settings.prefix) if b":ticket:" in key]
    assert len(keys) == 1 and 0 < admin.pttl(keys[0]) <= 900_000
    for key in all_keys(admin, settings.prefix):
        assert ticket[4:].encode() not in key
        if admin.type(key) == b"string":
            assert ticket[4:].encode() not in admin.get(key)
    assert (await guarded.client.get(f"/agent-runs/{run_id}?ticket={keys[0].rpartition(b':')[2].decode()}")).status_code == 401


async def test_a_ticket_reaches_no_log(guarded: Service, logs: LogCapture) -> None:
    """Nor a problem, nor a metric."""
    run_id = await drive.create(guarded.store, initiator="ann")
    made = await make(guarded, run_id)
    for path in (made["url"], f"{made['url']}&x=1", f"{made['url']}&after=x", f"/agent-runs/{run_id}/cancel?ticket={made['ticket']}"):
        answer = await guarded.client.get(path, headers={"accept": "application/json"})
        assert made["ticket"] not in answer.text
    said = str(logs.at_least("debug")) + (await guarded.client.get("/metrics")).text
    assert "connection" in said and made["ticket"] not in said


async def test_development_has_tickets_too(service: Service) -> None:
    """A client is the same with and without authentication. A ticket that is shown must be one."""
    run_id = await drive.create(service.store)
    made = (await service.client.post(f"/agent-runs/{run_id}/tickets")).json()
    assert (await service.client.get(made["url"], headers={"accept": "application/json"})).status_code == 200
    check_problem(await service.client.get(f"/agent-runs/{run_id}?ticket=x"), 401, "unauthenticated")


async def test_many_at_once(guarded: Service) -> None:
    """Each is another one, and each is good."""
    run_id = await drive.create(guarded.store, initiator="ann")
    made = await asyncio.gather(*(make(guarded, run_id) for _ in range(10)))
    assert len({one["ticket"] for one in made}) == 10
    page = {"accept": "application/json"}
    answers = await asyncio.gather(*(guarded.client.get(one["url"], headers=page) for one in made))
    assert {answer.status_code for answer in answers} == {200}
