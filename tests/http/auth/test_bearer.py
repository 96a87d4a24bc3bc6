"""Tokens over HTTP: in the header, in the cookie, and what the refusals say; with real keys and a real server."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.core.errors import InvalidRequest
from reattach.obs.log import redact_text

from ...support import drive
from ...support.calls import check_problem
from ...support.factories import Replicas
from ...support.issuer import SECRET, Issuer, KeyServer, es256, hs256, rs256
from ...support.logs import LogCapture
from ...support.service import Service

ISSUER = hs256()
NEW: dict[str, Any] = {"agent": "support", "input": {}}
COOKIE = "__Host-reattach"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A file with the secret."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return str(path)


@pytest.fixture
async def guarded(replicas: Replicas, secret: str) -> Service:
    """A replica that wants tokens."""
    return await replicas(jwt_keys=secret, cookie=COOKIE, keepalive=0.5)


def bearer(issuer: Issuer = ISSUER, **claims: Any) -> dict[str, str]:
    """The header with a token."""
    return {"authorization": f"Bearer {issuer.token(**claims)}"}


def cookie(**claims: Any) -> dict[str, str]:
    """The header with a token in the cookie, among others."""
    return {"cookie": f"a=b; {COOKIE}={ISSUER.token(**claims)}; {COOKIE}x=y"}


async def test_a_token_says_who_asks(guarded: Service) -> None:
    """Runs belong to its tenant and subject; other tenants do not see them, and what its scopes allow it may."""
    made = await guarded.client.post("/agent-runs", json=NEW, headers=bearer(tenant="acme", sub="ann"))
    assert made.status_code == 201
    assert (made.json()["tenant"], made.json()["initiator"]) == ("acme", "ann")
    path = made.headers["location"]
    for claims, status in (
        ({"tenant": "acme", "sub": "ann"}, 200), ({"tenant": "other", "sub": "ann"}, 404),
        ({"tenant": "acme", "sub": "bob"}, 403), ({"tenant": "acme", "sub": "bob", "scope": "read"}, 200),
    ):  # fmt: skip
        assert (await guarded.client.get(path, headers=bearer(ISSUER, **claims))).status_code == status, claims


@pytest.mark.parametrize("issuer", [rs256("r"), es256("e")], ids=["RS256", "ES256"])
async def test_keys_from_an_address(replicas: Replicas, issuer: Issuer) -> None:
    """RS256 and ES256, from a real JWKS server, by every replica."""
    server = await KeyServer(issuer).start()
    try:
        for service in (await replicas(jwt_keys=server.url), await replicas(jwt_keys=server.url)):
            assert (await service.client.get("/agent-runs", headers=bearer(issuer))).status_code == 200
            assert (await service.client.get("/agent-runs", headers=bearer())).status_code == 401
    finally:
        await server.stop()


async def test_an_issuer_that_was_never_there_is_an_outage(replicas: Replicas) -> None:
    """The process starts without it and answers 503 with Retry-After; probes and the document go on; it recovers by itself."""
    server = await KeyServer(rs256("r")).start()
    await server.stop()
    service = await replicas(jwt_keys=server.url)
    answer = await service.client.get("/agent-runs", headers=bearer(rs256("r")))
    check_problem(answer, 503, "auth_unavailable")
    assert 5 <= int(answer.headers["retry-after"]) <= 9
    assert (await service.client.get("/agent-runs")).status_code == 401
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert (await service.client.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ({}, "Bearer"), ({"cookie": "a=b"}, "Bearer"), ({"x-token": ISSUER.token()}, "Bearer"),
        ({"authorization": ""}, 'Bearer error="invalid_token"'), ({"authorization": "Basic YTpi"}, 'Bearer error="invalid_token"'),
        ({"authorization": "Bearer"}, 'Bearer error="invalid_token"'),
        ({"authorization": ISSUER.token()}, 'Bearer error="invalid_token"'), (bearer(exp=1), 'Bearer error="invalid_token"'),
        (bearer(hs256(secret=SECRET[::-1])), 'Bearer error="invalid_token"'),
        ({"authorization": f"Bearer {ISSUER.token()} {ISSUER.token()}"}, 'Bearer error="invalid_token"'),
        ({"authorization": f"Bearer {'a' * 20_000}.b.c"}, 'Bearer error="invalid_token"'),
    ],
)  # fmt: skip
async def test_a_refusal_says_what_to_send(guarded: Service, headers: dict[str, str], challenge: str) -> None:
    """401 as a problem with the challenge of RFC 6750, before anything is parsed or looked up; nothing that was sent is repeated."""
    for method, path in (("GET", "/agent-runs"), ("POST", "/agent-runs"), ("GET", "/agent-runs/x/events"), ("GET", "/limits?nonsense=1")):
        answer = await guarded.client.request(method, path, headers=headers)
        check_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"] == challenge and answer.headers["cache-control"] == "no-store"
        assert not [part for value in headers.values() for part in value.split(".") if len(part) > 16 and part in answer.text]


async def test_two_tokens_that_differ_are_none(guarded: Service) -> None:
    """In two headers or two cookies: nobody has to guess which one counts. The same one twice is one."""
    ann, bob = ISSUER.token(), ISSUER.token(sub="bob")
    for name, first, second in (("authorization", f"Bearer {ann}", f"Bearer {bob}"), ("cookie", f"{COOKIE}={ann}", f"{COOKIE}={bob}")):
        for given, status in ((second, 401), (first, 200)):
            assert (await guarded.client.get("/agent-runs", headers=[(name, first), (name, given)])).status_code == status
    assert (await guarded.client.get("/agent-runs", headers={"cookie": f"{COOKIE}={ann}; {COOKIE}={bob}"})).status_code == 401


async def test_the_scheme_has_no_case(guarded: Service) -> None:
    """RFC 9110 section 11.1."""
    for scheme in ("bearer", "BEARER", "Bearer  "):
        assert (await guarded.client.get("/agent-runs", headers={"authorization": f"{scheme} {ISSUER.token()}"})).status_code == 200


async def test_the_header_wins_over_the_cookie(guarded: Service) -> None:
    """Also where it does not count: a page that means its token must not be answered as somebody else."""
    made = await guarded.client.post("/agent-runs", json=NEW, headers={**cookie(sub="bob"), **bearer(sub="ann")})
    assert made.json()["initiator"] == "ann"
    assert (await guarded.client.get("/agent-runs", headers={**cookie(), **bearer(exp=1)})).status_code == 401


async def test_a_cookie_is_one_where_the_setting_says_so(replicas: Replicas, secret: str) -> None:
    """Off unless it has a name; on, it is checked as a token in the header is."""
    for name, claims, status in (("", {}, 401), (COOKIE, {}, 200), (COOKIE, {"exp": 1}, 401)):
        service = await replicas(jwt_keys=secret, cookie=name)
        assert (await service.client.get("/agent-runs", headers=cookie(**claims))).status_code == status


def host(service: Service) -> str:
    """What the service calls itself."""
    return service.base_url.partition("://")[2]


async def test_with_a_cookie_a_change_says_where_it_comes_from(guarded: Service) -> None:
    """A page of another site can make a browser send the cookie, but not lie about its origin: nothing is created or cancelled."""
    run_id = await drive.create(guarded.store, initiator="ann")
    own = f"http://{host(guarded)}"
    for origin, status in (
        (own, True), (f"https://{host(guarded)}", True), ("https://evil.example", False), ("null", False), ("", False), (None, False),
        (f"{own}.evil.example", False), (f"http://evil.example/{host(guarded)}", False), ("http://127.0.0.1", False),
        (f"{own}, https://evil.example", False), ("file://", False),
    ):  # fmt: skip
        headers = cookie() | ({} if origin is None else {"origin": origin})
        for path, body in (("/agent-runs", NEW), (f"/agent-runs/{run_id}/cancel", {}), (f"/agent-runs/{run_id}/tickets", {})):
            answer = await guarded.client.post(path, json=body, headers=headers)
            assert answer.is_success is status, (origin, path, answer.text)
            if not status:
                check_problem(answer, 403, "forbidden")
    forged = await guarded.client.post("/agent-runs", json=NEW, headers={**bearer(), "origin": "https://evil.example"})
    assert forged.status_code == 201, "a header is sent by nobody but the page that has the token"


async def test_with_a_cookie_other_sites_read_nothing(guarded: Service) -> None:
    """A read needs no Origin, since navigation and EventSource of one's own pages send none; with a foreign one it is refused."""
    for origin, status in ((None, 200), (f"http://{host(guarded)}", 200), ("https://evil.example", 403), ("null", 403)):
        answer = await guarded.client.get("/agent-runs", headers=cookie() | ({} if origin is None else {"origin": origin}))
        assert answer.status_code == status
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_an_origin_can_be_declared_ones_own(replicas: Replicas, secret: str) -> None:
    """For a proxy that calls the service by another name than the browser does. Browsers are still not told to send cookies across."""
    service = await replicas(jwt_keys=secret, cookie=COOKIE, cors="https://app.example")
    answer = await service.client.post("/agent-runs", json=NEW, headers={**cookie(), "origin": "https://app.example"})
    assert answer.status_code == 201 and "access-control-allow-credentials" not in answer.headers


