"""O27: events in clumps, or headers that wait for the first token: every byte leaves when it is there."""

import asyncio
import time

import pytest

from ..support.drive import claim, create
from ..support.factories import Proxies, Replicas
from ..support.filters import buffer_like_nginx
from ..support.service import Service
from ..support.waiting import wait_until

ENCODINGS = "gzip, br, zstd, deflate"


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "buffering proxy"])
async def test_nothing_is_held_back(service: Service, proxies: Proxies, proxied: bool) -> None:
    """Head and first byte come at once although the run has not begun; each small event follows its append, also through a proxy."""
    base = (await proxies(service.base_url, filter=buffer_like_nginx)).http if proxied else service.base_url
    run_id = await create(service.store, "typing")
    follower = await service.follow(run_id).open(on=base, accept_encoding=ENCODINGS)
    stream = follower.stream
    assert stream.head_after < 0.3
    await wait_until(lambda: stream.arrivals, "the first byte", timeout=1.0)
    assert stream.first_byte_after < 1.0
    await asyncio.sleep(0.5)
    hand = await claim(service.store, "typing")
    for n in range(5):
        appended = time.monotonic()
        await hand.emit(("message.delta", {"message_id": "m", "text": f"token {n} "}))
        await follower.until(3 + n, timeout=1.0)
        assert follower.frames[-1].at - appended < 0.3
        await asyncio.sleep(0.1)
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 8)


async def test_a_page_of_another_site_may_resume(replicas: Replicas) -> None:
    """Where CORS is on, the preflight allows the credential and the cursor, and the answers are readable; elsewhere nothing is allowed."""
    origin = {"origin": "https://app.example"}
    asks = {**origin, "access-control-request-method": "GET", "access-control-request-headers": "authorization,last-event-id"}
    service = await replicas(cors="https://app.example")
    run_id = await create(service.store, "typing")
    path = f"/agent-runs/{run_id}/events"
    preflight = await service.client.options(path, headers=asks)
    assert preflight.status_code in (200, 204)
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    allowed = {name.strip().lower() for name in preflight.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "last-event-id"} <= allowed
    follower = await service.follow(run_id).open(**origin)
    assert follower.stream.headers["access-control-allow-origin"] == "https://app.example"
    await follower.until(1)
    await follower.close()
    closed = await replicas()
    refused = await closed.client.options(path, headers=asks)
    assert "access-control-allow-origin" not in refused.headers


async def test_headers_keep_the_stream_alone(service: Service) -> None:
    """Type, no cache, no buffering, no compression."""
    run_id = await create(service.store, "typing")
    follower = await service.follow(run_id).open(accept_encoding=ENCODINGS)
    headers = follower.stream.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in headers and "content-length" not in headers
    await follower.close()
