"""History, read in pages that viewers share.

Pages are aligned (page k of span 64 holds 64 k + 1 … 64 k + 64) and events never change, so a full page is read and encoded once
however many viewers ask for it, at once or one after the other. What is kept is bounded in bytes.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from .followed import Followed
from .frames import Frame, Slice
from .ring import cut

KEPT_BYTES: Final = 32 * 1024 * 1024
_AT_ONCE: Final = 8
"""Pages under way at a time: many replays share the connection instead of filling memory with replies."""

Key = tuple[str, int, int]


class Page:
    """Some frames of one run, in order, perhaps with holes."""

    __slots__ = ("_slices", "frames", "size")

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = frames
        self.size = sum(len(f.sse) for f in frames)
        self._slices: dict[int, Slice] = {}

    @property
    def whole(self) -> bool:
        """Whether there are frames, without a hole between them."""
        return bool(self.frames) and self.frames[-1].sequence - self.frames[0].sequence + 1 == len(self.frames)

    def slice(self, position: int) -> Slice | None:
        """The next piece behind a position; None when the page has none."""
        found = self._slices.get(position)
        if found is None:
            found = cut(self.frames, bisect_right(self.frames, position, key=lambda f: f.sequence), position)
            if found is not None and len(self._slices) < 8:
                self._slices[position] = found
        return found


class Pages:
    """Reads pages, each once at a time, and keeps the full ones that were used last."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        """Nothing is kept yet.

        Args:
            kept_bytes: About how much memory full pages may take.
        """
        self._limit = kept_bytes
        self._kept: OrderedDict[Key, Page] = OrderedDict()
        self._size = 0
        self._flights: dict[Key, asyncio.Task[Page]] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    @property
    def size(self) -> int:
        """Bytes that are kept, counting frames and what is joined from them."""
        return self._size

    async def after(self, followed: Followed, position: int) -> Slice | None:
        """What the store has behind a position, read at some moment after this call began; None when it has nothing there.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """
        key = (followed.run_id, followed.span, position // followed.span)
        page = self._kept.get(key)
        if page is not None:
            self._kept.move_to_end(key)
            return page.slice(position)
        early = self._flights.get(key)
        if early is not None:
            found = (await asyncio.shield(early)).slice(position)
            if found is not None and not found.sparse:
                return found
        # Another viewer's read may have left before the events existed that this one waits for. Only one that left after this call began
        # can say that there is nothing, or that something is missing.
        flight = self._flights.get(key)
        if flight is None or flight is early:
            flight = self._flight(key, followed)
        return (await asyncio.shield(flight)).slice(position)

    def _flight(self, key: Key, followed: Followed) -> asyncio.Task[Page]:
        task = asyncio.create_task(self._read(key, followed), name="reattach-page")
        self._flights[key] = task
        task.add_done_callback(lambda t: self._landed(key, t))
        return task

    def _landed(self, key: Key, task: asyncio.Task[Page]) -> None:
        if self._flights.get(key) is task:
            del self._flights[key]
        if not task.cancelled():
            task.exception()  # everybody who waited may be gone by now: nobody is left to hear of it

    async def _read(self, key: Key, followed: Followed) -> Page:
        _, span, number = key
        async with self._room:
            page = Page(await followed.source.after(number * span, span))
        followed.paged(len(page.frames), page.size)
        if page.whole and page.frames[0].sequence == number * span + 1 and len(page.frames) == span:
            self._keep(key, page)
        elif page.whole:
            followed.ring.prepend(page.frames)
        return page

    def _keep(self, key: Key, page: Page) -> None:
        # Twice: a page that is used holds its frames and the pieces joined from them.
        if 2 * page.size > self._limit // 4:
            return
        known = self._kept.pop(key, None)
        self._kept[key] = page
        self._size += 2 * (page.size - (0 if known is None else known.size))
        while self._size > self._limit:
            _, old = self._kept.popitem(last=False)
            self._size -= 2 * old.size

    def forget(self) -> None:
        """Forget every page: the store may have come back with another history."""
        self._kept.clear()
        self._size = 0

    async def close(self) -> None:
        """Let reads under way end."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        self.forget()
