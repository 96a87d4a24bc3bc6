"""O04: a lost "done" signal, and a snapshot that lags the terminal event: terminal event and state must be one fact everywhere."""

import asyncio
import random

from ..support.calls import ENDINGS, snapshot
from ..support.drive import Hand, claim, create
from ..support.factories import Proxies, Replicas
from ..support.scale import rounds
from ..support.service import Service


async def hands(service: Service, agent: str, count: int) -> list[Hand]:
    """Some runs that are ours."""
    for _ in range(count):
        await create(service.store, agent)
    return [await claim(service.store, agent) for _ in range(count)]


async def test_an_end_during_an_outage_still_arrives(replicas: Replicas, proxies: Proxies, redis_url: str) -> None:
    """All connections between API and Redis are cut around the moment the run ends: its followers see the end once that is healed."""
    proxy = await proxies(redis_url)
    cut_off, healthy = await replicas(redis=proxy.redis), await replicas()
    for _ in range(rounds(3)):
        owned = await hands(healthy, "outage", 8)
        followers = [await cut_off.follow(hand.run_id).open() for hand in owned]

        async def finish(hand: Hand) -> None:
            await asyncio.sleep(random.uniform(0, 0.1))
            await hand.finish()

        async def cut() -> None:
            await asyncio.sleep(0.05)
            await proxy.outage(0.3)

        await asyncio.gather(cut(), *(finish(hand) for hand in owned))
        for follower in followers:
            if await follower.until_end(timeout=5) != "clean":
                # A stream may be cut by an outage, but says so, and the resume has the rest.
                assert follower.control[-1].event == "stream.closing"
                await follower.open()
                assert await follower.until_end(timeout=5) == "clean"
            follower.check(1, 3)


async def test_no_snapshot_lags_the_terminal_frame(replicas: Replicas) -> None:
    """The terminal frame came from one replica; the other one's snapshot, asked for at once, is terminal, in every run."""
    api1, api2 = await replicas(), await replicas()
    for _ in range(rounds(6)):
        owned = await hands(api1, "lag", 10)

        async def see_the_end(hand: Hand) -> str:
            follower = await api1.follow(hand.run_id).open()
            await follower.until("run.succeeded")
            state = (await snapshot(api2.client, hand.run_id))["state"]
            await follower.until_end()
            return state

        watching = [asyncio.create_task(see_the_end(hand)) for hand in owned]
        await asyncio.gather(*(hand.finish() for hand in owned))
        assert set(await asyncio.gather(*watching)) == {"succeeded"}


async def test_a_stream_opened_while_the_run_ends_ends_too(service: Service) -> None:
    """A stream opened within milliseconds of the end has all events and an end: never heartbeats only."""
    for _ in range(rounds(5)):
        owned = await hands(service, "edge", 12)

        async def finish(hand: Hand) -> None:
            await asyncio.sleep(random.uniform(0, 0.01))
            await hand.finish()

        async def look(hand: Hand) -> None:
            await asyncio.sleep(random.uniform(0, 0.01))
            follower = await service.follow(hand.run_id).open()
            assert await follower.until_end(timeout=5) == "clean"
            follower.check(1, 3)
            assert follower.events[-1]["type"].removeprefix("run.") in ENDINGS

        await asyncio.gather(*(f(hand) for hand in owned for f in (finish, look)))
