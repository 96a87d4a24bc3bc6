"""Nothing is kept for those who left: no task, no waiter, no ring, no page beyond its bound."""

import asyncio
import gc
from typing import Any

import pytest

from reattach.store import Store
from reattach.tail import Hub, StreamEnded, changed, follow
from reattach.tail.pages import Pages

from ..support.drive import create, start
from ..support.waiting import wait_until
from .viewers import Viewer


@pytest.fixture
async def quick(store: Store) -> Any:
    """A hub that forgets a run soon after its last follower left."""
    hub = Hub(store, store.settings, linger=0.05)
    await hub.start()
    yield hub
    await hub.close()


def names() -> set[str]:
    """Names of the tasks that run now."""
    return {task.get_name() for task in asyncio.all_tasks() if not task.done()}


async def _idle(hub: Hub) -> None:
    await wait_until(lambda: hub.stats().runs == 0, f"every run to be forgotten, there are {hub.stats()}")
    assert hub.stats().followers == 0
    assert hub.stats().ring_bytes == 0


async def test_a_ring_outlives_its_last_viewer_for_a_moment(store: Store, quick: Hub) -> None:
    """So that those who were cut find it when they come back; then it is forgotten."""
    hand = await start(store)
    await (await Viewer(quick, hand.run_id).reaches(2)).leave()
    assert quick.stats().followers == 0
    assert quick.stats().runs == 1
    async with quick.joined(hand.run_id) as followed:
        await hand.emit_many(5)
        await wait_until(lambda: followed.last == 7, "the ring to follow")
    assert quick.stats().runs == 1
    await _idle(quick)


async def test_viewers_that_leave_in_every_state(store: Store, quick: Hub) -> None:
    """While joining, while reading pages, while waiting, between two slices: nothing stays behind."""
    hand = await start(store)
    await hand.emit_many(200)
    before = names()
    for turns in range(60):
        viewer = Viewer(quick, hand.run_id)
        for _ in range(turns):
            await asyncio.sleep(0)
        await viewer.leave()
        assert viewer.error is None
    await _idle(quick)
    await wait_until(lambda: names() - before <= {"reattach-redis-lane"}, f"no task to be left: {names() - before}")


async def test_a_consumer_that_just_stops_iterating(store: Store, quick: Hub) -> None:
    """Breaking out of the loop, without closing the generator, lets go of the run as well."""
    hand = await start(store)
    await hand.emit_many(200)

    async def read_one() -> int:
        async for piece in follow(quick, hand.run_id, 0):
            return piece.last
        return 0

    assert await read_one() > 0
    gc.collect()
    await _idle(quick)


async def test_the_first_who_asks_may_leave(store: Store, quick: Hub) -> None:
    """Others who wait for the same record get it; when all leave, the read is given up and the run forgotten at once."""
    run_id = await create(store)
    first = asyncio.create_task(quick.join(run_id))
    second = asyncio.create_task(quick.join(run_id))
    await asyncio.sleep(0)
    first.cancel()
    followed = await second
    assert followed.last == 1
    assert quick.stats().followers == 1
    quick.leave(followed)
    await _idle(quick)
    for _ in range(3):
        lonely = asyncio.create_task(quick.join(run_id))
        await asyncio.sleep(0)
        lonely.cancel()
        await asyncio.gather(lonely, return_exceptions=True)
        assert quick.stats().runs == 0


async def test_closing_while_viewers_join(store: Store, quick: Hub) -> None:
    """A join that is under way when the hub closes ends like the streams do."""
    run_id = await create(store)
    joins = [asyncio.create_task(quick.join(run_id)) for _ in range(3)]
    await asyncio.sleep(0)
    await quick.close()
    for result in await asyncio.gather(*joins, return_exceptions=True):
        assert isinstance(result, StreamEnded)
    assert quick.stats().runs == 0


async def test_long_polls_that_are_cancelled(store: Store, quick: Hub) -> None:
    """A client that hangs up in the middle of `?wait` leaves nothing behind."""
    run_id = await create(store)
    polls = [asyncio.create_task(changed(quick, run_id, 1, 30)) for _ in range(10)]
    await wait_until(lambda: quick.stats().followers == 10, "all of them to wait")
    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)
    await _idle(quick)


async def test_an_ended_run_lets_go_of_its_viewers(store: Store, quick: Hub) -> None:
    """After the terminal event every stream is over by itself and the run is forgotten."""
    hand = await start(store)
    viewers = [Viewer(quick, hand.run_id) for _ in range(20)]
    await hand.emit_many(10)
    last = (await hand.finish()).sequence
    for viewer in viewers:
        (await viewer.ends()).check(last)
    await _idle(quick)


async def test_a_hub_that_never_started_can_be_closed(store: Store) -> None:
    """And twice."""
    hub = Hub(store, store.settings)
    await hub.close()
    await hub.close()


async def test_kept_pages_are_bounded(store: Store, hub: Hub) -> None:
    """The pages used last are kept, within a number of bytes, whatever is read."""
    hand = await start(store)
    for _ in range(6):
        await hand.emit(*(("step.done", {"pad": "x" * 400}) for _ in range(200)))
    pages = Pages(kept_bytes=1_000_000)
    async with hub.joined(hand.run_id) as followed:
        followed.span = 64
        for position in range(0, 1200, 64):
            assert await pages.after(followed, position) is not None
            assert pages.size <= 1_000_000
        assert pages.size > 0
        kept = pages.size
        for position in (1024, 1088, 1024):
            await pages.after(followed, position)
        assert pages.size == kept
        pages.forget()
        assert pages.size == 0
    await pages.close()


async def test_rings_share_one_bound(store: Store, hub: Hub) -> None:
    """The more runs are followed, the smaller each ring, so that all of them together stay bounded."""
    roster = hub._roster  # pyright: ignore[reportPrivateUsage]
    alone = roster.ring_limit()
    hands = [await start(store, f"agent{n}") for n in range(100)]
    joined = [await hub.join(hand.run_id) for hand in hands]
    assert roster.ring_limit() < alone
    assert roster.ring_limit() * len(roster) <= 64 * 1024 * 1024
    await hands[0].emit_many(3)
    await wait_until(lambda: joined[0].last == 5, "the ring to follow")
    await wait_until(lambda: joined[0].ring.limit == roster.ring_limit(), "the sweep to come by")
    for followed in joined:
        hub.leave(followed)
