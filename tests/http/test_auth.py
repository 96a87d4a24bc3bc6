"""Who asks and whether they may: the development side, and the seams for every other."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import structlog.testing
from starlette.requests import Request

from reattach.core.errors import InvalidRequest, StoreUnavailable, Unauthenticated
from reattach.core.run import RunRecord
from reattach.core.settings import Settings
from reattach.http.app import create_app
from reattach.http.auth import Action, DevelopmentAuthenticator, DevelopmentAuthorizer, Principal, check_bind
from reattach.store import Store
from reattach.tail import Hub

from ..support import drive
from ..support.service import Service
from ..support.waiting import wait_until


class ByHeader:
    """Whoever says who they are is believed."""

    async def authenticate(self, request: Request) -> Principal:
        who = request.headers.get("x-who")
        if who is None:
            raise Unauthenticated("say who you are")
        tenant, _, subject = who.partition("/")
        return Principal(tenant=tenant, subject=subject)


class Guard:
    """Lets through until told otherwise."""

    def __init__(self) -> None:
        self.open = True
        self.fails: Exception | None = None
        self.asked: list[tuple[str, Action, str | None]] = []

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        self.asked.append((principal.subject, action, None if record is None else record.run_id))
        if self.fails is not None:
            raise self.fails
        return self.open


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200), ("127.0.0.1", 200), ("127.9.9.9:1", 200), ("[::1]:8080", 200), ("api.localhost", 200),
        ("compose-name", 200),
        ("evil.example", 403), ("evil.example:8080", 403), ("127.0.0.1.evil.example", 403), ("192.168.1.7", 403), ("[2001:db8::1]", 403),
        ("localhost.evil.example:80", 403), ("", 403), ("[", 403),
    ],
)  # fmt: skip
async def test_only_this_machines_names_are_answered(service: Service, host: str, status: int) -> None:
    """A page elsewhere cannot reach us under a name of its own that resolves to this machine."""
    answer = await service.client.get("/agent-runs", headers={"host": host})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["code"] == "forbidden" and "hosts" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:3000", 200), ("http://127.0.0.1:8080", 200), ("https://evil.example", 403), ("null", 403), ("file://", 403)],
)
async def test_only_this_machines_pages_are_answered(service: Service, origin: str, status: int) -> None:
    """Not even for requests that a browser sends without asking first."""
    assert (await service.client.get("/agent-runs", headers={"origin": origin})).status_code == status


async def test_further_names_can_be_configured(replicas: Callable[..., Any]) -> None:
    """For tunnels and containers."""
    service = await replicas(hosts="dev.example, other.example")
    for host, status in (("dev.example", 200), ("other.example:81", 200), ("evil.example", 403)):
        assert (await service.client.get("/agent-runs", headers={"host": host})).status_code == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_development_serves_this_machine_only(host: str) -> None:
    """One clear sentence instead of an open door."""
    with pytest.raises(InvalidRequest, match="without authentication the API serves this machine only") as caught:
        check_bind(Settings(host=host), DevelopmentAuthenticator())
    assert caught.value.extra == {"field": "host"}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_development_is_said_loudly(host: str) -> None:
    """A warning at every start."""
    with structlog.testing.capture_logs() as logs:
        check_bind(Settings(host=host), DevelopmentAuthenticator())
    assert [(entry["log_level"], "NO AUTHENTICATION" in entry["says"]) for entry in logs] == [("warning", True)]


async def test_the_application_itself_refuses_to_be_open(store: Store, hub: Hub) -> None:
    """Nobody has to remember the check; a real authenticator may serve anybody."""
    open_to_all = Settings(host="0.0.0.0")
    with pytest.raises(InvalidRequest):
        create_app(store, hub, open_to_all, DevelopmentAuthenticator(), DevelopmentAuthorizer())
    create_app(store, hub, open_to_all, ByHeader(), DevelopmentAuthorizer())


async def test_without_a_credential_nothing_is_told(replicas: Callable[..., Any], store: Store) -> None:
    """401 before anything is parsed or looked up; probes and documents need none."""
    service = await replicas(authenticator=ByHeader())
    for method, path in [("GET", "/agent-runs"), ("POST", "/agent-runs"), ("GET", "/agent-runs/x/events"), ("GET", "/limits?x=1")]:
        answer = await service.client.request(method, path)
        assert (answer.status_code, answer.json()["code"], answer.headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert (await service.client.get(path)).status_code == 200


async def test_runs_belong_to_tenants(replicas: Callable[..., Any]) -> None:
    """Tenant and initiator come from the credential; keys and listings are each tenant's own."""
    service = await replicas(authenticator=ByHeader())
    new: dict[str, Any] = {"json": {"agent": "support", "input": {}}}
    a = await service.client.post("/agent-runs", headers={"x-who": "t1/ann", "idempotency-key": "k"}, **new)
    b = await service.client.post("/agent-runs", headers={"x-who": "t2/bob", "idempotency-key": "k"}, **new)
    assert (a.json()["tenant"], a.json()["initiator"], b.json()["tenant"]) == ("t1", "ann", "t2")
    assert a.json()["run_id"] != b.json()["run_id"]
    listed = (await service.client.get("/agent-runs", headers={"x-who": "t2/bob"})).json()["runs"]
    assert [run["run_id"] for run in listed] == [b.json()["run_id"]]
    assert (await service.client.get(a.headers["location"], headers={"x-who": "t2/bob"})).status_code == 404
    assert (await service.client.get(a.headers["location"], headers={"x-who": "t1/joe"})).status_code == 200


