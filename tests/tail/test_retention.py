"""Logs that shrink under their viewers: covered deltas may go, anything else that is missing is said, and nothing is jumped over."""

import asyncio
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reattach.core.errors import CursorExpired
from reattach.core.fold import Fold
from reattach.core.run import Retention
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.store.trimming import Trimming
from reattach.tail import Hub

from ..support.drive import Hand, start
from ..support.waiting import wait_until
from .viewers import Gate, Viewer, kill_clients

if TYPE_CHECKING:
    import redis


async def _message(hand: Hand, name: str, words: int, *, complete: bool = True, batch: int = 20) -> None:
    """A message in deltas; completed, or left open."""
    await hand.emit(("message.started", {"message_id": name, "role": "assistant"}))
    for begin in range(0, words, batch):
        drafts = [("message.delta", {"message_id": name, "text": f"w{n} "}) for n in range(begin, min(words, begin + batch))]
        await hand.emit(*drafts)
    if complete:
        text = "".join(f"w{n} " for n in range(words))
        await hand.emit(
            ("message.completed", {"message_id": name, "role": "assistant", "content": [{"type": "text", "text": text}]}),
        )


async def _trim(store: Store, run_id: str) -> int:
    """Store a fold of now and let go of all it covers; the first sequence that is left in the log."""
    folded = await store.checkpoints.fold(run_id)
    await store.checkpoints.store(run_id, folded.fold)
    return await store.checkpoints.trim(run_id, folded.fold.covered)


async def _replayed(store: Store, viewer: Viewer, cursor: int) -> Any:
    """The snapshot that follows from a fold of the first events and of what the viewer was given after them."""
    fold = Fold()
    # A client that reads from a cursor holds what was before it.
    for event in ORIGINAL[viewer.run_id]:
        if event.sequence <= cursor or event.sequence in set(viewer.sequences):
            fold.apply(event)
    record = await store.runs.load(viewer.run_id)
    return fold.view(record, earliest_sequence=1)


ORIGINAL: dict[str, list[Any]] = {}
"""Logs as they were before anything was trimmed."""


async def _remember(store: Store, run_id: str) -> None:
    ORIGINAL[run_id] = await store.events.after(run_id, 0, 10_000)


@pytest.mark.parametrize("cursor", [0, 1, 5, 60, 125, 126, 127, 200, 247])
async def test_a_live_log_that_was_trimmed(store: Store, hub: Hub, cursor: int) -> None:
    """From any cursor: what is left folds to the same snapshot, every sequence at most once, and then it is live without a hole."""
    hand = await start(store)
    await _message(hand, "m1", 120)
    await hand.emit(("tool.progress", {"done": 1}), ("step.done", {}))
    await _message(hand, "m2", 120, complete=False)
    await _remember(store, hand.run_id)
    first = await _trim(store, hand.run_id)
    assert first > 120
    viewer = await Viewer(hub, hand.run_id, cursor).reaches(247)
    assert viewer.sequences == sorted(set(viewer.sequences))
    assert (await _replayed(store, viewer, cursor)) == fold_of_all(hand.run_id, await store.runs.load(hand.run_id))
    await hand.emit_many(5)
    await viewer.reaches(252)
    assert viewer.sequences[-5:] == list(range(248, 253))
    assert all(not piece.sparse for piece in viewer.slices if piece.first >= first)
    await viewer.leave()


def fold_of_all(run_id: str, record: Any) -> Any:
    """The snapshot of a log as it was."""
    fold = Fold()
    for event in ORIGINAL[run_id]:
        fold.apply(event)
    return fold.view(record, earliest_sequence=1)


async def test_a_trim_under_a_slow_viewer(store: Store, hub: Hub) -> None:
    """A viewer in the middle of a replay loses the deltas it had still to come, and nothing else; the others notice nothing."""
    hand = await start(store)
    await _message(hand, "m1", 400, batch=100)
    await _remember(store, hand.run_id)
    live = await Viewer(hub, hand.run_id, 403).reaches(404)
    pages = Gate(store, "after")
    pages.shut()
    slow = Viewer(hub, hand.run_id)
    await pages.holds()
    pages.release()
    await pages.holds()
    assert slow.position == 64
    await _trim(store, hand.run_id)
    await hand.emit_many(3)
    pages.open()
    await slow.reaches(407)
    await live.reaches(407)
    live.check(407)
    assert slow.sequences == sorted(set(slow.sequences))
    assert set(range(1, 407 + 1)) - set(slow.sequences) <= {e.sequence for e in ORIGINAL[hand.run_id] if e.type == "message.delta"}
    assert {404, 405, 406, 407} <= set(slow.sequences)
    await slow.leave()
    await live.leave()


