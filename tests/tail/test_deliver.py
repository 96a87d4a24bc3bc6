"""`deliver`: at the live edge the hub's turn writes to every viewer; what holds for `follow` holds for it."""

import asyncio

from reattach.core.errors import FutureCursor, RunNotFound
from reattach.store import Store
from reattach.tail import Hub, StreamEnded

from ..support.drive import create, start
from ..support.waiting import wait_until
from .viewers import Viewer


async def test_the_past_and_the_future(store: Store, hub: Hub) -> None:
    """What is stored, then what comes, to the run's last event, for any cursor."""
    hand = await start(store)
    await hand.emit_many(200)
    viewers = [Viewer(hub, hand.run_id, cursor, direct=True) for cursor in (0, 1, 150, 202)]
    for viewer in viewers:
        await viewer.reaches(202)
    await hand.emit_many(50, size=3)
    last = (await hand.finish()).sequence
    for viewer in viewers:
        (await viewer.ends()).check(last)
    (await Viewer(hub, hand.run_id, last, direct=True).ends()).check(last)


async def test_one_piece_for_all_viewers_at_the_edge(store: Store, hub: Hub) -> None:
    """They are given the same object in the same turn."""
    hand = await start(store)
    viewers = [await Viewer(hub, hand.run_id, direct=True).reaches(2) for _ in range(20)]
    await hand.emit_many(1)
    for viewer in viewers:
        await viewer.reaches(3)
    assert len({id(viewer.slices[-1]) for viewer in viewers}) == 1
    for viewer in viewers:
        await viewer.leave()


async def test_a_viewer_that_is_full_is_left_alone(store: Store, hub: Hub) -> None:
    """Once it wanted no more it is given nothing, keeps nobody waiting, and goes on where it was, from the ring or from pages."""
    hand = await start(store)
    slow, quick = [await Viewer(hub, hand.run_id, direct=True).reaches(2) for _ in range(2)]
    slow.pause()
    await hand.emit_many(1)
    await slow.reaches(3)
    await hand.emit_many(1999, size=500)
    await quick.reaches(2002)
    assert slow.position == 3
    slow.pause(False)
    await slow.reaches(2002)
    last = (await hand.finish()).sequence
    for viewer in (slow, quick):
        (await viewer.ends()).check(last)


async def test_what_it_raises(store: Store, hub: Hub) -> None:
    """No such run, a cursor of the future, a hub that closes: as for `follow`, and nothing stays behind."""
    run_id = await create(store)
    assert isinstance((await Viewer(hub, "run_00" + "0" * 24, direct=True).ends()).error, RunNotFound)
    assert isinstance((await Viewer(hub, run_id, 7, direct=True).ends()).error, FutureCursor)
    waiting = await Viewer(hub, run_id, direct=True).reaches(1)
    leaving = await Viewer(hub, run_id, direct=True).reaches(1)
    await leaving.leave()
    await hub.close()
    await waiting.ends()
    assert isinstance(waiting.error, StreamEnded)
    assert hub.stats().runs == 0


async def test_a_cursor_ahead_of_this_process(store: Store, hub: Hub) -> None:
    """Another process may have shown more than this one has heard of: nothing comes twice."""
    hand = await start(store)
    async with hub.joined(hand.run_id) as followed:
        await hand.emit_many(3)
        await wait_until(lambda: followed.last == 5, "the ring to follow")
        followed.ring.clear(2)
        viewer = Viewer(hub, hand.run_id, 5, direct=True)
        await wait_until(lambda: followed.count == 3, "the viewer to follow")
        await asyncio.sleep(0)
        await hand.emit_many(2)
        last = (await hand.finish()).sequence
        (await viewer.ends()).check(last)
