"""Who may what, on every route: made from the route table, so that no route can be added without deciding."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from reattach.http.pages import page_routes
from reattach.http.routes import TABLE
from reattach.http.service import Endpoint
from reattach.store import Store

from ..http.auth.test_no_oracle import BODIES
from ..support import drive
from ..support.factories import Replicas
from ..support.issuer import SECRET, hs256
from ..support.service import Service

TENANT, INITIATOR, SESSION, AGENT = "acme", "ann", "conversation-of-ann", "support"
BODY: Final[dict[str, Any]] = {
    **BODIES,
    "createRun": {"agent": AGENT, "input": {}},
    "createSession": {},
    "claimRun": {"agents": ["nobody"], "worker": "w", "wait": 0},
}
ISSUER, STRANGER = hs256(), hs256(secret="another-secret-of-32-characters!")
NOT_LET_IN: Final = "unauthenticated"


class Decision(NamedTuple):
    """What comes of a request of each caller who is let in: the code of the refusal, else the status.

    Attributes:
        foreign: From another tenant, with every scope there is.
        colleague: Of the tenant, without a scope.
        scoped: Of the tenant, with the scope of the action.
        initiator: Who started the run.
        ticket: Only a ticket for the run.
    """

    foreign: str
    colleague: str
    scoped: str
    initiator: str
    ticket: str = NOT_LET_IN


def own(done: str, ticket: str = NOT_LET_IN) -> Decision:
    """About a run: for who started it, and by scope."""
    return Decision("run_not_found", "forbidden", done, done, ticket)


def everybody(done: str) -> Decision:
    """About the caller's own tenant: for everybody in it."""
    return Decision(done, done, done, done)


WORKERS: Final = Decision("run_not_found", "forbidden", "lease_lost", "forbidden")
"""Without the right fence nobody gets further."""
PUBLIC: Final = None
"""No caller is asked for."""
DECISIONS: Final[dict[str, Decision | None]] = {
    "createRun": everybody("201"),
    "listRuns": everybody("200"),
    "showRun": own("200", ticket="200"),
    "readEvents": own("200", ticket="200"),
    "cancelRun": own("200"),
    "giveInput": own("wait_not_open"),
    "makeTicket": own("201"),
    "createSession": everybody("201"),
    "listSessions": everybody("200"),
    "showSession": Decision("session_not_found", "forbidden", "200", "200"),
    "readSessionEvents": Decision("session_not_found", "forbidden", "200", "200"),
    "claimRun": Decision("204", "forbidden", "204", "forbidden"),
    "appendEvents": WORKERS,
    "intendCall": WORKERS,
    "commitCall": WORKERS,
    "parkRun": WORKERS,
    "finishRun": WORKERS,
    "renewLease": WORKERS,
    "releaseRun": WORKERS,
    "showLimits": everybody("200"),
    "healthz": PUBLIC,
    "readyz": PUBLIC,
    "showMetrics": PUBLIC,
    "showOpenapi": PUBLIC,
}


def test_every_route_is_decided() -> None:
    """A route that is not in the table below, or is there and no more, is a decision that nobody made."""
    assert {endpoint.name for endpoint in TABLE} == set(DECISIONS)
    assert [e.name for e in TABLE if (e.action is None) != (DECISIONS[e.name] is PUBLIC)] == []
    assert [e.name for e in TABLE if e.ticket != ((made := DECISIONS[e.name]) is not None and made.ticket != NOT_LET_IN)] == []
    assert [e.name for e in TABLE if (e.body is None) != (e.name not in BODY)] == [], "a new endpoint needs its body here"


def test_pages_hold_nothing_of_anybody() -> None:
    """What else is served is files, at addresses of their own: the same for everybody."""
    addresses = {getattr(route, "path", "") for route in page_routes(None)}  # pyright: ignore[reportArgumentType]
    assert all(path == "/" or path.startswith(("/client/", "/console/")) for path in addresses), addresses


@pytest.fixture
async def guarded(replicas: Replicas, tmp_path: Path) -> Service:
    """A replica that wants tokens."""
    (tmp_path / "secret").write_text(SECRET)
    return await replicas(jwt_keys=str(tmp_path / "secret"))


