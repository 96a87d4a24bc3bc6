"""Viewers that come, go and come back at random while events fly. A seed decides; every viewer's story is checked."""

import asyncio
import random

import pytest

from reattach.store import Store
from reattach.tail import Hub
from reattach.tail.roster import Roster

from ..support.drive import Hand, start
from ..support.waiting import wait_until
from .viewers import Viewer

EVENTS = 400


async def _write(hand: Hand, chance: random.Random) -> int:
    left = EVENTS
    while left:
        size = min(left, chance.choice([1, 1, 2, 5, 20, 60]))
        await hand.emit_many(size, kind=chance.choice(["step.done", "message.delta"]))
        left -= size
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
    return (await hand.finish()).sequence


async def _live(hub: Hub, run_id: str, chance: random.Random, direct: bool) -> list[int]:
    """One client's life: it resumes where it was until it has seen the end. All that it was given."""
    cursor = 0
    seen: list[int] = []
    while True:
        viewer = Viewer(hub, run_id, cursor, direct=direct)
        for _ in range(chance.choice([1, 3, 10, 40, 10_000])):
            if viewer.done:
                break
            await asyncio.sleep(0)
        if not viewer.done and chance.random() < 0.3:
            await viewer.ends()
        await viewer.leave()
        assert viewer.error is None, repr(viewer.error)
        seen += viewer.sequences
        cursor = viewer.position
        if viewer.slices and viewer.slices[-1].terminal:
            return seen


async def _everybody(store: Store, hub: Hub, chance: random.Random) -> None:
    hands = [await start(store, f"agent{n}") for n in range(2)]
    writers = [asyncio.create_task(_write(hand, random.Random(chance.random()))) for hand in hands]
    viewers = [
        (hand, asyncio.create_task(_live(hub, hand.run_id, random.Random(chance.random()), direct=bool(n % 2))))
        for hand in hands
        for n in range(16)
    ]
    last = {hand.run_id: await writer for hand, writer in zip(hands, writers, strict=True)}
    for hand, task in viewers:
        assert await asyncio.wait_for(task, 20) == list(range(1, last[hand.run_id] + 1))


@pytest.mark.parametrize("seed", range(6))
async def test_everybody_gets_everything_once(store: Store, hub: Hub, seed: int) -> None:
    """Viewers, half of them written to by the hub, join, leave and resume at random: each is given exactly 1 … n over its life."""
    await _everybody(store, hub, random.Random(seed))


def small(_roster: Roster) -> int:
    """A ring of a few events."""
    return 2000


@pytest.mark.parametrize("seed", range(4))
async def test_the_same_across_all_borders(store: Store, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Where rings are tiny, no page is kept and runs are forgotten at once, viewers go between ring and store all the time."""
    monkeypatch.setattr(Roster, "ring_limit", small)
    hub = Hub(store, store.settings, linger=0)
    monkeypatch.setattr(hub.pages, "_limit", 0)
    await hub.start()
    await _everybody(store, hub, random.Random(seed))
    await wait_until(lambda: hub.stats().runs == 0, "every run to be forgotten")
    await hub.close()
