"""The newest frames of one run: what viewers that keep up are served from.

A ring has no holes: it is always the events `base + 1` … `last`. Whoever is older than `base` reads pages from the store. It is bounded
by count and by bytes, except that the newest frame stays however large it is.
"""

from collections.abc import Sequence
from typing import Final

from .frames import Frame, Slice

MAX_FRAMES: Final = 1024
SLICE_BYTES: Final = 64 * 1024
"""About what a transport takes before it asks to wait: a viewer that stalls holds no more than one such piece."""

SLICE_FRAMES: Final = 512
_KEPT_SLICES: Final = 4


def cut(frames: Sequence[Frame], start: int, position: int) -> Slice | None:
    """The next piece of `frames` from an index on, at most `SLICE_BYTES` large unless one frame alone is; None at the end.

    Args:
        frames: In order.
        start: Index of the first frame behind `position`.
        position: Where the viewer is.
    """
    end, size, most = start, 0, min(len(frames), start + SLICE_FRAMES)
    while end < most:
        size += len(frames[end].sse)
        if size > SLICE_BYTES and end > start:
            break
        end += 1
    return Slice(frames[start:end], position) if end > start else None


class Ring:
    """Frames `base + 1` … `last` of one run.

    Attributes:
        base: Sequence before the oldest frame that is kept.
        last: Sequence of the newest frame, or of the newest event known when nothing is kept.
        size: Bytes of the frames.
        limit: Most bytes to keep.
    """

    __slots__ = ("_frames", "_slices", "base", "last", "limit", "size")

    def __init__(self, last: int, limit: int) -> None:
        """An empty ring at the place of the newest event."""
        self.base = self.last = last
        self.size, self.limit = 0, limit
        self._frames: list[Frame] = []
        self._slices: dict[int, Slice] = {}

    @property
    def newest(self) -> Frame | None:
        """The frame at `last`; None when nothing is kept."""
        return self._frames[-1] if self._frames else None

    def extend(self, frames: Sequence[Frame]) -> None:
        """Add the events that follow `last`; a jump ahead (the log was trimmed past us) begins anew behind it."""
        if frames[0].sequence != self.last + 1:
            self.clear(frames[0].sequence - 1)
        self._frames += frames
        self.last = frames[-1].sequence
        self.size += sum(len(f.sse) for f in frames)
        self._slices.clear()
        self.shrink()

    def prepend(self, frames: Sequence[Frame]) -> None:
        """Offer what a page read found before `base`, without holes; as much of its newer end is taken as there is room for."""
        if not frames or frames[0].sequence > self.base or frames[-1].sequence < self.base:
            return
        usable = frames[: self.base - frames[0].sequence + 1]
        room, size, start = MAX_FRAMES - len(self._frames), self.limit - self.size, len(usable)
        while start > 0 and room > 0 and size >= len(usable[start - 1].sse):
            start, room, size = start - 1, room - 1, size - len(usable[start - 1].sse)
        self._frames[:0] = usable[start:]
        self.base -= len(usable) - start
        self.size = self.limit - size

    def shrink(self) -> None:
        """Let the oldest frames go until the bounds hold again."""
        frames, drop = self._frames, 0
        if len(frames) > MAX_FRAMES:
            # Half of them at once: removing one by one would move the whole list for every event.
            drop = len(frames) - MAX_FRAMES // 2
            self.size -= sum(len(f.sse) for f in frames[:drop])
        while self.size > self.limit and drop < len(frames) - 1:
            self.size -= len(frames[drop].sse)
            drop += 1
        if drop:
            del frames[:drop]
            self.base += drop
            self._slices.clear()

    def clear(self, last: int) -> None:
        """Forget every frame and stand at `last`."""
        self._frames.clear()
        self._slices.clear()
        self.base = self.last = last
        self.size = 0

    def slice(self, position: int) -> Slice | None:
        """The next piece for a viewer; None when it has everything, or is older than what is kept (`position < base`).

        A position may be ahead of `last`: a page can be fresher than the hub's own read. It is never taken back.
        """
        if position >= self.last or position < self.base:
            return None
        found = self._slices.get(position)
        if found is None:
            found = cut(self._frames, position - self.base, position)
            if len(self._slices) >= _KEPT_SLICES:
                self._slices.clear()
            if found is not None:
                self._slices[position] = found
        return found