async def test_a_stream_ends_with_its_token(guarded: Service) -> None:
    """At most one keep-alive interval later, with the reason; a new token goes on behind the last event, without a gap."""
    hand = await drive.start(guarded.store, tenant="dev", initiator="ann")
    ends = time.time() + 1.2
    follower = guarded.follow(hand.run_id, headers=bearer(exp=ends))
    await (await follower.open()).until(2)
    assert await follower.until_end(timeout=5) == "cut"
    assert ends <= time.time() <= ends + 0.5 + 0.3
    assert json.loads(follower.control[-1].data) == {"reason": "unauthorized"}
    await hand.finish()
    again = guarded.follow(hand.run_id, headers=bearer())
    await again.open(follower.last_event_id)
    assert await again.until_end() == "clean"
    assert follower.sequences + again.sequences == [1, 2, 3]


async def test_a_wait_ends_with_its_token(guarded: Service) -> None:
    """A long poll is answered then, not a minute later."""
    run_id = await drive.create(guarded.store, initiator="ann")
    began = time.monotonic()
    answer = await guarded.client.get(f"/agent-runs/{run_id}?wait=30", headers=bearer(exp=time.time() + 0.7))
    assert answer.status_code == 200 and time.monotonic() - began < 5
    claim = {"agents": ["idle"], "worker": "shell", "wait": 30}
    asked = await guarded.client.post("/worker/claims", json=claim, headers=bearer(scope="work", exp=time.time() + 0.7))
    assert asked.status_code == 204 and time.monotonic() - began < 10


