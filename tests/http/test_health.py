"""What machines ask: limits, liveness, readiness, metrics."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from reattach.core.settings import Settings
from reattach.http.health import READY_WITHIN
from reattach.http.wire import MAX_HEAD
from reattach.store import Store

from ..support.servers import RedisServer
from ..support.service import Service


async def test_limits_are_what_is_enforced(replicas: Callable[..., Any]) -> None:
    """The published numbers are the settings of this process."""
    service = await replicas(max_payload=2048, max_streams=7, live_events=50)
    limits = (await service.client.get("/limits")).json()
    assert (limits["max_payload"], limits["max_streams"], limits["keepalive"], limits["max_wait"]) == (2048, 7, 1.0, 60)
    assert (limits["max_head"], limits["live_events"]) == (MAX_HEAD, 50)
    assert limits["retention"] == {"deltas_ms": 600_000, "events_ms": 604_800_000, "run_ms": 2_592_000_000}
    body = {"agent": "support", "input": {"x": "y" * 2048}}
    assert (await service.client.post("/agent-runs", json=body)).json()["max_bytes"] == limits["max_payload"]


async def test_alive_and_ready(service: Service) -> None:
    """Both say so; readiness names the server."""
    assert (await service.client.get("/healthz")).json() == {"status": "ok"}
    ready = (await service.client.get("/readyz")).json()
    assert ready["status"] == "ready" and ready["server"] in ("redis", "valkey") and ready["version"]


async def test_a_server_that_evicts_is_not_ready(replicas: Callable[..., Any], own_redis: Callable[..., RedisServer]) -> None:
    """Under memory pressure it would lose runs."""
    service = await replicas(redis=own_redis(options=("--maxmemory-policy", "allkeys-lru")).url)
    answer = await service.client.get("/readyz")
    assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (503, "store_unavailable", "unsafe")
    assert "must be noeviction" in answer.json()["detail"]


async def test_a_replica_is_not_ready(replicas: Callable[..., Any], own_redis: Callable[..., RedisServer]) -> None:
    """It takes no writes."""
    server = own_redis()
    service = await replicas(redis=server.url)
    assert (await service.client.get("/readyz")).status_code == 200
    with server.admin() as admin:
        admin.replicaof("127.0.0.1", "1")
        answer = await service.client.get("/readyz")
        admin.replicaof("NO", "ONE")
    assert answer.status_code == 503 and "must be master" in answer.json()["detail"]


async def test_a_server_that_hangs_is_not_ready(settings: Settings, replicas: Callable[..., Any], proxies: Callable[..., Any]) -> None:
    """Said before whoever asks gives up, however long commands wait for the server."""
    proxy = await proxies(settings.redis)
    service = await replicas(redis=proxy.redis, redis_timeout=30.0)
    assert (await service.client.get("/readyz")).status_code == 200
    proxy.replies.clear()
    async with asyncio.timeout(READY_WITHIN + 2):
        answer = await service.client.get("/readyz")
    assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (503, "store_unavailable", "slow")
    assert int(answer.headers["retry-after"]) >= 1
    proxy.replies.set()
    assert (await service.client.get("/readyz")).status_code == 200


def values(answer: httpx.Response, name: str, **labels: str) -> float:
    """Sum of a metric's samples with these labels."""
    samples = [s for family in text_string_to_metric_families(answer.text) for s in family.samples if s.name == name]
    return sum(s.value for s in samples if labels.items() <= s.labels.items())


async def test_metrics_tell_what_happened(service: Service, store: Store) -> None:
    """Requests, runs, streams and deliveries are counted; no label names a run or a tenant."""
    before = await service.client.get("/metrics")
    assert before.headers["content-type"].startswith("text/plain")
    run_id = (await service.client.post("/agent-runs", json={"agent": "support", "input": {}})).json()["run_id"]
    follower = await service.follow(run_id).open()
    await follower.until(1)
    open_now = await service.client.get("/metrics")
    await service.client.post(f"/agent-runs/{run_id}/cancel")
    await follower.until_end()
    await service.client.get("/agent-runs/x")
    after = await service.client.get("/metrics")

    def grew(name: str, **labels: str) -> float:
        return values(after, name, **labels) - values(before, name, **labels)

    assert values(open_now, "reattach_streams") == 1 and values(after, "reattach_streams") == 0
    assert grew("reattach_runs_created_total") == 1
    assert grew("reattach_streams_ended_total", reason="terminal") == 1
    assert grew("reattach_events_delivered_total", transport="sse") == len(follower.frames)
    assert grew("reattach_cancel_requests_total", disposition="cancelled_before_effect") == 1
    assert grew("reattach_http_problems_total", code="run_not_found") == 1
    assert grew("reattach_http_request_seconds_count", route="/agent-runs/{run_id}", status="404") == 1
    assert run_id not in after.text and "developer" not in after.text


async def test_methods_that_no_one_serves_share_one_label(service: Service) -> None:
    """Whoever is let in to nothing cannot fill the metrics with what there is to try."""
    for method in ("PATCH", "LOCK", "PROPFIND"):
        assert (await service.client.request(method, "/limits")).status_code == 405
    told = await service.client.get("/metrics")
    assert values(told, "reattach_http_request_seconds_count", route="/limits", method="other", status="405") >= 3
    assert "PROPFIND" not in told.text and "LOCK" not in told.text
