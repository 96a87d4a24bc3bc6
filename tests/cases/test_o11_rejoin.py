"""O11: rejoining a finished run must end, every time, on every replica, and free what it held."""

import asyncio

import httpx

from ..support.client import Follower, make_client
from ..support.drive import Hand, start
from ..support.factories import Replicas
from ..support.service import Service
from ..support.waiting import wait_until


async def finished_run(service: Service) -> Hand:
    """A run of six events that is over."""
    hand = await start(service.store, "done")
    await hand.emit_many(3)
    await hand.finish()
    return hand


async def check_rejoin(service: Service, run_id: str) -> None:
    """Without a cursor, in the middle, at the end."""
    for cursor, first in ((None, 1), ("4", 5), (f"{run_id}:4", 5)):
        follower = await service.follow(run_id).open(cursor)
        assert await follower.until_end(timeout=3) == "clean"
        follower.check(first, 6)
    for cursor in ("6", f"{run_id}:6"):
        follower = await service.follow(run_id).open(cursor)
        assert await follower.until_end(timeout=3) == "clean"
        assert (follower.stream.status, follower.stream.body, follower.sequences) == (204, b"", [])


async def test_a_finished_run_is_replayed_and_ends(replicas: Replicas) -> None:
    """The rest and an end; nothing but 204 at the terminal event, which stops an EventSource; the same after all APIs restarted."""
    first = await replicas()
    hand = await finished_run(first)
    await check_rejoin(first, hand.run_id)
    await first.close()
    again = await replicas()
    await check_rejoin(again, hand.run_id)


async def test_a_client_that_always_reconnects_stops(service: Service) -> None:
    """A loop that reconnects after every close, and stops only on 204, sees six frames in all."""
    hand = await finished_run(service)
    follower = service.follow(hand.run_id)
    for _ in range(20):
        await follower.open()
        await follower.until_end()
        if follower.stream.status == 204:
            break
        await asyncio.sleep(0.1)
    assert len(follower.streams) == 2
    follower.check(1, 6)


async def test_the_end_of_a_run_frees_its_connection(service: Service) -> None:
    """Six streams fill a browser's six connections; when one run ends, the seventh request is served."""
    hands = [await start(service.store, f"six{n}") for n in range(6)]
    async with make_client(service.base_url, limits=httpx.Limits(max_connections=6)) as client:
        followers = [await Follower(client, hand.run_id).open() for hand in hands]
        seventh = asyncio.create_task(client.get(f"/agent-runs/{hands[0].run_id}"))
        await wait_until(lambda: followers[0].sequences == [1, 2], "the replay")
        assert not seventh.done()
        await hands[0].finish()
        response = await asyncio.wait_for(seventh, 3)
        assert (response.status_code, response.json()["state"]) == (200, "succeeded")
        for follower in followers:
            await follower.close()
    for hand in hands[1:]:
        await hand.finish()
