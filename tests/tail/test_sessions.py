"""Sessions are followed like runs: one stream over all their runs, without a gap, wherever it begins and whatever begins meanwhile."""

import asyncio
import json
import random
from typing import Any

import pytest

from reattach.core.errors import CursorExpired, FutureCursor, SessionNotFound
from reattach.core.run import Retention
from reattach.core.session import SessionRecord
from reattach.store import Store
from reattach.tail import Frame, Hub

from ..support.drive import Hand, start
from ..support.waiting import wait_until
from .viewers import Viewer

BRIEF = Retention(deltas_ms=150, events_ms=300, run_ms=60_000)


async def session(store: Store) -> SessionRecord:
    """The session of these tests."""
    return await store.sessions.find("dev", "s")


def told(frame: Frame) -> dict[str, Any]:
    """A frame's event."""
    return json.loads(frame.data)


def check_runs(viewer: Viewer, hands: list[Hand], last: dict[str, int]) -> None:
    """Each run's own sequences come in order, whole and once, and the frame's id is the session's."""
    seen: dict[str, list[int]] = {}
    for piece in viewer.slices:
        for frame in piece.frames:
            event = told(frame)
            seen.setdefault(event["run_id"], []).append(event["sequence"])
            assert frame.sse.startswith(f"id: {viewer.run_id}:{frame.sequence}\nevent: {event['type']}\ndata: ".encode())
            assert event["event_id"] == f"{event['run_id']}:{event['sequence']}"
    for hand in hands:
        assert seen[hand.run_id] == list(range(1, last[hand.run_id] + 1))


@pytest.mark.parametrize("direct", [False, True])
async def test_parallel_runs_in_one_stream(store: Store, hub: Hub, direct: bool) -> None:
    """Runs that write at the same time, and ones that begin later, are one contiguous stream, for who is there and for who comes late."""
    hands = [await start(store, session_id="s")]
    name = (await session(store)).name
    early = await Viewer(hub, name, direct=direct).reaches(2)
    hands += [await start(store, session_id="s") for _ in range(3)]
    await asyncio.gather(*(hand.emit_many(200, size=random.randint(1, 30)) for hand in hands))
    middle = Viewer(hub, name, direct=direct)
    hands.append(await start(store, session_id="s"))
    for hand in hands:
        await hand.finish()
    last = (await session(store)).sequence
    assert last == sum([(await store.runs.load(hand.run_id)).sequence for hand in hands])
    late = Viewer(hub, name, direct=direct)
    for viewer in (early, middle, late):
        await viewer.reaches(last)
        viewer.check(last)
        check_runs(viewer, hands, {hand.run_id: (await store.runs.load(hand.run_id)).sequence for hand in hands})
        assert not viewer.done, "a session never ends by itself"
        await viewer.leave()


async def test_resuming_anywhere(store: Store, hub: Hub) -> None:
    """After every place in it, also in the middle of a batch, the stream goes on with the next one."""
    hands = [await start(store, session_id="s") for _ in range(2)]
    for n in range(4):
        await hands[n % 2].emit(*(("step.done", {"n": k}) for k in range(n + 1)))
    await hands[0].finish()
    record = await session(store)
    for after in range(record.sequence + 1):
        viewer = Viewer(hub, record.name, after)
        await viewer.reaches(record.sequence)
        viewer.check(record.sequence)
        await viewer.leave()
    await hands[1].finish()


async def test_a_cursor_ahead_and_a_session_that_is_not_there(store: Store, hub: Hub) -> None:
    """Both are told, with what would work."""
    await start(store, session_id="s")
    record = await session(store)
    ahead = await Viewer(hub, record.name, record.sequence + 1).ends()
    assert isinstance(ahead.error, FutureCursor)
    assert ahead.error.extra == {"latest_sequence": 2, "state": "active", "snapshot": "/sessions/s"}
    nowhere = await Viewer(hub, store.keys.session_name("dev", "nobody")).ends()
    assert isinstance(nowhere.error, SessionNotFound)