@pytest.mark.parametrize("more", [0, 2])
async def test_a_trim_past_the_hub(store: Store, hub: Hub, more: int) -> None:
    """The log is trimmed beyond what the hub has read, perhaps up to its very end: viewers go through the store, none is left waiting."""
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    tail = Gate(store, "tail")
    other = await start(store, "other")
    watching = await Viewer(hub, other.run_id).reaches(2)
    tail.shut()
    await other.emit_many(1)
    await tail.holds()
    await _message(hand, "m1", 60)
    assert await _trim(store, hand.run_id) == 64, "the newest event stays in the log"
    await hand.emit_many(more)
    tail.open()
    await viewer.reaches(64 + more)
    assert viewer.sequences == [1, 2, 3, *range(64, 65 + more)]
    assert any(piece.sparse for piece in viewer.slices)
    await viewer.leave()
    await watching.leave()


async def _ended(store: Store, admin: "redis.Redis", *, open_message: bool) -> tuple[str, int]:
    """A run that ended and whose deltas' time has passed; its id and last sequence."""
    hand = await start(store, retention=Retention(deltas_ms=3_600_000))
    await _message(hand, "m1", 30)
    if open_message:
        await _message(hand, "m2", 30, complete=False)
    await hand.emit_many(40)
    last = (await hand.finish("failed" if open_message else "succeeded")).sequence
    await _remember(store, hand.run_id)
    await store.sweep.once()
    assert (await store.runs.load(hand.run_id)).sealed
    admin.delete(store.keys.log(hand.run_id))
    return hand.run_id, last


