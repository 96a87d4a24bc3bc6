"""Refusals: every one a problem document with a stable code, and none that leaks."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import structlog.testing

from reattach.core.errors import InternalError, ReattachError, StoreUnavailable, TooManyRequests, Unauthenticated, every_error
from reattach.core.ids import new_run_id
from reattach.core.settings import Settings
from reattach.http.problems import document, problem
from reattach.store import Store

from ..support import drive
from ..support.service import Service

JSON = {"content-type": "application/json"}
RUN_PATHS = [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/inputs")]


def check(answer: Any, status: int, code: str) -> dict[str, Any]:
    """What holds for every refusal; its document."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = answer.json()
    assert (answer.status_code, found["status"], found["code"]) == (status, status, code), found
    assert found["type"] == f"urn:reattach:problem:{code}" and found["title"] and found["detail"]
    return found


@pytest.mark.parametrize("error", every_error())
def test_every_error_has_a_document(error: type[ReattachError]) -> None:
    """The members of RFC 9457 and the code, and what the error has of its own."""
    told = document(error("what is wrong", field="x"))
    assert list(told) == ["type", "title", "status", "code", "detail", "field"]
    assert told["title"] == error.title() and told["detail"] == "what is wrong"


def test_headers_that_belong_to_a_status() -> None:
    """Retry-After where trying again helps, WWW-Authenticate where a credential does."""
    values = {int(problem(StoreUnavailable()).headers["retry-after"]) for _ in range(200)}
    assert values == {1, 2, 3, 4} or values == {2, 3, 4}
    assert int(problem(TooManyRequests(retry_after=30)).headers["retry-after"]) >= 30
    assert problem(Unauthenticated()).headers["www-authenticate"] == "Bearer"
    assert "retry-after" not in problem(InternalError()).headers


@pytest.mark.parametrize("path", ["/", "/agent-runs/", "/nothing", "/agent-runs/x/y/z", "/sessions", "/AGENT-RUNS"])
async def test_addresses_that_lead_nowhere(service: Service, path: str) -> None:
    """404 not_found for every method."""
    for method in ("GET", "POST", "DELETE"):
        check(await service.client.request(method, path), 404, "not_found")


async def test_methods_that_are_not_taken(service: Service) -> None:
    """405 with all methods that are."""
    answer = await service.client.delete("/agent-runs")
    found = check(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"} == set(found["allow"])
    assert (await service.client.post("/limits")).headers["allow"] == "GET, HEAD"
    check(await service.client.put(f"/agent-runs/{new_run_id(1)}"), 405, "method_not_allowed")


def body_for(path: str) -> dict[str, Any]:
    """A body that is acceptable there."""
    return {"json": {"wait_id": "w", "value": 1}} if path == "/inputs" else {"json": {}} if path == "/cancel" else {}


@pytest.mark.parametrize(("method", "path"), RUN_PATHS)
async def test_another_tenants_run_is_no_run(service: Service, store: Store, method: str, path: str) -> None:
    """The same answer, byte for byte, as for a run that does not exist and for an id that cannot exist (case O28)."""
    foreign = await drive.create(store, tenant="somebody")
    answers = [
        await service.client.request(method, f"/agent-runs/{run_id}{path}", headers={"last-event-id": cursor}, **body_for(path))
        for run_id in (foreign, new_run_id(2), "run_x", "x" * 300, "run_{01}", "%00")
        for cursor in ("0", f"{foreign}:1", "nonsense")
    ]
    for answer in answers:
        check(answer, 404, "run_not_found")
    assert len({a.content for a in answers}) == 1
    assert (await store.runs.load(foreign)).sequence == 1


@pytest.mark.parametrize(
    ("body", "field", "teaches"),
    [
        ("", "body", "empty"),
        ("{", "body", "JSON"),
        ("[]", "body", "object"),
        ("null", "body", "object"),
        ('{"agent":"support"}', "input", "missing"),
        ('{"input":{}}', "agent", "missing"),
        ('{"agent":"Support","input":{}}', "agent", "a-z"),
        ('{"agent":"support\\n","input":{}}', "agent", "a-z"),
        ('{"agent":5,"input":{}}', "agent", "str"),
        ('{"agent":"support","input":[]}', "input", "object"),
        ('{"agent":"support","input":"x"}', "input", "object"),
        ('{"agent":"support","input":null}', "input", "object"),
        ('{"agent":"support","input":{},"metadata":5}', "metadata", "object"),
        ('{"agent":"support","input":{},"colour":1}', "colour", "session_id"),
        ('{"agent":"support","input":{},"session_id":""}', "session_id", "1 to 128"),
        ('{"agent":"support","input":{},"session_id":"a\\nb"}', "session_id", "1 to 128"),
        ('{"agent":"support","input":{},"parent_run_id":"run_1"}', "parent_run_id", "run id"),
        ('{"agent":"support","input":{},"resource_scope":"a//b"}', "resource_scope", "/"),
        ('{"agent":"support","input":{},"retention":{"run_ms":1}}', "retention.run_ms", "100"),
        ('{"agent":"support","input":{},"retention":{"forever":true}}', "retention.forever", "unknown"),
        ('{"agent":"support","input":{"x":NaN}}', "body", "JSON"),
        ('{"agent":"support","input":{"x":"\\ud800"}}', "body", "surrogate"),
        ('{"agent":"support","input":' + '{"a":' * 64 + "1" + "}" * 64 + "}", None, ""),
        ('{"agent":"support","input":' + '{"a":' * 65 + "1" + "}" * 65 + "}", "body", "deep"),
        ('{"agent":"support","input":' + "[" * 100_000, "body", "deep"),
    ],
)
async def test_bodies_that_are_not_valid(service: Service, body: str, field: str | None, teaches: str) -> None:
    """422 that names the field and what is allowed."""
    answer = await service.client.post("/agent-runs", content=body.encode(), headers=JSON)
    if field is None:
        assert answer.status_code == 201
        return
    found = check(answer, 422, "invalid_request")
    assert found["field"] == field and teaches in found["detail"], found


async def test_bytes_that_are_not_text(service: Service) -> None:
    """Invalid UTF-8 is refused at the edge (case O06)."""
    body = b'{"agent":"support","input":{"x":"' + "那".encode()[:2] + b'"}}'
    assert check(await service.client.post("/agent-runs", content=body, headers=JSON), 422, "invalid_request")["field"] == "body"


async def test_bodies_that_are_too_large(replicas: Callable[..., Any]) -> None:
    """413 by the declared length, by what really arrives, and for one field."""
    service = await replicas(max_body=4096, max_payload=1024)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 1024

    declared = await service.client.post("/agent-runs", content=b"x" * 5000, headers=JSON)
    assert check(declared, 413, "payload_too_large")["max_bytes"] == 4096
    assert check(await service.client.post("/agent-runs", content=endless(), headers=JSON), 413, "payload_too_large")["field"] == "body"
    large = {"agent": "support", "input": {"x": "y" * 1024}}
    assert check(await service.client.post("/agent-runs", json=large), 413, "payload_too_large")["field"] == "input"


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "application/jsonp"]
)
async def test_bodies_of_other_types(service: Service, kind: str) -> None:
    """415: a page of another site cannot post a form to us."""
    headers = {"content-type": kind} if kind else {}
    check(
        await service.client.post("/agent-runs", content=b'{"agent":"support","input":{}}', headers=headers), 415, "unsupported_media_type"
    )


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'])
async def test_bodies_of_the_right_type(service: Service, kind: str) -> None:
    """Parameters and capitals do not matter."""
    answer = await service.client.post("/agent-runs", content=b'{"agent":"support","input":{}}', headers={"content-type": kind})
    assert answer.status_code == 201


