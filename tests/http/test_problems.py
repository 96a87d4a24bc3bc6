"""Refusals: every one a problem document with a stable code, and none that leaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
import structlog.testing

from reattach.core.errors import InternalError, ReattachError, StoreUnavailable, TooManyRequests, Unauthenticated, every_error
from reattach.core.ids import new_run_id
from reattach.core.settings import Settings
from reattach.http.problems import document, problem
from reattach.http.wire import MAX_HEAD
from reattach.store import Store

from ..support import drive
from ..support.service import Service
from ..support.waiting import wait_until
from .raw import connection

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


@pytest.mark.parametrize("path", ["/agent-runs/", "/nothing", "/agent-runs/x/y/z", "/session", "/AGENT-RUNS"])
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


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 201)])
async def test_compressed_bodies(service: Service, encoding: str, status: int) -> None:
    """415 by what is declared, rather than a complaint about bytes that are no UTF-8."""
    body = b'{"agent":"support","input":{}}'
    answer = await service.client.post("/agent-runs", content=body, headers={**JSON, "content-encoding": encoding})
    assert answer.status_code == status
    if status == 415:
        check(answer, 415, "unsupported_media_type")


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


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nidempotency-key: \x7f\r\n\r\n",
        b"POST /agent-runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /agent-runs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\nno chunk\r\n",
    ],
    ids=["TLS", "HTTP/2", "control character", "negative length", "broken chunk"],
)
async def test_what_is_no_http_request(service: Service, sent: bytes) -> None:
    """400 as a problem too, and the connection ends."""
    async with connection(service.base_url) as raw:
        raw.send(sent)
        check(answered(await raw.until_end()), 400, "malformed_request")


async def test_garbage_behind_a_request_does_not_get_into_its_answer(service: Service, store: Store) -> None:
    """A stream is cut there, a long-poll gets no answer: neither is taken for complete."""
    path = f"/agent-runs/{await drive.create(store)}/events"
    for accept, begin in (("text/event-stream", b"run.created"), ("application/json", b"")):
        async with connection(service.base_url) as raw:
            raw.ask("GET", f"{path}?wait=9&after={0 if begin else 1}", f"accept: {accept}")
            await raw.until(begin)
            await wait_until(lambda: service.hub.stats().followers == 1, "the request to be under way")
            raw.send(b"\x16\x03\x01\r\n\r\n")
            seen = await raw.until_end()
            assert b"malformed_request" not in seen and not seen.endswith(b"0\r\n\r\n")
        await wait_until(lambda: service.hub.stats().followers == 0, "the request to be over")


@pytest.mark.parametrize(
    "head",
    [b"GET /%b HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nx: %b\r\n\r\n", b"GET / HTTP/1.1\r\n%b: x\r\n\r\n"],
    ids=["address", "value", "name"],
)
async def test_a_head_has_a_size(service: Service, head: bytes) -> None:
    """431, and the connection ends."""
    async with connection(service.base_url) as raw:
        raw.send(head % (b"a" * (MAX_HEAD + 1)))
        assert check(answered(await raw.until_end()), 431, "head_too_large")["max_bytes"] == MAX_HEAD


@pytest.mark.parametrize("piece", [b"a" * 4096, b"x: y\r\n" * 700], ids=["one header", "many headers"])
async def test_a_head_that_never_ends_is_given_up(service: Service, piece: bytes) -> None:
    """What was read of it would fill the memory, before anybody was asked who they are."""
    sent = 0
    async with connection(service.base_url) as raw:
        raw.send(b"GET / HTTP/1.1\r\nx: y\r\n")
        while not raw.ended and sent < 100 * MAX_HEAD:
            raw.send(piece)
            sent += len(piece)
            with suppress(TimeoutError):
                await raw.until_end(timeout=0.005)
        assert raw.ended and (b"head_too_large" in raw.seen or raw.reset)


async def test_a_head_of_the_largest_size_and_a_body_in_small_chunks_are_taken(service: Service) -> None:
    """The limit is to what has no end, not to what arrives slowly, and a connection's next request has all of it again."""
    async with connection(service.base_url) as raw:
        for number in range(3):
            raw.ask("POST", "/agent-runs", "x: " + "a" * (MAX_HEAD - 1000), "content-type: application/json", "transfer-encoding: chunked")
            for byte in b'{"agent":"support","input":{}}':
                raw.send(b"1\r\n%c\r\n" % byte)
                await asyncio.sleep(0)
            raw.send(b"0\r\n\r\n")
            await raw.until(b'/inputs"}}')
            assert raw.seen.startswith(b"HTTP/1.1 201"), number
            raw.seen = b""


async def test_trailers_have_a_size_too(service: Service) -> None:
    """The answer may be given already; then the connection just ends."""
    async with connection(service.base_url) as raw:
        raw.ask("POST", "/agent-runs", "content-type: application/json", "transfer-encoding: chunked")
        raw.send(b"0\r\n" + b"x: y\r\n" * MAX_HEAD)
        await raw.until_end()


def answered(seen: bytes) -> httpx.Response:
    """The one response of a connection."""
    head, _, body = seen.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return httpx.Response(int(first.split()[1]), headers=dict(line.split(": ", 1) for line in lines), content=body)
