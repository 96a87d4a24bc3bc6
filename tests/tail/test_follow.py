"""`follow`: every event after the cursor, once, in order, whenever the viewer starts, until the run's last one."""

import asyncio
from contextlib import aclosing

import pytest

from reattach.core.errors import FutureCursor, RunNotFound
from reattach.store import Store
from reattach.tail import Hub, StreamEnded, changed, follow

from ..support.drive import claim, create, start
from ..support.waiting import wait_until
from .viewers import Viewer

NOBODY = "run_00" + "0" * 24


async def test_a_viewer_gets_the_past_and_the_future(store: Store, hub: Hub) -> None:
    """What is stored when it comes, then what is appended, up to the terminal event; then it ends by itself."""
    hand = await start(store)
    await hand.emit_many(20)
    viewer = await Viewer(hub, hand.run_id).reaches(22)
    await hand.emit_many(5)
    await viewer.reaches(27)
    finished = await hand.finish()
    await viewer.ends()
    viewer.check(finished.sequence)
    assert viewer.slices[-1].terminal


@pytest.mark.parametrize("cursor", [0, 1, 50, 63, 64, 65, 200, 301, 302])
async def test_any_cursor_of_a_finished_run(store: Store, hub: Hub, cursor: int) -> None:
    """Over page borders and at both ends, for a run that ended before anybody looked."""
    hand = await start(store)
    await hand.emit_many(299)
    last = (await hand.finish()).sequence
    viewer = await Viewer(hub, hand.run_id, cursor).ends()
    viewer.check(last)


async def test_a_long_replay(store: Store, hub: Hub) -> None:
    """Thousands of events come in pieces of bounded size."""
    hand = await start(store)
    await hand.emit_many(5000, size=1000)
    last = (await hand.finish()).sequence
    viewers = [Viewer(hub, hand.run_id, cursor) for cursor in (0, 0, 1234, 4999)]
    for viewer in viewers:
        (await viewer.ends()).check(last)
        assert max(len(piece) for piece in viewer.slices) <= 512


async def test_large_events_come_in_small_pages(store: Store, hub: Hub) -> None:
    """Pages of a run with large payloads shrink, so that a replay holds little whatever the payloads are."""
    hand = await start(store)
    for n in range(1, 61):
        await hand.emit(("step.done", {"n": n, "pad": "x" * 100_000}))
    viewer = await Viewer(hub, hand.run_id).reaches(62)
    viewer.check(62)
    assert all(len(piece.sse) < 250_000 for piece in viewer.slices)
    async with hub.joined(hand.run_id) as followed:
        assert followed.span < 64
    await viewer.leave()


async def test_a_run_that_nobody_knows(hub: Hub) -> None:
    """No such run, and text that is no run id: the same answer, for everybody who asks at once, and nothing is kept."""
    for run_id in (NOBODY, "../etc/passwd", ""):
        viewers = [Viewer(hub, run_id) for _ in range(5)]
        for viewer in viewers:
            assert isinstance((await viewer.ends()).error, RunNotFound)
        with pytest.raises(RunNotFound):
            await changed(hub, run_id, 0, 5)
    assert hub.stats().runs == 0


async def test_a_cursor_ahead_of_the_run(store: Store, hub: Hub) -> None:
    """It is refused, not waited for."""
    run_id = await create(store)
    viewer = await Viewer(hub, run_id, 2).ends()
    assert isinstance(viewer.error, FutureCursor)


async def test_a_cursor_ahead_of_this_process(store: Store, hub: Hub) -> None:
    """Another process may have shown more than this one has heard of: that is no future cursor, and nothing comes twice."""
    hand = await start(store)
    async with hub.joined(hand.run_id) as followed:
        known = followed.last
        await hand.emit_many(3)
        # What this hub has heard is taken back, as if its read were late.
        await wait_until(lambda: followed.last == known + 3, "the ring to follow")
        followed.ring.clear(known)
        viewer = Viewer(hub, hand.run_id, known + 3)
        await hand.emit_many(2)
        await viewer.reaches(known + 5)
        last = (await hand.finish()).sequence
        (await viewer.ends()).check(last)


async def test_a_terminal_run_at_its_end(store: Store, hub: Hub) -> None:
    """A cursor at the last event of an ended run: the stream is over at once, also the second time."""
    hand = await start(store)
    last = (await hand.finish()).sequence
    for _ in range(2):
        viewer = await Viewer(hub, hand.run_id, last).ends()
        assert viewer.error is None
        assert viewer.slices == []


async def test_joining_in_the_same_instant_as_the_ending(store: Store, hub: Hub) -> None:
    """Viewers that come while the terminal event is written get it, and end."""
    for _ in range(20):
        hand = await start(store)
        await hand.emit_many(3)
        ending = asyncio.create_task(hand.finish())
        viewers = [Viewer(hub, hand.run_id) for _ in range(3)]
        await asyncio.sleep(0)
        viewers += [Viewer(hub, hand.run_id, cursor) for cursor in (0, 2, 5)]
        last = (await ending).sequence
        viewers += [Viewer(hub, hand.run_id, cursor) for cursor in (0, last)]
        for viewer in viewers:
            (await viewer.ends()).check(last)