async def test_what_the_authorizer_refuses_is_forbidden(replicas: Callable[..., Any], store: Store) -> None:
    """403 within one's own tenant; it is asked about the action and the run."""
    guard = Guard()
    service = await replicas(authorizer=guard)
    run_id = await drive.create(store)
    guard.open = False
    calls: list[tuple[str, str, Any, str, str | None]] = [
        ("POST", "/agent-runs", {"agent": "support", "input": {}}, "create", ""),
        ("GET", "/agent-runs", None, "list", None),
        ("GET", f"/agent-runs/{run_id}", None, "read", run_id),
        ("GET", f"/agent-runs/{run_id}/events", None, "read", run_id),
        ("POST", f"/agent-runs/{run_id}/cancel", {}, "cancel", run_id),
        ("POST", f"/agent-runs/{run_id}/inputs", {"wait_id": "w", "value": 1}, "input", run_id),
        ("GET", "/limits", None, "limits", None),
    ]
    for method, path, body, action, about in calls:
        answer = await service.client.request(method, path, json=body) if body is not None else await service.client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
        assert guard.asked[-1] == ("developer", action, about)
    assert (await store.runs.load(run_id)).sequence == 1


async def test_a_listing_shows_what_may_be_read(replicas: Callable[..., Any], store: Store) -> None:
    """Run by run."""

    class OnlyRefunds:
        async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
            return record is None or record.agent == "refunds"

    service = await replicas(authorizer=OnlyRefunds())
    await drive.create(store)
    mine = await drive.create(store, "refunds")
    assert [run["run_id"] for run in (await service.client.get("/agent-runs")).json()["runs"]] == [mine]


async def test_an_open_stream_ends_when_access_is_gone(replicas: Callable[..., Any], store: Store) -> None:
    """Within a keep-alive interval, with the reason; nobody gets back in, and the run does not notice."""
    guard = Guard()
    service = await replicas(authorizer=guard, keepalive=0.5)
    hand = await drive.start(store)
    follower = await service.follow(hand.run_id).open()
    await follower.until(2)
    before = len(guard.asked)
    await wait_until(lambda: len(guard.asked) >= before + 3, "to be asked again and again")
    guard.open = False
    assert await follower.until_end(timeout=1.0) == "cut"
    assert [(f.event, json.loads(f.data)) for f in follower.control] == [("stream.closing", {"reason": "unauthorized"})]
    assert (await follower.open()).stream.status == 403
    assert (await hand.renew()).cancel_version == 0


async def test_an_outage_takes_nobodys_access(replicas: Callable[..., Any], store: Store) -> None:
    """Where the authorizer cannot reach its store the stream stays; a bug in it ends the stream rather than leave it open."""
    guard = Guard()
    service = await replicas(authorizer=guard, keepalive=0.4)
    hand = await drive.start(store)
    follower = await service.follow(hand.run_id).open()
    await follower.until(2)
    guard.fails, before = StoreUnavailable(), len(guard.asked)
    await wait_until(lambda: len(guard.asked) >= before + 3, "some rounds of the outage")
    assert follower.stream.ended is None
    with structlog.testing.capture_logs() as logs:
        guard.fails = RuntimeError("a bug")
        assert await follower.until_end() == "cut"
    assert json.loads(follower.control[-1].data) == {"reason": "unavailable"}
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["streams.reauthorise_failed"]


async def test_an_authorizer_that_hangs_over_one_reader_holds_up_no_other(replicas: Callable[..., Any], store: Store) -> None:
    """Whoever lost access is cut in time all the same, and who is not answered for does not go on reading for ever."""

    class Stuck(Guard):
        async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
            if not self.open and principal.subject == "ann":
                await asyncio.Event().wait()
            return await super().may(principal, action, record)

    guard = Stuck()
    service = await replicas(authenticator=ByHeader(), authorizer=guard, keepalive=0.5)
    runs = [await drive.create(store), await drive.create(store)]
    ann, *others = [
        service.follow(run, headers={"x-who": f"dev/{who}"}) for run, who in zip(runs * 2, ("ann", "bob", "eve", "kim"), strict=True)
    ]
    for follower in (ann, *others):
        await (await follower.open()).until(1)
    with structlog.testing.capture_logs():
        guard.open = False
        for follower in others:
            assert await follower.until_end(timeout=1.0) == "cut"
            assert json.loads(follower.control[-1].data) == {"reason": "unauthorized"}
        assert await ann.until_end(timeout=1.0) == "cut"
    assert json.loads(ann.control[-1].data) == {"reason": "unavailable"}
