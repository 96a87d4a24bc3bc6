"""Delivery to writers that never wait: every event once and in order, whatever the sink's pace, and no way to miss an end."""

import asyncio
import random

import pytest

from reattach.store import Store
from reattach.tail import Hub, Slice, StreamEnded, deliver

from ..support import drive
from ..support.waiting import wait_until


class Recorder:
    """A sink that remembers, and wants no more after every `appetite` pieces until it is fed again."""

    def __init__(self, appetite: int = 1_000_000) -> None:
        self.seen: list[int] = []
        self.appetite, self.pieces = appetite, 0
        self.hungry = asyncio.Event()

    def take(self, piece: Slice) -> bool:
        assert self.pieces < self.appetite, "it was handed more than it wanted"
        self.seen += [frame.sequence for frame in piece.frames]
        self.pieces += 1
        return self.pieces < self.appetite

    async def drained(self) -> None:
        if self.pieces >= self.appetite:
            self.hungry.clear()
            await self.hungry.wait()

    def feed(self) -> None:
        self.pieces = 0
        self.hungry.set()


async def test_replay_live_and_the_end(store: Store, hub: Hub) -> None:
    """To the run's last event, then it returns."""
    hand = await drive.start(store)
    await hand.emit_many(300)
    sink = Recorder()
    task = asyncio.create_task(deliver(hub, hand.run_id, 0, sink))
    await wait_until(lambda: sink.seen[-1:] == [302], "the replay")
    for number in range(301, 321):
        await hand.emit(("step.done", {"n": number}))
    await hand.finish()
    await asyncio.wait_for(task, 5)
    assert sink.seen == list(range(1, 324))


async def test_a_finished_run_is_handed_over_at_once(store: Store, hub: Hub) -> None:
    """From any cursor, the last one included."""
    hand = await drive.start(store)
    await hand.finish()
    for after in range(4):
        sink = Recorder()
        await asyncio.wait_for(deliver(hub, hand.run_id, after, sink), 5)
        assert sink.seen == list(range(after + 1, 4))


async def test_a_full_sink_is_handed_nothing_and_falls_behind_safely(store: Store, hub: Hub) -> None:
    """Further than the ring reaches: what it missed comes from the store, without a gap."""
    hand = await drive.start(store)
    sink = Recorder(appetite=1)
    task = asyncio.create_task(deliver(hub, hand.run_id, 2, sink))
    await wait_until(lambda: hub.stats().followers, "it to follow")
    await hand.emit(("step.done", {}))
    await wait_until(lambda: sink.seen, "the first piece")
    await hand.emit_many(3000)
    await hand.finish()

    def done() -> bool:
        sink.feed()
        return task.done()

    await wait_until(done, "the end", timeout=20)
    await task
    assert sink.seen == list(range(3, 3005))


async def test_any_pace_sees_the_same(store: Store, hub: Hub) -> None:
    """Many sinks of every appetite, fed at random moments, while events come in batches."""
    hand = await drive.start(store)
    chance = random.Random(5)
    sinks = [Recorder(appetite=chance.choice((1, 2, 5, 1_000_000))) for _ in range(30)]
    tasks = [asyncio.create_task(deliver(hub, hand.run_id, chance.randrange(3), sink)) for sink in sinks]
    for first in range(1, 400, 20):
        await hand.emit_many(20, start=first, size=chance.choice((1, 7, 20)))
        for sink in chance.sample(sinks, 10):
            sink.feed()
    await hand.finish()

    def done() -> bool:
        for sink in sinks:
            sink.feed()
        return all(task.done() for task in tasks)

    await wait_until(done, "all of them to end")
    await asyncio.gather(*tasks)
    for sink in sinks:
        assert sink.seen == list(range(sink.seen[0], 404))


async def test_a_closing_hub_ends_it(store: Store, hub: Hub) -> None:
    """With its reason, also for who was waiting at the edge or full."""
    hand = await drive.start(store)
    idle, full = Recorder(), Recorder(appetite=1)
    tasks = [asyncio.create_task(deliver(hub, hand.run_id, after, sink)) for after, sink in ((2, idle), (0, full))]
    await wait_until(lambda: full.seen, "the full one to be full")
    await hub.close("drain")
    full.feed()
    for task in tasks:
        with pytest.raises(StreamEnded) as caught:
            await asyncio.wait_for(task, 5)
        assert caught.value.reason == "drain"


async def test_who_leaves_is_let_go(store: Store, hub: Hub) -> None:
    """Cancelled at the edge: no follower and no listener stays."""
    hand = await drive.start(store)
    task = asyncio.create_task(deliver(hub, hand.run_id, 2, Recorder()))
    await wait_until(lambda: hub.stats().followers, "it to follow")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert hub.stats().followers == 0