async def test_two_hundred_viewers_of_one_run(store: Store, hub: Hub) -> None:
    """All get everything, with one ring and a handful of reads."""
    hand = await start(store)
    viewers = [Viewer(hub, hand.run_id) for _ in range(200)]
    await hand.emit_many(100, size=10)
    last = (await hand.finish()).sequence
    for viewer in viewers:
        (await viewer.ends()).check(last)
    assert hub.stats().runs == 1
    pieces = {id(piece) for viewer in viewers for piece in viewer.slices}
    assert len(pieces) < len(viewers)


async def test_many_runs_at_once(store: Store, hub: Hub) -> None:
    """News of many runs in one turn reaches the right viewers only."""
    hands = [await start(store, f"agent{n}") for n in range(40)]
    viewers = [Viewer(hub, hand.run_id) for hand in hands for _ in range(2)]
    await asyncio.gather(*(hand.emit_many(30, size=3) for hand in hands))
    ended = await asyncio.gather(*(hand.finish() for hand in hands))
    last = {hand.run_id: done.sequence for hand, done in zip(hands, ended, strict=True)}
    for viewer in viewers:
        (await viewer.ends()).check(last[viewer.run_id])
        assert all(viewer.run_id.encode() in frame.sse for piece in viewer.slices for frame in piece.frames)


async def test_a_first_event_is_out_at_once(store: Store, hub: Hub) -> None:
    """After a quiet moment nothing is gathered: the event is delivered within milliseconds of its append."""
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    clock = asyncio.get_running_loop().time
    took: list[float] = []
    for n in range(3, 13):
        begun = clock()
        await hand.emit(("step.done", {"n": n}))
        await viewer.reaches(n)
        took.append(clock() - begun)
    assert sorted(took)[5] < 0.1, took
    await viewer.leave()


async def test_changed_returns_as_soon_as_there_is_something_newer(store: Store, hub: Hub) -> None:
    """At once where something is newer already, when it comes, or after the time."""
    hand = await start(store)
    assert await changed(hub, hand.run_id, 0, 5) == 2
    assert await changed(hub, hand.run_id, 2, 0.05) == 2
    waiting = asyncio.create_task(changed(hub, hand.run_id, 2, 20))
    await wait_until(lambda: hub.stats().followers == 1, "the wait to begin")
    await hand.emit(("step.done", {}))
    assert await waiting == 3
    last = (await hand.finish()).sequence
    assert await changed(hub, hand.run_id, last, 20) == last, "an ended run has nothing newer to wait for"


async def test_closing_ends_every_stream_with_its_reason(store: Store, hub: Hub) -> None:
    """Waiting viewers, long polls and new ones hear of it at once; a second close changes nothing."""
    run_id = await create(store)
    viewers = [Viewer(hub, run_id) for _ in range(3)]
    for viewer in viewers:
        await viewer.reaches(1)
    poll = asyncio.create_task(changed(hub, run_id, 1, 20))
    await wait_until(lambda: hub.stats().followers == 4, "the poll to wait")
    await hub.close("drain")
    for viewer in viewers:
        await viewer.ends()
        assert isinstance(viewer.error, StreamEnded)
        assert viewer.error.reason == "drain"
    assert await poll == 1
    with pytest.raises(StreamEnded):
        await hub.join(run_id)
    await hub.close("unavailable")
    assert hub.closing == "drain"
    assert hub.stats().runs == 0


async def test_a_stream_that_only_lacks_its_end_gets_it_while_closing(store: Store, hub: Hub) -> None:
    """A terminal event that is there already is not held back by a drain: the client would have to reconnect only to hear that."""
    run_id = await create(store)
    async with aclosing(follow(hub, run_id, 0)) as slices:
        assert (await anext(slices)).last == 1
        await store.runs.cancel(run_id, by="t", reason=None, key=None, fingerprint="")
        async with hub.joined(run_id) as followed:
            await wait_until(lambda: followed.terminal, "the ring to hear of the end")
        await hub.close()
        assert (await anext(slices)).terminal
        with pytest.raises(StopAsyncIteration):
            await anext(slices)


async def test_the_worker_that_follows_from_the_middle(store: Store, hub: Hub) -> None:
    """A second attempt continues the same log; its viewers see both attempts as one sequence."""
    hand = await start(store)
    viewer = Viewer(hub, hand.run_id)
    await hand.emit_many(4)
    await store.work.release(hand.lease, cause="drain")
    again = await claim(store)
    await again.emit_many(4)
    last = (await again.finish()).sequence
    (await viewer.ends()).check(last)
    kinds = [frame.type for piece in viewer.slices for frame in piece.frames]
    assert kinds.count("run.started") + kinds.count("run.resumed") == 2
