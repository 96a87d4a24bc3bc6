"""Viewers without a network: they follow a run through a hub and remember what they were given."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from reattach.core.event import Event
from reattach.store import Store
from reattach.tail import Hub, Slice, deliver, follow

from ..support.waiting import wait_until


class Viewer:
    """One viewer.

    Attributes:
        after: The cursor it started from.
        slices: What it was given.
        error: What ended it, if anything but the run's end did.
    """

    def __init__(self, hub: Hub, run_id: str, after: int = 0, *, direct: bool = False) -> None:
        self.run_id, self.after, self.slices = run_id, after, list[Slice]()
        self.error: Exception | None = None
        self._wants = asyncio.Event()
        self._wants.set()
        self.task = asyncio.create_task(self._written_to(hub) if direct else self._read(hub), name=f"viewer of {run_id}")

    async def _read(self, hub: Hub) -> None:
        try:
            async with aclosing(follow(hub, self.run_id, self.after)) as slices:
                async for piece in slices:
                    self.slices.append(piece)
        except Exception as e:
            self.error = e

    async def _written_to(self, hub: Hub) -> None:
        try:
            await deliver(hub, self.run_id, self.after, self)
        except Exception as e:
            self.error = e

    def take(self, piece: Slice) -> bool:
        """Be written to; whether it wants more at once. See `Sink`."""
        self.slices.append(piece)
        return self._wants.is_set()

    async def drained(self) -> None:
        """Wait until it wants more."""
        await self._wants.wait()

    def pause(self, paused: bool = True) -> None:
        """Want nothing more for now, or want more again."""
        if paused:
            self._wants.clear()
        else:
            self._wants.set()

    @property
    def sequences(self) -> list[int]:
        """Every sequence it was given, in order."""
        return [frame.sequence for piece in self.slices for frame in piece.frames]

    @property
    def position(self) -> int:
        """Where it would resume."""
        return self.slices[-1].last if self.slices else self.after

    @property
    def done(self) -> bool:
        """Whether it came to an end."""
        return self.task.done()

    async def reaches(self, sequence: int) -> "Viewer":
        """Wait until it was given a sequence."""
        await wait_until(lambda: self.position >= sequence or self.done, f"a viewer to reach {sequence}, it is at {self.position}")
        assert self.position >= sequence, f"the viewer ended at {self.position}: {self.error!r}"
        return self

    async def ends(self) -> "Viewer":
        """Wait until it came to an end."""
        await wait_until(lambda: self.done, f"a viewer to end, it is at {self.position}")
        return self

    async def leave(self) -> "Viewer":
        """Go away in the middle."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        return self

    def check(self, last: int) -> None:
        """It was given every event behind its cursor, once, in order.

        Raises:
            AssertionError: It was not.
        """
        assert self.error is None, repr(self.error)
        assert self.sequences == list(range(self.after + 1, last + 1)), f"from {self.after} to {last}: {self.sequences}"


async def settled(hub: Hub, run_id: str, sequence: int) -> None:
    """Wait until a followed run's ring has come to a sequence."""
    async with hub.joined(run_id) as followed:
        await wait_until(lambda: followed.last >= sequence, f"the ring to reach {sequence}")


class Gate:
    """Holds the replies of the log's reads back until a test lets them through. The reads themselves are real.

    Attributes:
        held: Replies that wait, oldest first, each with the arguments of its read.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._real: Callable[..., Awaitable[Any]] = getattr(store.events, name)
        self._events, self._name, self._shut = store.events, name, False
        self.held: list[tuple[tuple[Any, ...], asyncio.Event]] = []

    async def _read(self, *args: Any, **options: Any) -> Any:
        reply = await self._real(*args, **options)
        if self._shut:
            opened = asyncio.Event()
            self.held.append((args, opened))
            await opened.wait()
        return reply

    def shut(self) -> None:
        """Hold replies from now on."""
        self._shut = True
        setattr(self._events, self._name, self._read)

    async def holds(self, count: int = 1) -> None:
        """Wait until so many replies are held."""
        await wait_until(lambda: len(self.held) >= count, f"{count} held replies of {self._name}")

    def release(self, index: int = 0) -> None:
        """Let one reply through."""
        self.held.pop(index)[1].set()

    def open(self) -> None:
        """Let everything through, now and later."""
        self._shut = False
        while self.held:
            self.release()
        setattr(self._events, self._name, self._real)


def kill_clients(admin: Any) -> None:
    """Let the server cut every connection but this one's."""
    admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def ring_often(admin: Any, bell: str, run_id: str, count: int) -> None:
    """Write hints, trimmed as the commands trim them."""
    pipe = admin.pipeline(transaction=False)
    for _ in range(count):
        pipe.xadd(bell, {"run": run_id}, maxlen=10_000, approximate=True)
    pipe.execute()


def events(first: int, last: int, *, kind: str = "step.done", size: int = 0) -> list[Event]:
    """Made-up events of a run."""
    return [Event(n, kind, 1_788_430_471_000 + n, b'{"n":%d,"pad":"%b"}' % (n, b"x" * size)) for n in range(first, last + 1)]
