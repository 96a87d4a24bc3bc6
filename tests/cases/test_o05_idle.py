"""O05: silent work is cut by an idle timeout: keep-alives carry a stream through quiet phases, and a cut changes nothing."""

import asyncio
from itertools import pairwise

from ..support.calls import snapshot
from ..support.drive import claim, start
from ..support.factories import Proxies, Replicas
from ..support.filters import drop_comments
from ..support.scale import seconds

KEEPALIVE, IDLE_LIMIT, QUIET = 0.4, 1.2, 2.0


async def test_keepalives_carry_a_stream_through_silence(replicas: Replicas, proxies: Proxies) -> None:
    """Twice longer silent than the balancer allows, once running and once waiting: one connection, bytes all the time."""
    service = await replicas(keepalive=KEEPALIVE)
    proxy = await proxies(service.base_url)
    proxy.idle_timeout = IDLE_LIMIT
    hand = await start(service.store, "quiet")
    follower = await service.follow(hand.run_id).open(on=proxy.http)
    await hand.emit(("step.done", {"n": 1}))
    await follower.until(3)
    cursor = follower.last_event_id
    await asyncio.sleep(seconds(QUIET))
    assert follower.last_event_id == cursor, "a comment must not move the cursor"
    await service.store.work.park(hand.lease, wait_id="w", reason="approval", prompt=None, timeout_ms=None)
    await asyncio.sleep(seconds(QUIET))
    await service.client.post(f"/agent-runs/{hand.run_id}/inputs", json={"wait_id": "w", "value": True})
    hand = await claim(service.store, "quiet")
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 7)
    assert proxy.idle_cuts == 0 and len(follower.streams) == 1
    stream = follower.stream
    moments = [stream.opened_at, *stream.arrivals]
    assert max(b - a for a, b in pairwise(moments)) < 2 * KEEPALIVE + 0.3, "longest silence on the wire"
    assert len(stream.parser.comments) >= 2 * QUIET / KEEPALIVE - 3
    assert stream.first_byte_after < 1.0


async def test_a_cut_in_the_silence_is_resumed_exactly(replicas: Replicas, proxies: Proxies) -> None:
    """A proxy that swallows the keep-alives cuts the stream: the run does not notice, and the last real id resumes it."""
    service = await replicas(keepalive=KEEPALIVE)
    swallowing = await proxies(service.base_url, filter=drop_comments)
    proxy = await proxies(swallowing.port)
    proxy.idle_timeout = IDLE_LIMIT
    hand = await start(service.store, "quiet")
    await hand.emit(("step.done", {"n": 1}))
    follower = await service.follow(hand.run_id).open(on=proxy.http)
    assert await follower.until_end() == "cut"
    assert proxy.idle_cuts == 1
    assert (await snapshot(service.client, hand.run_id))["state"] == "running"
    await hand.emit(("step.done", {"n": 2}))
    await follower.open(on=proxy.http)
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 5)
    assert (await snapshot(service.client, hand.run_id))["cancel"]["version"] == 0
