"""Keys that may change while they are used: kept, looked up again when a token names one that is not known, and never in a crowd.

While their source is away the known keys go on being good: an identity provider that restarts must not log everybody out.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from ...core.errors import AuthUnavailable, ReattachError
from ...obs.metrics import KEY_FETCHES
from .keys import Key

_log = structlog.get_logger("reattach.auth")

Load = Callable[[], Awaitable[tuple[Key, ...]]]

REFRESH: Final = 300.0
"""Keys of this age are looked up again, seconds: how long one goes on being good that was taken back."""
PAUSE: Final = 5.0
"""Shortest time between two looks, seconds, however many unknown keys strangers name."""


class KeyRing:
    """The keys of one process."""

    def __init__(self, load: Load, keys: Sequence[Key] = (), *, refresh: float = REFRESH, pause: float = PAUSE) -> None:
        """Begin with some keys or none.

        Args:
            load: Looks them up. What it raises is logged, as the kind of error only.
            keys: Known already.
            refresh: See `REFRESH`.
            pause: See `PAUSE`.
        """
        self._load, self._keys = load, tuple(keys)
        self._refresh, self._pause = refresh, pause
        self._clock = asyncio.get_running_loop().time
        self._stale_at = self._clock() + self._jittered() if keys else 0.0
        self._not_before = 0.0
        self._task: asyncio.Task[None] | None = None

    def _jittered(self) -> float:
        # Processes that started together must not ask together for ever.
        return self._refresh * random.uniform(0.8, 1.0)

    async def known(self) -> tuple[Key, ...]:
        """The keys; those of a certain age are looked up again meanwhile.

        Raises:
            AuthUnavailable: There never were any, and there are none now.
        """
        if self._clock() >= self._stale_at:
            task = self.look()
            if not self._keys and task is not None:
                await _ended(task)
        if not self._keys:
            raise AuthUnavailable("the keys that tokens are checked with cannot be had now", retry_after=self._pause)
        return self._keys

    async def newer(self, than: tuple[Key, ...]) -> tuple[Key, ...]:
        """The keys after a look, for a token that none of these fits; the same ones when they were looked up a moment ago."""
        if self._keys is than and (task := self.look()) is not None:
            await _ended(task)
        return self._keys

    def look(self) -> "asyncio.Task[None] | None":
        """Look them up, together with everybody who wants that now; None when it was done a moment ago."""
        if self._task is None and self._clock() >= self._not_before:
            self._task = asyncio.create_task(self._fetch(), name="reattach-keys")
        return self._task

    async def _fetch(self) -> None:
        try:
            keys = await self._load()
        except Exception as e:
            KEY_FETCHES.labels("failed").inc()
            # Not the error's own words where they are a library's: they may quote what was read.
            why = e.detail if isinstance(e, ReattachError) else type(e).__name__
            _log.warning("auth.keys_not_read", why=why, known=len(self._keys))
        else:
            KEY_FETCHES.labels("ok").inc()
            if set(map(repr, keys)) != set(map(repr, self._keys)):
                _log.info("auth.keys", known=[repr(key) for key in keys])
            self._keys, self._stale_at = keys, self._clock() + self._jittered()
        finally:
            self._not_before = self._clock() + self._pause
            self._task = None

    async def close(self) -> None:
        """Look no more."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait({task})


async def _ended(task: "asyncio.Task[None]") -> None:
    # Whoever waits may be cancelled; the look goes on for the others.
    await asyncio.wait({task})
