"""The log of a live run stays small by itself: what later events say too goes, and nothing else."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest

from reattach.core.cursor import judge
from reattach.core.event import DELTA_TYPES, Event
from reattach.core.fold import Fold
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.store.scripts import Reply, Script
from reattach.store.trimming import Trimming

from ..support.drive import Hand, claim, create, start
from .hands import call, receipt

KEEP = 20
Said = tuple[str, dict[str, Any]]


@pytest.fixture
async def small(settings: Settings, task_guard: None) -> AsyncIterator[Store]:
    """A store that keeps few events of live runs."""
    opened = await Store.open(msgspec.structs.replace(settings, live_events=KEEP))
    yield opened
    await opened.close()


def started(name: str) -> Said:
    """The beginning of a message."""
    return ("message.started", {"message_id": name, "role": "assistant"})


def deltas(name: str, count: int, text: str = "w ") -> list[Said]:
    """Pieces of a message."""
    return [("message.delta", {"message_id": name, "text": text}) for _ in range(count)]


def completed(name: str, text: str) -> Said:
    """The end of a message."""
    return ("message.completed", {"message_id": name, "role": "assistant", "content": [{"type": "text", "text": text}]})


async def size(store: Store, run_id: str) -> int:
    """Entries in the log."""
    return int(await store.door.call("XLEN", store.keys.log(run_id)))


async def texts(store: Store, run_id: str) -> list[tuple[str, str, str]]:
    """Id, status and text of every message, as a process shows them that has folded nothing yet."""
    fresh = await Store.open(store.settings)
    try:
        snapshot = await fresh.runs.snapshot(run_id)
    finally:
        await fresh.close()
    assert snapshot.earliest_sequence == 1
    return [(m.message_id, m.status, "".join(p["text"] for p in json.loads(bytes(m.content)))) for m in snapshot.messages]


async def replay(store: Store, run_id: str, cursor: int = 0) -> list[Event]:
    """Everything after a cursor that is still kept, read in pages."""
    found: list[Event] = []
    while page := await store.events.after(run_id, found[-1].sequence if found else cursor, 50):
        found += page
    return found


async def test_a_long_run_is_shortened_by_any_sweep(small: Store) -> None:
    """Nobody asks for it: a few hundred events later the head of the log is gone, and only covered deltas are."""
    hand = await start(small)
    for name in ("m1", "m2", "m3"):
        await hand.emit(started(name), *deltas(name, 120), completed(name, "w " * 120))
        await small.sweep.once()
    await hand.emit(("step.done", {}))
    assert await size(small, hand.run_id) < 2 * KEEP + 256
    kept = await replay(small, hand.run_id)
    first = (await small.runs.read(hand.run_id)).log_first or 0
    assert first > 120 and [e.sequence for e in kept if e.sequence >= first] == list(range(first, 370))
    assert [e.type for e in kept if e.sequence < first].count("message.completed") == 2
    assert not [e for e in kept if e.sequence < first and e.type in DELTA_TYPES]
    assert await texts(small, hand.run_id) == [(name, "completed", "w " * 120) for name in ("m1", "m2", "m3")]


async def test_a_run_that_only_calls_tools_is_shortened_too(small: Store) -> None:
    """Its events are all in the audit stream: a replay has every one."""
    hand = await start(small)
    for n in range(130):
        await small.work.intend(hand.lease, call(f"call_{n}"))
        await small.work.commit(hand.lease, receipt(f"call_{n}"))
    await small.sweep.once()
    assert await size(small, hand.run_id) < 2 * KEEP + 64
    assert [e.sequence for e in await replay(small, hand.run_id)] == list(range(1, 263))
    await hand.finish()


async def test_the_newest_events_stay(small: Store) -> None:
    """A client that comes back soon gets its deltas, covered or not."""
    hand = await start(small)
    await hand.emit(started("m"), *deltas("m", 300), completed("m", "w " * 300))
    await small.sweep.once()
    assert await size(small, hand.run_id) == KEEP
    assert [e.sequence for e in await replay(small, hand.run_id, 304 - KEEP)] == list(range(305 - KEEP, 305))


async def test_a_short_run_is_left_alone(small: Store) -> None:
    """Shortening costs a fold: not before there is a good piece to let go."""
    hand = await start(small)
    await hand.emit(*deltas("m", 60), completed("m", "w " * 60))
    await Trimming(small.door, small.keys, small.checkpoints, small.settings).shorten(hand.run_id)
    assert await size(small, hand.run_id) == 63


async def test_a_message_that_its_worker_left_open_keeps_nothing(small: Store) -> None:
    """Its text is said once more, by the service: without that no log of a run that lost a worker could ever be shortened again."""
    hand = await start(small)
    await hand.emit(started("m"), *deltas("m", 50))
    await small.work.release(hand.lease, cause="drain")
    hand = await claim(small)
    await hand.emit(started("n"), *deltas("n", 250), completed("n", "w " * 250))
    await small.sweep.once()
    assert await size(small, hand.run_id) == KEEP
    added = [e for e in await replay(small, hand.run_id) if b'"interrupted"' in e.payload]
    assert [(e.sequence, e.type) for e in added] == [(308, "message.completed")]
    assert await texts(small, hand.run_id) == [("m", "interrupted", "w " * 50), ("n", "completed", "w " * 250)]
    await hand.emit(("step.done", {}))
    await hand.finish()


async def test_a_worker_that_writes_no_checkpoints_is_helped(small: Store) -> None:
    """A text in many pieces gets its checkpoint, and goes on behind it."""
    hand = await start(small)
    await hand.emit(started("m"), *deltas("m", 255))
    await small.sweep.once()
    assert await size(small, hand.run_id) == KEEP
    assert [e.type for e in await replay(small, hand.run_id)][-1] == "message.checkpoint"
    await hand.emit(*deltas("m", 1, "end"))
    assert await texts(small, hand.run_id) == [("m", "streaming", "w " * 255 + "end")]
    await small.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    await hand.finish("cancelled")


async def test_a_text_that_no_event_can_carry_stays(settings: Settings) -> None:
    """Larger than a payload may be: its deltas are all there is, and they stay."""
    store = await Store.open(msgspec.structs.replace(settings, live_events=KEEP, max_payload=256))
    hand = await start(store)
    await hand.emit(started("m"), *deltas("m", 300, "x" * 30))
    await store.sweep.once()
    left = await size(store, hand.run_id)
    await store.close()
    assert left == 300, "all that is not covered"


async def test_the_worker_may_be_faster(small: Store) -> None:
    """What is said again is true at one sequence: where the run has gone on meanwhile, it is looked at again."""
    hand = await start(small)
    await hand.emit(started("m"), *deltas("m", 255))
    run, begun = small.door.run, 0

    async def overtaken(script: Script, keys: Mapping[str, Any], *args: Any) -> Reply:
        nonlocal begun
        if script.name == "cover":
            begun += 1
            if begun == 1:
                await hand.emit(*deltas("m", 3, "more "))
        return await run(script, keys, *args)

    small.door.run = overtaken
    await small.sweep.once()
    small.door.run = run
    assert begun == 2
    said = [e for e in await replay(small, hand.run_id) if e.type == "message.checkpoint"]
    assert [json.loads(e.payload)["text"] for e in said] == ["w " * 255 + "more " * 3]
    assert await texts(small, hand.run_id) == [("m", "streaming", "w " * 255 + "more " * 3)]


@pytest.mark.parametrize("what", ["lost reply", "end"])
async def test_saying_it_again_is_done_once_or_not_at_all(small: Store, what: str) -> None:
    """The reply is lost and the command sent twice; or the run ends right before it. Nothing is doubled, nothing follows the end."""
    hand = await start(small)
    await hand.emit(started("m"), *deltas("m", 255))
    submit, sent = small.door.call, 0
    sha = small.sweep._scripts["cover"].sha  # pyright: ignore[reportPrivateUsage]

    async def disturbed(*command: Any) -> Any:
        nonlocal sent
        if command[:2] == ("EVALSHA", sha) and (sent := sent + 1) == 1:
            await (submit(*command) if what == "lost reply" else hand.finish())
        return await submit(*command)

    await small.check_scripts()
    small.door.call = disturbed
    await small.sweep.once()
    small.door.call = submit
    assert sent == 1
    kinds = [e.type for e in await replay(small, hand.run_id)]
    if what == "lost reply":
        assert kinds.count("message.checkpoint") == 1 and await size(small, hand.run_id) == KEEP
        assert await texts(small, hand.run_id) == [("m", "streaming", "w " * 255)]
    else:
        assert "message.checkpoint" not in kinds and kinds[-1] == "run.succeeded"
        await small.sweep.once()


async def test_many_sweepers_at_once(small: Store) -> None:
    """Ten processes serve the same run while its worker writes: the log is whole from some point on, and says what was written."""
    hand = await start(small)
    for n in range(6):
        await hand.emit(started(f"m{n}"), *deltas(f"m{n}", 70))
        trimming = Trimming(small.door, small.keys, small.checkpoints, small.settings)
        shortening = [trimming.shorten(hand.run_id) for _ in range(10)]
        await asyncio.gather(hand.emit(*deltas(f"m{n}", 3), completed(f"m{n}", "w " * 73)), *shortening)
    await Trimming(small.door, small.keys, small.checkpoints, small.settings).shorten(hand.run_id)
    assert await size(small, hand.run_id) < 2 * KEEP + 64
    assert [text for _, _, text in await texts(small, hand.run_id)] == ["w " * 73] * 6


class Story:
    """A run by chance, and everything that was ever in its log."""

    def __init__(self, store: Store, hand: Hand, seed: int) -> None:
        self.store, self.hand, self.random = store, hand, random.Random(seed)
        self.whole: dict[int, Event] = {}

    async def grow(self) -> None:
        """Some more events of few messages, mixed with events that no message has."""
        said: list[Said] = []
        for _ in range(self.random.randint(1, 40)):
            name = self.random.choice("abc")
            kind = self.random.choices(("delta", "started", "checkpoint", "completed", "step"), (12, 1, 2, 1, 1))[0]
            match kind:
                case "delta":
                    said += deltas(name, 1, self.random.choice(("x", "yz ", "")))
                case "started":
                    said.append(started(name))
                case "checkpoint":
                    said.append(("message.checkpoint", {"message_id": name, "text": "so far "}))
                case "completed":
                    said.append(completed(name, "all of it"))
                case _:
                    said.append((self.random.choice(("step.done", "tool.progress")), {}))
        await self.hand.emit(*said)
        await self.remember()

    async def remember(self) -> None:
        """Keep what is new, before anybody trims it."""
        for event in await replay(self.store, self.hand.run_id, max(self.whole, default=0)):
            self.whole[event.sequence] = event

    async def trim(self) -> None:
        """Store a fold, or not, and let go of some of what may go; or let the service decide."""
        if self.random.random() < 0.3:
            await Trimming(self.store.door, self.store.keys, self.store.checkpoints, self.store.settings).shorten(self.hand.run_id)
            await self.remember()
            return
        folded = await self.store.checkpoints.fold(self.hand.run_id)
        if self.random.random() < 0.8:
            await self.store.checkpoints.store(self.hand.run_id, folded.fold)
        await self.store.checkpoints.trim(self.hand.run_id, self.random.randint(0, folded.fold.sequence + 5))

    async def check(self) -> None:
        """From any cursor, what is left folds to the snapshot; only deltas below the log's head are missing."""
        read = await self.store.runs.read(self.hand.run_id)
        expected = Fold()
        for event in self.whole.values():
            expected.apply(event)
        assert read.bounds.earliest_sequence == 1 and expected.sequence == read.record.sequence
        shown = expected.view(read.record, earliest_sequence=1)
        first = read.log_first or 0
        for cursor in {0, first - 1, first, *(self.random.randint(0, max(self.whole)) for _ in range(3))}:
            judge(cursor, read.bounds, run_id=self.hand.run_id)
            left = await replay(self.store, self.hand.run_id, cursor)
            missing = set(range(cursor + 1, max(self.whole) + 1)) - {e.sequence for e in left}
            assert all(n < first and self.whole[n].type in DELTA_TYPES for n in missing)
            assert all(event == self.whole[event.sequence] for event in left)
            replayed = Fold()
            for event in [*(e for n, e in self.whole.items() if n <= cursor), *left]:
                replayed.apply(event)
            assert replayed.view(read.record, earliest_sequence=1) == shown


