"""Pages of other sites: off unless configured, and then enough to resume a stream (case O27)."""

from collections.abc import Callable
from typing import Any

import pytest

from reattach.core.errors import InvalidRequest
from reattach.http.cors import origins_of
from reattach.store import Store

from ..support import drive
from ..support.service import Service

ORIGIN = {"origin": "https://app.example"}
PREFLIGHT = {**ORIGIN, "access-control-request-method": "GET", "access-control-request-headers": "authorization,last-event-id"}


async def test_off_by_default(service: Service) -> None:
    """No header invites anybody."""
    answer = await service.client.get("/healthz", headers=ORIGIN)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (await service.client.options("/agent-runs", headers=PREFLIGHT)).status_code == 405


async def test_configured_origins_may_resume(replicas: Callable[..., Any], store: Store) -> None:
    """The preflight allows what a resume needs; answers expose what a client reads; the stream is not held back."""
    service = await replicas(cors="https://app.example, https://other.example")
    run_id = await drive.create(store)
    preflight = await service.client.options(f"/agent-runs/{run_id}/events", headers=PREFLIGHT)
    assert preflight.status_code == 204 and preflight.headers["access-control-allow-origin"] == "https://app.example"
    allowed = {name.strip().lower() for name in preflight.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "last-event-id", "idempotency-key", "content-type", "if-none-match"} <= allowed
    answer = await service.client.get(f"/agent-runs/{run_id}", headers=ORIGIN)
    exposed = {name.strip() for name in answer.headers["access-control-expose-headers"].split(",")}
    assert exposed == {"Location", "ETag", "Idempotency-Replayed", "Retry-After"}
    follower = await service.follow(run_id).open(None, origin="https://app.example")
    await follower.until(1)
    assert follower.stream.headers["access-control-allow-origin"] == "https://app.example"
    refused = await service.client.get(f"/agent-runs/{run_id}", headers={**ORIGIN, "if-none-match": '"1"'})
    assert refused.status_code == 304 and refused.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize("text", ["app.example", "https://app.example/", "https://App.example", "*", "https://app.example, localhost:8000"])
def test_what_no_browser_sends_is_no_origin(text: str) -> None:
    """A slash too many is said at the start, instead of a page that stays empty."""
    with pytest.raises(InvalidRequest, match="like http://localhost:8000"):
        origins_of(text)


async def test_other_origins_stay_outside(replicas: Callable[..., Any]) -> None:
    """Exact matches only; the refusal is a problem like any other."""
    service = await replicas(cors="https://app.example")
    for origin in ("https://app.example.evil.example", "http://app.example", "https://app.example:8443", "null"):
        answer = await service.client.options("/agent-runs", headers={**PREFLIGHT, "origin": origin})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "access-control-allow-origin" not in answer.headers
        assert "access-control-allow-origin" not in (await service.client.get("/healthz", headers={"origin": origin})).headers
