"""O01: first events lost between create and first subscribe: the gap between replay and live, at the start of the stream."""

import asyncio

from reattach import Agents, Run

from ..support.calls import new_run_id, snapshot
from ..support.client import Follower
from ..support.drive import claim
from ..support.factories import Proxies, Workers
from ..support.scale import rounds
from ..support.service import Service
from ..support.waiting import wait_until

DELAYS = (0.0, 0.001, 0.005, 0.02, 0.1)

agents = Agents()


@agents.agent("burst")
async def burst(run: Run) -> None:
    """Six events with nothing in between."""
    for n in range(6):
        await run.emit("step.done", {"n": n})


async def follow_late(service: Service, run_id: str, delay: float) -> Follower:
    """A viewer that opens the stream some time after the POST answered."""
    await asyncio.sleep(delay)
    follower = await service.follow(run_id).open()
    assert await follower.until_end() == "clean", follower.stream.told
    return follower


async def one_run(service: Service) -> list[Follower]:
    """Create a run and look at it five times."""
    run_id = await new_run_id(service.client, "burst")
    return list(await asyncio.gather(*(follow_late(service, run_id, delay) for delay in DELAYS)))


async def test_every_stream_begins_with_the_first_event(service: Service, workers: Workers) -> None:
    """Whenever a stream is opened after the create answered, it has every event from 1 to the end: no misses."""
    await workers(agents, lease=15.0)
    for _ in range(rounds(3)):
        for followers in await asyncio.gather(*(one_run(service) for _ in range(8))):
            for follower in followers:
                follower.check()
                assert follower.types == ["run.created", "run.started", *["step.done"] * 6, "run.succeeded"], follower.events


async def test_a_client_cut_before_its_first_event_comes_back(service: Service, proxies: Proxies) -> None:
    """A connection that brought nothing is reopened without a cursor, and with an empty one: both get 1…n of the one run."""
    proxy = await proxies(service.base_url)
    run_id = await new_run_id(service.client, "slow")
    proxy.replies.clear()
    first = service.follow(run_id)
    first.connect(None, on=proxy.http)
    await wait_until(lambda: proxy.open_links == 1, "the request to be on its way")
    await first.cut()
    assert first.sequences == []
    assert (await snapshot(service.client, run_id))["state"] == "queued"
    bare, empty = await service.follow(run_id).open(None), await service.follow(run_id).open("")
    hand = await claim(service.store, "slow")
    await hand.emit_many(3)
    await hand.finish()
    for follower in (bare, empty):
        assert await follower.until_end() == "clean"
        follower.check(1, 6)
    listed = (await service.client.get("/agent-runs", params={"agent": "slow"})).json()
    assert [run["run_id"] for run in listed["runs"]] == [run_id]
