"""Rings: bounded, without holes, and a position is never taken back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.store import Store
from reattach.tail import Framer
from reattach.tail.followed import Followed
from reattach.tail.frames import Frame
from reattach.tail.ring import MAX_FRAMES, SLICE_BYTES, SLICE_FRAMES, Ring
from reattach.tail.source import RunSource

from .viewers import events

FRAMER = Framer(run_id="run_07" + "0" * 24, release_id="r", scope="s")


def frames(first: int, last: int, size: int = 0) -> list[Frame]:
    """Frames of made-up events."""
    return [FRAMER.frame(event) for event in events(first, last, size=size)]


def walk(ring: Ring, position: int) -> list[int]:
    """Every sequence a viewer gets from a position on."""
    found: list[int] = []
    while (piece := ring.slice(position)) is not None:
        assert piece.first == position + 1
        found += [f.sequence for f in piece.frames]
        position = piece.last
    return found


def test_a_viewer_gets_what_comes_after_its_position() -> None:
    """From any place in the ring to its end."""
    ring = Ring(100, 1 << 20)
    ring.extend(frames(101, 120))
    assert walk(ring, 100) == list(range(101, 121))
    assert walk(ring, 117) == [118, 119, 120]
    assert walk(ring, 120) == []


def test_viewers_at_one_place_share_the_bytes() -> None:
    """Joined once, not once per viewer."""
    ring = Ring(0, 1 << 20)
    ring.extend(frames(1, 5))
    first, second = ring.slice(2), ring.slice(2)
    assert first is not None
    assert first is second
    assert first.sse is first.sse


def test_the_ring_is_bounded_by_count() -> None:
    """What falls off is the oldest, and viewers there are told to go to the store."""
    ring = Ring(0, 1 << 30)
    for first in range(1, 5 * MAX_FRAMES, 100):
        ring.extend(frames(first, first + 99))
        assert len(walk(ring, ring.base)) <= MAX_FRAMES
    assert ring.slice(ring.base - 1) is None
    assert walk(ring, ring.base) == list(range(ring.base + 1, ring.last + 1))


def test_the_ring_is_bounded_by_bytes() -> None:
    """Large events push older ones out sooner; the newest stays whatever its size."""
    ring = Ring(0, 50_000)
    for n in range(1, 30):
        ring.extend(frames(n, n, size=10_000))
        assert ring.size <= 50_000
    assert ring.base > 20
    ring.extend(frames(30, 30, size=90_000))
    assert (ring.base, ring.last) == (29, 30)
    assert walk(ring, 29) == [30]


def test_one_piece_is_small_enough_for_one_write() -> None:
    """A viewer that stalls holds one piece: bounded by bytes and by count, at least one event."""
    ring = Ring(0, 1 << 20)
    ring.extend(frames(1, 100, size=10_000))
    piece = ring.slice(0)
    assert piece is not None
    assert len(piece.sse) <= SLICE_BYTES
    ring.extend(frames(101, 101, size=SLICE_BYTES * 2))
    large = ring.slice(100)
    assert large is not None
    assert len(large) == 1
    small = Ring(0, 1 << 20)
    small.extend(frames(1, 1000))
    piece = small.slice(0)
    assert piece is not None
    assert len(piece) <= SLICE_FRAMES


def test_a_jump_ahead_begins_anew() -> None:
    """A log trimmed past the hub leaves no hole in the ring: it starts behind the jump, and older viewers go to the store."""
    ring = Ring(10, 1 << 20)
    ring.extend(frames(11, 20))
    ring.extend(frames(50, 55))
    assert (ring.base, ring.last) == (49, 55)
    assert ring.slice(20) is None
    assert walk(ring, 49) == list(range(50, 56))


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 80)), max_size=12), st.integers(1, 60), st.integers(200, 6000))
def test_what_pages_found_joins_the_ring_without_a_hole(offers: list[tuple[int, int]], start: int, limit: int) -> None:
    """Whatever pages are offered in whatever order, the ring is the events `base + 1` … `last`."""
    ring = Ring(start, limit)
    for first, length in offers:
        ring.prepend(frames(first, min(first + length, 100)))
        assert walk(ring, ring.base) == list(range(ring.base + 1, ring.last + 1))
        assert ring.size == sum(len(f.sse) for f in frames(ring.base + 1, ring.last))
        assert ring.size <= limit
    ring.extend(frames(start + 1, start + 40))
    assert walk(ring, ring.base) == list(range(ring.base + 1, start + 41))


@pytest.mark.parametrize("overlap", [0, 1, 5, 20])
async def test_overlapping_reads_are_taken_once(store: Store, overlap: int) -> None:
    """Two reads that answer the same question add each event once."""
    followed = Followed(RunSource(store, "run_07" + "0" * 24))
    followed.begin(last=0, terminal=False, limit=1 << 20, largest=1 << 18)
    assert followed.take(frames(1, 20))
    assert followed.take(frames(21 - overlap, 25))
    assert not followed.take(frames(10, 25))
    assert walk(followed.ring, 0) == list(range(1, 26))
