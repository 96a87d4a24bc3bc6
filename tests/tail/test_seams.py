"""Where replay and live meet: each place at which an event could be lost or come twice has its test."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import structlog

from reattach.store import Store
from reattach.tail import Followed, Hub, Slice
from reattach.tail.news import News

from ..support.drive import start
from ..support.waiting import wait_until
from .viewers import Gate, Viewer


@pytest.mark.parametrize("first", ["after", "tail"])
async def test_the_bells_read_and_a_first_read_overlap(store: Store, hub: Hub, first: str) -> None:
    """A new viewer's page and the bell's read bring the same events. Each is taken once, whichever answers first."""
    hand = await start(store)
    gates = {name: Gate(store, name) for name in ("after", "tail")}
    async with hub.joined(hand.run_id) as followed:
        gates["tail"].shut()
        await hand.emit_many(5)
        await gates["tail"].holds()
        gates["after"].shut()
        viewer = Viewer(hub, hand.run_id)
        await gates["after"].holds()
        gates.pop(first).open()
        if first == "after":
            await viewer.reaches(7)
            assert followed.last == 2, "the page was ahead"
        else:
            await wait_until(lambda: followed.last == 7, "the ring to be first")
        gates.popitem()[1].open()
        await viewer.reaches(7)
        await hand.emit_many(2)
        await viewer.reaches(9)
        viewer.check(9)
        assert followed.last == 9
        again = Viewer(hub, hand.run_id)
        await again.reaches(9)
        again.check(9)
        await viewer.leave()
        await again.leave()


async def test_two_reads_of_the_same_news(store: Store, hub: Hub) -> None:
    """A bell's read that was asked before another one and answers after it adds nothing and moves nothing."""
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    await hand.emit_many(5)
    await viewer.reaches(7)
    async with hub.joined(hand.run_id) as followed:
        again = await News(store).read({followed: 2}, count=100)
        assert len(again[followed]) == 5 and followed.take(again[followed]) is False
        assert followed.last == 7
    await hand.emit_many(2)
    await viewer.reaches(9)
    viewer.check(9)
    await viewer.leave()


async def test_a_page_is_ahead_of_the_hub(store: Store, hub: Hub) -> None:
    """A viewer that a page brought further than the ring is not taken back when the ring serves its own, older end."""
    hand = await start(store)
    await hand.emit_many(3)
    tail = Gate(store, "tail")
    async with hub.joined(hand.run_id) as followed:
        tail.shut()
        await hand.emit_many(5)
        await tail.holds()
        viewer = await Viewer(hub, hand.run_id).reaches(10)
        assert followed.last == 5, "the hub has not heard of what the page had"
        assert followed.slice(10) is None
        await hand.emit_many(2)
        tail.open()
        await viewer.reaches(12)
        viewer.check(12)
        await viewer.leave()


async def test_the_ring_moves_while_a_viewer_is_ahead_of_it(store: Store, hub: Hub) -> None:
    """The hub's read brings the ring to a place still behind the viewer: the viewer waits on, and gets the next event once."""
    hand = await start(store)
    tail = Gate(store, "tail")
    async with hub.joined(hand.run_id) as followed:
        tail.shut()
        await hand.emit_many(2)
        await tail.holds()
        await hand.emit_many(4)
        viewer = await Viewer(hub, hand.run_id).reaches(8)
        tail.release()
        await wait_until(lambda: followed.last == 4, "the ring to be moved by the first read")
        for _ in range(10):
            await asyncio.sleep(0)
        assert viewer.position == 8
        tail.open()
        last = (await hand.finish()).sequence
        (await viewer.ends()).check(last)


async def test_one_viewers_trouble_is_not_everybodys(store: Store, hub: Hub) -> None:
    """A writer that raises (its transport is closing) neither stops the loop nor keeps the news from the others."""
    hand = await start(store)
    async with hub.joined(hand.run_id) as followed:

        class Closing:
            position = 0

            def news(self, piece: Slice | None, edge: int) -> None:
                raise RuntimeError("the handler is closed")

        heard: list[int] = []

        class Healthy:
            position = 2

            def news(self, piece: Slice | None, edge: int) -> None:
                assert piece is not None
                self.position = piece.last
                heard.append(edge)

        closing, healthy = Closing(), Healthy()
        followed.listen(closing)
        followed.listen(healthy)
        viewer = await Viewer(hub, hand.run_id).reaches(2)
        with structlog.testing.capture_logs() as logs:
            for n in range(3):
                await hand.emit(("step.done", {}))
                await viewer.reaches(3 + n)
        viewer.check(5)
        assert heard == [3, 4, 5]
        assert {entry["event"] for entry in logs} == {"tail.listener_failed"}
        followed.unlisten(closing)
        followed.unlisten(healthy)
        followed.unlisten(healthy)
        await viewer.leave()


