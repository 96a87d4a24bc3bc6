"""Replicas and followers: the harness's own view of a run from outside."""

from ..support.calls import new_run_id, snapshot
from ..support.drive import claim
from ..support.service import Service


async def test_a_follower_sees_a_life(service: Service) -> None:
    """Open, live events, cut, resume, end."""
    run_id = await new_run_id(service.client)
    follower = await service.follow(run_id).open()
    hand = await claim(service.store)
    await hand.emit(("step.done", {"n": 1}))
    await follower.until(3)
    await follower.cut()
    assert follower.stream.ended == "closed"
    await hand.emit(("step.done", {"n": 2}))
    await follower.open()
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 5)
    assert len(follower.streams) == 2
    assert (await snapshot(service.client, run_id))["state"] == "succeeded"