def bearer(tenant: str, subject: str, *scopes: str, **claims: Any) -> dict[str, str]:
    """A header with a token."""
    issuer = claims.pop("issuer", ISSUER)
    return {"authorization": f"Bearer {issuer.token(tenant=tenant, sub=subject, scope=' '.join(scopes), **claims)}"}


async def outcome(service: Service, endpoint: Endpoint, run_id: str, headers: dict[str, str], method: str = "", **params: str) -> str:
    """What comes of one request."""
    path = endpoint.path.format(run_id=run_id, session_id=SESSION)
    body = BODY.get(endpoint.name)
    sent = {"accept": "application/json", **headers}
    answer = await service.client.request(method or endpoint.method, path, json=body, headers=sent, params=params)
    if answer.status_code >= 400 and (method or endpoint.method) != "HEAD":
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code == 401) == ("www-authenticate" in answer.headers)
        return answer.json()["code"]
    return str(answer.status_code)


@pytest.mark.parametrize("endpoint", [e for e in TABLE if DECISIONS.get(e.name)], ids=lambda e: e.name)
async def test_what_comes_of_each_caller(guarded: Service, store: Store, endpoint: Endpoint) -> None:
    """No token, a bad one, an expired one, another tenant, a colleague without and with the scope, the initiator, a ticket."""
    decision = DECISIONS[endpoint.name]
    assert decision is not None
    run_id = await drive.create(store, AGENT, tenant=TENANT, initiator=INITIATOR, session_id=SESSION)
    made = await guarded.client.post(f"/agent-runs/{run_id}/tickets", json={}, headers=bearer(TENANT, INITIATOR))
    ticket = made.json()["ticket"]
    for headers in (
        {},
        {"authorization": "Bearer nonsense"},
        {"authorization": "Basic YW5uOnNlY3JldA=="},
        bearer(TENANT, INITIATOR, "*", issuer=STRANGER),
        bearer(TENANT, INITIATOR, "*", exp=1_700_000_000, iat=1_600_000_000),
        bearer("", INITIATOR, "*"),
        bearer("no/tenant", INITIATOR, "*"),
    ):
        assert await outcome(guarded, endpoint, run_id, headers) == NOT_LET_IN, headers
    assert await outcome(guarded, endpoint, run_id, {}, ticket="tkt_of-nobody") in (NOT_LET_IN, "invalid_request")
    assert await outcome(guarded, endpoint, run_id, {}, ticket=ticket) == decision.ticket
    action = str(endpoint.action)
    # Where a run is asked for, a scope for something beside it is as good as none.
    beside = f"{action}:{TENANT}/elsewhere" if "{" in endpoint.path else "nothing"
    for who, expected in (
        (bearer("evil", INITIATOR, "*", "admin", "read", "work", f"read:{TENANT}"), decision.foreign),
        (bearer(TENANT, "bob", "nothing", beside), decision.colleague),
        (bearer(TENANT, "carol", action), decision.scoped),
    ):
        assert await outcome(guarded, endpoint, run_id, who) == expected
    # Once more, since the scope may have ended it.
    run_id = await drive.create(store, AGENT, tenant=TENANT, initiator=INITIATOR, session_id=SESSION)
    assert await outcome(guarded, endpoint, run_id, bearer(TENANT, INITIATOR)) == decision.initiator
    if endpoint.method == "GET":
        for headers, status in (({}, "401"), (bearer(TENANT, INITIATOR), "200")):
            assert await outcome(guarded, endpoint, run_id, headers, "HEAD") == status


@pytest.mark.parametrize("endpoint", [e for e in TABLE if DECISIONS.get(e.name) is PUBLIC], ids=lambda e: e.name)
async def test_what_is_public_tells_nothing_of_runs(guarded: Service, store: Store, endpoint: Endpoint) -> None:
    """It is the same with any credential, good or bad, and names no tenant, run, or session."""
    run_id = await drive.create(store, AGENT, tenant="tenant-of-ann", initiator="initiator-ann", session_id=SESSION)
    for headers in ({}, {"authorization": "Bearer nonsense"}, bearer("tenant-of-ann", "initiator-ann")):
        answer = await guarded.client.get(endpoint.path, headers=headers)
        assert answer.status_code == 200
        for secret in (run_id, "tenant-of-ann", "initiator-ann", SESSION):
            assert secret not in answer.text