@pytest.mark.parametrize("seed", range(6))
async def test_any_trim_point_leaves_what_a_fold_needs(small: Store, seed: int) -> None:
    """Logs by chance, trimmed at any point that is offered, again and again: bounds are exact, and every cursor leads to the snapshot."""
    story = Story(small, await start(small), seed)
    for _ in range(8):
        await story.grow()
        await story.trim()
        await story.check()
    await story.hand.finish()


async def test_a_run_that_ends_takes_its_timer_along(small: Store) -> None:
    """Nothing is left to be served, and its log gets its expiry from the end."""
    hand = await start(small)
    await hand.emit(*deltas("m", 256))
    timers = small.keys.timers(hand.run_id[4:6])
    assert await small.door.call("ZSCORE", timers, f"trim:{hand.run_id}") is not None
    await hand.finish()
    assert await small.door.call("ZSCORE", timers, f"trim:{hand.run_id}") is None


async def test_a_timer_of_a_run_that_is_gone(small: Store) -> None:
    """It is struck, and keeps nobody else waiting."""
    run_id = await create(small)
    await small.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    timers = small.keys.timers("00")
    await small.door.call("ZADD", timers, 1, f"trim:run_00{'z' * 24}")
    await small.sweep.once()
    assert await small.door.call("ZSCORE", timers, f"trim:run_00{'z' * 24}") is None


async def test_a_fold_of_large_events_is_read_in_pieces(store: Store) -> None:
    """No answer is put together in one go that would keep everybody else waiting; the snapshot is the same."""
    hand = await start(store)
    for n in range(12):
        await hand.emit(*(("message.delta", {"message_id": "m", "text": f"{n:02d}" + "x" * 30_000}) for _ in range(10)))
    run, sizes = store.door.run, list[int]()

    async def measured(script: Script, keys: Mapping[str, Any], *args: Any) -> Reply:
        reply = await run(script, keys, *args)
        if script.name == "read":
            sizes.append(sum(len(entry[1][5]) for entry in reply.values[4]))
        return reply

    store.door.run = measured
    snapshot = await store.runs.snapshot(hand.run_id)
    store.door.run = run
    assert len(sizes) == 2 and max(sizes) < 64 * 31_000
    assert len(bytes(snapshot.messages[0].content)) > 120 * 30_000
