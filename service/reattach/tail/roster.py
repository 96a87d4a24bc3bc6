"""Which runs and sessions this process follows: joining, leaving, and how long a ring outlives its last follower."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from ..store import Store
from .ended import StreamEnded
from .followed import Followed
from .source import source_of

RINGS_BYTES: Final = 64 * 1024 * 1024
"""About what all rings of a process may hold together."""

_RING_MOST: Final = 1024 * 1024
_RING_LEAST: Final = 16 * 1024


class Roster:
    """The followed runs of one process.

    Attributes:
        closing: Why every stream ends now; None while joins are taken.
    """

    def __init__(self, store: Store, *, linger: float, on_late: Callable[[Followed], None]) -> None:
        """Prepare an empty roster.

        Args:
            store: Where records are.
            linger: Seconds a ring outlives its last follower: the reconnects that follow a cut need no store then.
            on_late: Told of a run that had news while its record was read.
        """
        self.closing: str | None = None
        self._store, self._linger, self._on_late = store, linger, on_late
        self._runs: dict[str, Followed] = {}

    def __iter__(self) -> Iterator[Followed]:
        return iter(list(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, run_id: str) -> Followed | None:
        """The run, if it is followed or lingers."""
        return self._runs.get(run_id)

    def holds(self, followed: Followed) -> bool:
        """Whether this is still what followers of its run share."""
        return self._runs.get(followed.run_id) is followed

    async def join(self, run_id: str) -> Followed:
        """See `Hub.join`."""
        if self.closing is not None:
            raise StreamEnded(self.closing)
        followed = self._runs.get(run_id)
        if followed is None:
            # Known before it is read: a bell that rings meanwhile is remembered, so no event falls between the read and the first bell.
            followed = self._runs[run_id] = Followed(source_of(self._store, run_id))
            followed.loading = asyncio.create_task(self._load(followed), name="reattach-join")
        followed.count += 1
        self._stay(followed)
        try:
            if followed.loading is not None:
                await asyncio.wait((followed.loading,))
            if followed.failure is not None:
                raise followed.failure.with_traceback(None)
            if not followed.ready:
                raise StreamEnded(self.closing or "unavailable")
        except BaseException:
            self.leave(followed)
            raise
        return followed

    def leave(self, followed: Followed) -> None:
        """See `Hub.leave`."""
        followed.count -= 1
        if followed.count:
            return
        if followed.loading is not None:
            followed.loading.cancel()
        if followed.ready and self.closing is None and self.holds(followed):
            followed.linger = asyncio.get_running_loop().call_later(self._linger, self.forget, followed)
        else:
            self.forget(followed)

    def forget(self, followed: Followed) -> None:
        """Let later joins of this run begin anew."""
        self._stay(followed)
        if self.holds(followed):
            del self._runs[followed.run_id]

    def forget_idle(self) -> None:
        """Forget every run that nobody follows now."""
        for followed in self:
            if not followed.count:
                self.forget(followed)

    def wake_all(self) -> None:
        """Let every follower look again."""
        for followed in self:
            followed.wake()

    def ring_limit(self) -> int:
        """Most bytes one ring may hold, so that all of them together stay bounded however many runs are followed."""
        return max(_RING_LEAST, min(_RING_MOST, RINGS_BYTES // max(1, len(self._runs))))

    async def close(self, reason: str) -> None:
        """Refuse joins and end every stream."""
        self.closing = reason
        loading = [f.loading for f in self if f.loading is not None]
        for task in loading:
            task.cancel()
        self.wake_all()
        await asyncio.gather(*loading, return_exceptions=True)
        self.forget_idle()

    @staticmethod
    def _stay(followed: Followed) -> None:
        if followed.linger is not None:
            followed.linger.cancel()
            followed.linger = None

    async def _load(self, followed: Followed) -> None:
        try:
            last, terminal = await followed.source.load()
        except Exception as e:  # everybody who joined meanwhile hears of it
            followed.failure = e
            self.forget(followed)
            return
        finally:
            followed.loading = None
        followed.begin(last=last, terminal=terminal, limit=self.ring_limit(), largest=self._store.settings.max_payload)
        if followed.rang:
            self._on_late(followed)