async def test_a_token_that_is_late_is_no_reason_for_a_loop(replicas: Replicas, secret: str) -> None:
    """Within the leeway it is let in, and its stream stays as long as it would be let in again."""
    service = await replicas(jwt_keys=secret, keepalive=0.3, jwt_leeway=30)
    hand = await drive.start(service.store, initiator="ann")
    follower = service.follow(hand.run_id, headers=bearer(exp=time.time() - 5))
    await (await follower.open()).until(2)
    await hand.finish()
    assert await follower.until_end() == "clean"


async def test_a_token_reaches_no_log(guarded: Service, logs: LogCapture) -> None:
    """Neither a good nor a bad one, in whatever place."""
    tokens = [ISSUER.token(), ISSUER.token(exp=1), hs256(secret=SECRET[::-1]).token()]
    for token in tokens:
        for headers in ({"authorization": f"Bearer {token}"}, {"cookie": f"{COOKIE}={token}"}, {"authorization": token}):
            for path in (f"/agent-runs/x/events?ticket={token}", f"/agent-runs?token={token}", f"/agent-runs/{token}", f"/{token}"):
                answer = await guarded.client.get(path, headers=headers)
                assert token not in answer.text and token not in str(answer.headers)
    # A path may hold anything; what has the form of a token is blanked where lines are written.
    said = "".join(redact_text(str(entry)) for entry in logs.at_least("debug"))
    assert "request" in said and not [token for token in tokens if token in said or token.rpartition(".")[2] in said]
    assert SECRET not in said


@pytest.mark.parametrize("changes", [{"cookie": COOKIE}, {"jwt_keys": "/no/such/file"}, {"jwt_keys": "http://example.org/jwks"}])
async def test_settings_that_cannot_be_meant_stop_the_start(replicas: Replicas, changes: dict[str, str]) -> None:
    """Rather than a service that is open, or that lets nobody in."""
    with pytest.raises(InvalidRequest):
        await replicas(**changes)


async def test_with_tokens_it_may_be_reached_from_anywhere(replicas: Replicas, secret: str) -> None:
    """Any address, and any Host: names are a development's protection."""
    service = await replicas(jwt_keys=secret, host="0.0.0.0")
    url = service.base_url.replace("0.0.0.0", "127.0.0.1")
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/agent-runs", headers={**bearer(), "host": "api.example"})).status_code == 200
        assert (await client.get(f"{url}/agent-runs", headers={"host": "localhost"})).status_code == 401
    with pytest.raises(InvalidRequest, match="--jwt-keys"):
        await replicas(host="0.0.0.0")