async def test_joining_a_page_read_that_left_too_early(store: Store, hub: Hub) -> None:
    """A viewer whose events did not exist when another viewer's page read left asks again, and takes no hole for an answer."""
    hand = await start(store)
    async with hub.joined(hand.run_id) as followed:
        pages = Gate(store, "after")
        pages.shut()
        early = Viewer(hub, hand.run_id)
        await pages.holds()
        await hand.emit_many(20)
        await wait_until(lambda: followed.last == 22, "the hub to hear of the news")
        # Everything older than the newest event has to come from pages now.
        followed.ring.clear(22)
        late = [Viewer(hub, hand.run_id, cursor) for cursor in (2, 10, 21)]
        await wait_until(lambda: hub.stats().followers == 5, "the late viewers to follow")
        assert len(pages.held) == 1, "the late viewers share the early one's read"
        pages.release()
        await pages.holds()
        assert len(pages.held) == 1, "one new read for all of them, not one each"
        pages.open()
        for viewer in (early, *late):
            await viewer.reaches(22)
            viewer.check(22)
            await viewer.leave()


@pytest.fixture
async def patient(store: Store) -> AsyncIterator[Hub]:
    """A hub that re-reads nothing without a hint, so that a lost one is seen."""
    hub = Hub(store, msgspec.structs.replace(store.settings, keepalive=300.0))
    await hub.start()
    yield hub
    await hub.close()


async def test_more_news_than_one_read_takes(store: Store, patient: Hub) -> None:
    """One hint for thousands of events: the hub reads on by itself until it has them all."""
    hand, busy = await start(store), await start(store, "busy")
    viewers = [await Viewer(patient, each.run_id).reaches(2) for each in (hand, busy)]
    tail = Gate(store, "tail")
    tail.shut()
    await busy.emit_many(1)
    await tail.holds()
    await hand.emit_many(3500, size=500)
    tail.open()
    await viewers[0].reaches(3502)
    viewers[0].check(3502)
    for viewer in viewers:
        await viewer.leave()


async def test_news_while_the_record_is_read(store: Store, patient: Hub) -> None:
    """Events between the first read of a run and the first bell heard for it are not missed, also when no bell follows them."""
    hub = patient
    hand = await start(store)
    read = store.runs.read
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(run_id: str) -> object:
        reply = await read(run_id)
        asked.set()
        await answered.wait()
        return reply

    store.runs.read = slow  # pyright: ignore[reportAttributeAccessIssue]
    viewer = Viewer(hub, hand.run_id, 2)
    await asked.wait()
    store.runs.read = read
    await hand.emit_many(4)
    other = await start(store, "other")
    watching = await Viewer(hub, other.run_id).reaches(2)
    await other.emit_many(1)
    # Its bell rang after the one of interest, so that one was heard as well.
    await watching.reaches(3)
    answered.set()
    await viewer.reaches(6)
    viewer.check(6)
    await viewer.leave()
    await watching.leave()


async def test_viewers_at_one_position_get_one_piece(store: Store, hub: Hub) -> None:
    """The synchronous side: a writer asks for each viewer and gets the same bytes object for all at the same place."""
    hand = await start(store)

    async with hub.joined(hand.run_id) as followed:
        await hand.emit_many(5)
        await wait_until(lambda: followed.last == 7, "the ring to follow")
        first, second = followed.slice(2), followed.slice(2)
        assert first is not None and second is not None
        assert first.last == 7
        assert first.sse is second.sse
        assert first.sse.count(b"\n\n") == 5
        assert followed.slice(7) is None
        assert followed.behind(1)
        assert followed.slice(1) is None


async def test_a_wait_with_a_limit(store: Store, hub: Hub) -> None:
    """`Followed.wait` gives up after its time and leaves nothing behind."""
    hand = await start(store)
    async with hub.joined(hand.run_id) as followed:
        assert isinstance(followed, Followed)
        with pytest.raises(TimeoutError):
            await followed.wait(0.01)
        assert not followed._waiters  # pyright: ignore[reportPrivateUsage]