async def test_a_store_that_is_away(settings: Settings, replicas: Callable[..., Any], proxies: Callable[..., Any], store: Store) -> None:
    """503 with Retry-After everywhere, never 404 and never an empty 200; the process itself stays alive."""
    proxy = await proxies(settings.redis)
    service = await replicas(redis=proxy.redis, redis_timeout=0.3)
    run_id = await drive.create(store)
    proxy.refusing = True
    proxy.cut()
    new: dict[str, Any] = {"json": {"agent": "support", "input": {}}}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/agent-runs", new),
        ("GET", "/agent-runs", {}),
        ("GET", f"/agent-runs/{run_id}", {}),
        ("GET", f"/agent-runs/{run_id}/events", {"headers": {"accept": "application/json"}}),
        ("GET", f"/agent-runs/{run_id}/events", {"headers": {"accept": "text/event-stream"}}),
        ("POST", f"/agent-runs/{run_id}/cancel", {}),
        ("GET", "/readyz", {}),
    ]
    for method, path, more in calls:
        answer = await service.client.request(method, path, **more)
        check(answer, 503, "store_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    assert (await service.client.get("/healthz")).status_code == 200


async def test_a_bug_is_logged_and_not_shown(replicas: Callable[..., Any], store: Store) -> None:
    """500 with a request id that the log has too, and nothing else of what went wrong."""

    class Broken:
        async def may(self, *_: object) -> bool:
            raise ValueError("the secret detail")

    service = await replicas(authorizer=Broken())
    with structlog.testing.capture_logs() as logs:
        answer = await service.client.get("/limits")
    found = check(answer, 500, "internal_error")
    assert "secret" not in answer.text and "ValueError" not in answer.text
    logged = next(entry for entry in logs if entry["event"] == "request.failed")
    assert logged["request_id"] == found["request_id"] and logged["exc_info"]


async def test_clients_that_leave_in_the_middle_of_a_body_are_nobodys_error(service: Service) -> None:
    """No traceback, and the process goes on."""
    from .raw import connection

    with structlog.testing.capture_logs() as logs:
        async with connection(service.base_url) as raw:
            raw.ask("POST", "/agent-runs", "Content-Type: application/json", "Content-Length: 1000", body=b'{"agent":')
        assert (await service.client.get("/healthz")).status_code == 200
    assert not [entry for entry in logs if entry["log_level"] == "error"]