async def test_what_is_kept_no_longer(store: Store, hub: Hub) -> None:
    """When a run's events expire, the session can be replayed from behind its last one on, to the event, and no earlier."""
    first = await start(store, session_id="s", retention=BRIEF)
    await first.emit_many(5)
    second = await start(store, session_id="s")
    await first.finish()
    await store.sweep.once()
    await second.emit_many(3)
    border = (await session(store)).sequence - 3
    assert (await session(store)).earliest_sequence == 1

    async def lapsed() -> bool:
        return (await session(store)).earliest_sequence > 1

    await wait_until(lapsed, "the first run's events to expire")
    record = await session(store)
    assert record.earliest_sequence == border + 1
    for _ in range(2):
        viewer = await Viewer(hub, record.name, border).reaches(record.sequence)
        viewer.check(record.sequence)
        await viewer.leave()
        for after in (border - 1, 0):
            early = await Viewer(hub, record.name, after).ends()
            assert isinstance(early.error, CursorExpired)
            assert early.error.extra["earliest_sequence"] == border + 1
            assert early.error.extra["resume_after"] == f"{record.name}:{record.sequence}"
            assert early.error.extra["snapshot"] == "/sessions/s"
        # Again when the sweep has forgotten what nobody can replay: nothing else changes.
        await store.sweep.once()
    entries = await store.door.call("XLEN", store.keys.session_log(record.name))
    assert entries == 1, "the head of the session's log goes with the events it names"
    assert (await session(store)).earliest_sequence == border + 1
    await second.finish()


async def test_deltas_that_nothing_covers(store: Store, hub: Hub) -> None:
    """A run that stopped in the middle of a message cannot be replayed without its deltas: the border is behind the last of them."""
    hand = await start(store, session_id="s", retention=Retention(deltas_ms=150, events_ms=60_000, run_ms=60_000))
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}), ("message.delta", {"message_id": "m", "text": "Hel"}))
    await hand.emit(("step.done", {}), ("message.delta", {"message_id": "m", "text": "lo"}), ("step.done", {}))
    await hand.finish("failed")
    await store.sweep.once()

    async def lapsed() -> bool:
        return (await session(store)).earliest_sequence > 1

    await wait_until(lapsed, "the deltas to expire")
    record = await session(store)
    assert record.earliest_sequence == 7
    viewer = await Viewer(hub, record.name, 6).reaches(record.sequence)
    viewer.check(record.sequence)
    await viewer.leave()
    assert isinstance((await Viewer(hub, record.name, 5).ends()).error, CursorExpired)


async def test_covered_deltas_may_be_missing(store: Store, hub: Hub) -> None:
    """Of a message that was completed its deltas go first; nothing else does, and what is left keeps its place."""
    hand = await start(store, session_id="s", retention=Retention(deltas_ms=150, events_ms=60_000, run_ms=60_000))
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}))
    for _ in range(100):
        await hand.emit(("message.delta", {"message_id": "m", "text": "x"}))
    await hand.emit(("message.completed", {"message_id": "m", "role": "assistant", "content": []}))
    await hand.finish()
    await store.sweep.once()
    await wait_until(lambda: gone(store, store.keys.log(hand.run_id)), "the deltas to expire")
    record = await session(store)
    assert record.earliest_sequence == 1
    viewer = await Viewer(hub, record.name).reaches(record.sequence)
    assert viewer.sequences == [1, 2, 3, 104, 105]
    await viewer.leave()


async def gone(store: Store, key: str) -> bool:
    """Whether a key expired."""
    return not await store.door.call("EXISTS", key)


@pytest.mark.leaves_wreckage("the log is cut by hand")
async def test_damage_is_not_passed_over(store: Store, hub: Hub) -> None:
    """An event that should still be there and is not is told as expired, not skipped."""
    hand = await start(store, session_id="s")
    await hand.emit_many(6, size=2)
    await store.door.call("XDEL", store.keys.log(hand.run_id), "5-0")
    await store.door.call("XDEL", store.keys.audit(hand.run_id), "5-0")
    record = await session(store)
    viewer = await Viewer(hub, record.name).ends()
    assert isinstance(viewer.error, CursorExpired) and viewer.error.extra["earliest_sequence"] == 6
    whole = await Viewer(hub, record.name, 5).reaches(8)
    whole.check(8)
    await whole.leave()