async def test_an_ended_run_whose_deltas_are_gone(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """The audit stream carries the rest; the viewer gets all of it from any cursor, and the stream ends."""
    run_id, last = await _ended(store, admin, open_message=False)
    kept = [e.sequence for e in ORIGINAL[run_id] if e.type != "message.delta"]
    for cursor in (0, 1, 2, 20, 33, last - 1):
        viewer = await Viewer(hub, run_id, cursor).ends()
        assert viewer.error is None
        assert viewer.sequences == [n for n in kept if n > cursor]
        assert viewer.slices[-1].terminal


async def test_a_text_that_only_its_deltas_carried(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """A message that was never completed is gone with its deltas: cursors before its end expired, later ones work."""
    run_id, last = await _ended(store, admin, open_message=True)
    floor = (await store.runs.read(run_id)).bounds.earliest_sequence
    assert floor == 66
    for cursor in (0, 30, floor - 2):
        viewer = await Viewer(hub, run_id, cursor).ends()
        assert isinstance(viewer.error, CursorExpired)
        assert viewer.error.extra["earliest_sequence"] == floor
        assert viewer.error.extra["latest_sequence"] == last
        assert viewer.error.extra["resume_after"] == f"{run_id}:{last}"
        assert viewer.slices == []
    (await Viewer(hub, run_id, floor - 1).ends()).check(last)


async def test_a_log_that_expires_under_its_viewer(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """A slow viewer of an ended run is overtaken by retention: it is told so instead of being led past what it missed."""
    hand = await start(store)
    await _message(hand, "m1", 400, complete=False, batch=100)
    await hand.finish("failed")
    await store.sweep.once()
    pages = Gate(store, "after")
    pages.shut()
    viewer = Viewer(hub, hand.run_id)
    await pages.holds()
    admin.delete(store.keys.log(hand.run_id))
    pages.open()
    await viewer.ends()
    assert isinstance(viewer.error, CursorExpired)
    assert viewer.sequences == list(range(1, 65)), "it was given what was read in time"


async def test_a_run_whose_events_are_all_gone(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """Nothing can be replayed any more; only the end of the run is a cursor that works."""
    hand = await start(store)
    await hand.emit_many(10)
    last = (await hand.finish()).sequence
    await store.sweep.once()
    admin.delete(store.keys.log(hand.run_id), store.keys.audit(hand.run_id))
    viewer = await Viewer(hub, hand.run_id).ends()
    assert isinstance(viewer.error, CursorExpired)
    assert viewer.error.extra["earliest_sequence"] == last + 1
    assert (await Viewer(hub, hand.run_id, last).ends()).error is None


@pytest.mark.leaves_wreckage("an entry is taken out of the middle of the log")
@pytest.mark.parametrize("inside", [3, 65, 100])
async def test_damage_is_not_taken_for_retention(store: Store, hub: Hub, admin: "redis.Redis", inside: int) -> None:
    """An entry that is missing where the log should be whole is a hole that nothing fills: no viewer is led over it."""
    hand = await start(store)
    await hand.emit_many(130)
    admin.xdel(store.keys.log(hand.run_id), f"{inside}-0")
    viewer = await Viewer(hub, hand.run_id).ends()
    assert isinstance(viewer.error, CursorExpired)
    assert viewer.error.extra["earliest_sequence"] == inside + 1
    assert viewer.position < inside
    whole = await Viewer(hub, hand.run_id, inside).reaches(132)
    whole.check(132)
    await whole.leave()


async def test_news_between_the_two_reads_of_a_page(store: Store) -> None:
    """An empty log, then the audit stream: what is appended in between has its deltas in the log only, and is not skipped over."""
    hand = await start(store)
    call = store.door.call
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(*command: Any) -> Any:
        reply = await call(*command)
        if command[0] == "XRANGE" and command[1] == store.keys.log(hand.run_id) and not begun.is_set():
            begun.set()
            await go_on.wait()
        return reply

    store.door.call = slow
    reading = asyncio.create_task(store.events.after(hand.run_id, 2, 100))
    await begun.wait()
    await _message(hand, "m1", 3, complete=False)
    await hand.emit_many(2)
    go_on.set()
    assert [e.sequence for e in await reading] == [3, 4, 5, 6, 7, 8]
    store.door.call = call


async def test_a_log_that_went_while_the_hub_was_away(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """The run ended and its log expired behind the hub's back: no read of the log tells, but its viewers get the rest and the end."""
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    tail = Gate(store, "tail")
    other = await start(store, "other")
    watching = await Viewer(hub, other.run_id).reaches(2)
    tail.shut()
    await other.emit_many(1)
    await tail.holds()
    await _message(hand, "m1", 30)
    last = (await hand.finish()).sequence
    await store.sweep.once()
    admin.delete(store.keys.log(hand.run_id))
    tail.open()
    await asyncio.to_thread(kill_clients, admin)
    await viewer.ends()
    assert viewer.error is None
    assert viewer.sequences == [1, 2, 3, last - 1, last]
    await watching.leave()


async def test_the_ring_keeps_what_the_log_let_go(store: Store, hub: Hub) -> None:
    """A viewer that keeps up is served from memory: a trim of the log changes nothing for it."""
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    await _message(hand, "m1", 50)
    await viewer.reaches(54)
    await _trim(store, hand.run_id)
    again = await Viewer(hub, hand.run_id, 10).reaches(54)
    again.check(54)
    last = (await hand.finish()).sequence
    for each in (viewer, again):
        (await each.ends()).check(last)
    await wait_until(lambda: hub.stats().followers == 0, "everybody to leave")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_viewers_at_any_pace_of_a_log_that_is_kept_small(settings: Settings, seed: int) -> None:
    """The service trims while viewers start anywhere, stall and go on: each misses covered deltas at most, and folds to the snapshot."""
    small = await Store.open(msgspec.structs.replace(settings, live_events=20))
    hub = Hub(small, small.settings)
    await hub.start()
    chance = random.Random(seed)
    trimming = Trimming(small.door, small.keys, small.checkpoints, small.settings)
    hand = await start(small)
    ORIGINAL[hand.run_id] = whole = list[Any]()
    viewers = [Viewer(hub, hand.run_id, direct=True)]
    for n in range(12):
        await _message(hand, f"m{n}", 40, complete=n % 3 != 2)
        whole += await small.events.after(hand.run_id, len(whole), 1000)
        for viewer in viewers:
            viewer.pause(chance.random() < 0.5)
        viewers.append(Viewer(hub, hand.run_id, chance.randint(0, len(whole)), direct=True))
        await trimming.shorten(hand.run_id)
        whole += await small.events.after(hand.run_id, len(whole), 1000)
    last = (await hand.finish()).sequence
    whole += await small.events.after(hand.run_id, len(whole), 1000)
    assert [event.sequence for event in whole] == list(range(1, last + 1))
    assert (await small.runs.read(hand.run_id)).log_first != 1
    expected = fold_of_all(hand.run_id, await small.runs.load(hand.run_id))
    for viewer in viewers:
        viewer.pause(False)
        await viewer.ends()
        assert viewer.error is None and viewer.sequences == sorted(set(viewer.sequences))
        missing = set(range(viewer.after + 1, last + 1)) - set(viewer.sequences)
        assert missing <= {event.sequence for event in whole if event.type == "message.delta"}
        assert (await _replayed(small, viewer, viewer.after)) == expected
    await hub.close()
    await small.close()
