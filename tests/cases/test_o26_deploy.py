"""O26, the API's half: a deploy ends open streams honestly and quickly, and no viewer misses anything."""

import time
from typing import Any

from reattach.core.settings import Settings

from ..support.client import Follower, make_client
from ..support.drive import start
from ..support.factories import Replicas
from ..support.launch import Launcher


async def test_a_stopped_api_lets_its_streams_go(launch: Launcher, replicas: Replicas, settings: Settings) -> None:
    """TERM with ten idle followers: exit by itself with code 0, no end that looks like success, a gapless resume elsewhere."""
    api, service = launch.api(), await replicas(lease=30.0)
    hands = [await start(service.store, f"deploy{n}") for n in range(5)]
    async with make_client(api.base_url) as client:
        followers = [await Follower(client, hand.run_id).open() for hand in hands for _ in range(2)]
        for follower in followers:
            await follower.until(2)
        stopped = time.monotonic()
        api.term()
        for follower in followers:
            assert await follower.until_end(timeout=settings.grace + 2) == "cut", "a live run's stream must not end as a complete body"
            check_goodbye(follower)
        assert api.wait(settings.grace + 2) == 0
        assert time.monotonic() - stopped < settings.grace + 1
        for hand in hands:
            await hand.emit(("step.done", {"n": 1}))
        for follower in followers:
            await follower.open(on=service.base_url)
        for hand in hands:
            await hand.finish()
        for follower in followers:
            assert await follower.until_end() == "clean"
            follower.check(1, 4)


def check_goodbye(follower: Follower) -> None:
    """The last frame says why, and moves no cursor."""
    goodbye: Any = follower.control[-1]
    assert (goodbye.event, goodbye.data, goodbye.id) == ("stream.closing", '{"reason":"drain"}', None)
    assert follower.last_event_id == f"{follower.run_id}:2"
    assert not [kind for kind in follower.types if kind in ("run.succeeded", "run.failed", "run.cancelled")]


async def test_a_replica_in_this_process_drains_too(replicas: Replicas) -> None:
    """Closing tells a follower the reason, and a request that comes meanwhile is answered or refused, never left hanging."""
    going, staying = await replicas(), await replicas()
    hand = await start(staying.store, "drain")
    follower = await going.follow(hand.run_id).open()
    await follower.until(2)
    await going.stop()
    assert await follower.until_end(timeout=3) == "cut"
    check_goodbye(follower)
    await hand.finish()
    resumed = await staying.follow(hand.run_id).open(follower.last_event_id)
    await resumed.until_end()
    resumed.check(3, 3)
