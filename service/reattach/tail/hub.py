"""The live tail of one process: one blocked connection for hints, one read of the runs that rang, one ring per followed run.

Cost grows with what happens, not with who might be looking.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import structlog

from ..core.settings import Settings
from ..store import Ring, Store
from .fetch import Fetch
from .followed import Followed
from .pages import Pages
from .patience import Patience
from .roster import Roster

_log = structlog.get_logger("reattach.tail")

LINGER: Final = 3.0
PATIENCE: Final = 20.0


class HubStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a hub holds, for metrics and tests.

    Attributes:
        runs: Runs with a ring, followed or lingering.
        followers: Followers over all of them.
        ring_bytes: Frames in rings.
        page_bytes: Pages that are kept.
    """

    runs: int
    followers: int
    ring_bytes: int
    page_bytes: int


class Hub:
    """One per process and event loop.

    Attributes:
        store: Where the logs are.
        pages: History, shared by all viewers.
        patience: How long streams wait for a store that is away.
    """

    def __init__(self, store: Store, settings: Settings, *, linger: float = LINGER, patience: float = PATIENCE) -> None:
        """Prepare a hub; `start` makes it listen.

        Args:
            store: Where the logs are.
            settings: `keepalive` is the interval at which followed runs are read again without a hint.
            linger: Seconds a ring outlives its last follower.
            patience: Seconds a stream waits for a store that is away before it ends with ``unavailable``.
        """
        self.store = store
        self.pages = Pages()
        self.patience = Patience(patience, self._wake_all)
        self._roster = Roster(store, linger=linger, on_late=self._late)
        self._fetch = Fetch(store, self._roster, self.pages, self.patience)
        self._interval = settings.keepalive
        self._tasks: list[asyncio.Task[None]] = []
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self._hearing: list[Callable[[Ring], None]] = []

    async def start(self) -> None:
        """Begin to listen. Does not wait for the store: joins work as soon as it does."""
        bells = self.store.bells(self._rang, on_state=self._hints, ready=self._fetch.ready)
        for name, work in (("bells", bells.run), ("fetch", self._fetch.run), ("sweep", self._sweep)):
            self._tasks.append(asyncio.create_task(self._forever(name, work), name=f"reattach-{name}"))

    async def close(self, reason: str = "drain") -> None:
        """End every stream with a reason and let go of everything. Followers may leave afterwards. A second call changes nothing."""
        if self.closing is not None:
            return
        await self._roster.close(reason)
        await asyncio.gather(*(close() for close in self._at_close))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.patience.close()
        await self.pages.close()

    def at_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Also do this when the hub closes: whatever else keeps requests waiting in this process ends with it."""
        self._at_close.append(close)

    def hear(self, heard: Callable[[Ring], None]) -> None:
        """Also tell this of every hint; it must not block."""
        self._hearing.append(heard)

    def _rang(self, ring: Ring) -> None:
        for heard in self._hearing:
            heard(ring)
        self._fetch.rang(ring)

    @property
    def closing(self) -> str | None:
        """Why every stream ends now; None while the hub is open."""
        return self._roster.closing

    def ending(self, followed: Followed) -> str | None:
        """Why this run's streams end now though the run goes on; None while they go on as well."""
        return self.closing or followed.ended or ("unavailable" if self.patience.over else None)

    @asynccontextmanager
    async def joined(self, run_id: str) -> AsyncGenerator[Followed]:
        """Follow a run for the length of a block; see `join`."""
        followed = await self.join(run_id)
        try:
            yield followed
        finally:
            self.leave(followed)

    async def join(self, run_id: str) -> Followed:
        """Follow a run; every join needs one `leave`. The first one in this process reads the run's record.

        Raises:
            RunNotFound: There is no such run, or the text is not a run id.
            StoreUnavailable: The store cannot be reached.
            StreamEnded: The hub is closing.
        """
        return await self._roster.join(run_id)

    def leave(self, followed: Followed) -> None:
        """Take back one join."""
        self._roster.leave(followed)

    def stats(self) -> HubStats:
        """What the hub holds now."""
        return HubStats(
            runs=len(self._roster),
            followers=sum(f.count for f in self._roster),
            ring_bytes=sum(f.ring.size for f in self._roster),
            page_bytes=self.pages.size,
        )

    def _late(self, followed: Followed) -> None:
        self._fetch.mark(followed)

    def _wake_all(self) -> None:
        self._roster.wake_all()

    def _hints(self, up: bool) -> None:
        if up:
            self.patience.well("hints")
        else:
            self.patience.ill("hints")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            limit = self._roster.ring_limit()
            for followed in self._roster:
                followed.ring.limit = limit
                followed.ring.shrink()
            self._fetch.mark_all()

    @staticmethod
    async def _forever(name: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception:
                # A bug in one turn must not leave every viewer of this process without news until a restart.
                _log.exception("tail.failed", part=name)
                await asyncio.sleep(1)
