"""`follow` for writers that never wait: at the live edge the hub's own turn writes to every viewer, without waking a task for each.

Measured with 500 viewers of one run and 50 events a second, a delivery costs about half of what it costs through a task per viewer. Order
is decided where it always is: behind the edge by `follow`, at the edge by the ring, which has no holes.
"""

import asyncio
from contextlib import aclosing
from typing import Protocol

from .follow import follow
from .followed import Followed
from .frames import Slice
from .hub import Hub


class Sink(Protocol):
    """Where one viewer's events go."""

    def take(self, piece: Slice) -> bool:
        """Write the next events; whether it wants more at once. Must not block and must not raise."""
        ...

    async def drained(self) -> None:
        """Wait until it wants more."""
        ...


async def deliver(hub: Hub, run_id: str, after: int, sink: Sink) -> None:
    """Hand every event of a run after a cursor to a sink, to the run's last one; what `follow` promises and raises holds here too.

    Args:
        hub: This process's hub.
        run_id: The run.
        after: The cursor; 0 for everything.
        sink: Where the events go. Once it wanted no more, it is handed nothing until it has `drained`.
    """
    async with hub.joined(run_id) as followed:
        viewer = _Viewer(hub, followed, after, sink)
        while not viewer.over:
            if viewer.at_edge:
                await viewer.stay()
            else:
                await viewer.catch_up()


class _Viewer:
    """A position and its sink."""

    __slots__ = ("_attention", "_followed", "_hub", "_sink", "_take", "over", "position")

    def __init__(self, hub: Hub, followed: Followed, position: int, sink: Sink) -> None:
        self._hub, self._followed, self.position, self._sink = hub, followed, position, sink
        self._take = sink.take
        self._attention: asyncio.Future[None]
        self.over = False

    @property
    def at_edge(self) -> bool:
        """Whether everything known was taken, and more may come."""
        followed = self._followed
        # A position ahead of what is known here is for `follow` to judge: another process may know more, or the cursor is of the future.
        return self.position == followed.last and not followed.terminal and self._hub.ending(followed) is None

    async def catch_up(self) -> None:
        """Take what is stored, up to the edge or the run's end."""
        async with aclosing(follow(self._hub, self._followed.run_id, self.position)) as pieces:
            async for piece in pieces:
                self.position = piece.last
                if not self._take(piece):
                    await self._sink.drained()
                if self.at_edge:
                    return
        self.over = True

    async def stay(self) -> None:
        """Be written to by the hub until something has to be waited for."""
        # No await between the look at the edge and this line, or the news between them is missed.
        self._attention = asyncio.get_running_loop().create_future()
        self._followed.listen(self)
        try:
            await self._attention
        finally:
            self._followed.unlisten(self)
        await self._sink.drained()

    def news(self, piece: Slice | None, edge: int) -> None:
        """Take what came; see `Listener`."""
        # Once per viewer and wake-up: the hottest lines of the service.
        if self._attention.done():
            return
        if piece is None:
            if self.at_edge:
                return
        else:
            self.position = last = piece.last
            # That the hub's streams end now is told by a wake-up of its own, without a piece.
            if self._take(piece) and last == edge:
                return
        # Full, fallen off the ring, at the run's end, more than one piece behind, or the hub is closing: the viewer's task sees to it.
        self._attention.set_result(None)
