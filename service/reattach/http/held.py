"""What this process holds open for its callers: streams and requests that wait, counted together with those of all other processes."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from ..core.errors import ReattachError, StoreUnavailable
from ..core.ids import new_token
from ..store.limits import Limits, Who
from .auth import Principal

_log = structlog.get_logger("reattach.streams")

_PARTS_OF_A_LEASE = 3
_TOGETHER = 0.1
_AT_ONCE = 200


class Held:
    """The open streams and held requests of one process, by tenant and subject."""

    def __init__(self, limits: Limits, *, lease: float) -> None:
        """Nothing is open.

        Args:
            limits: Where all processes count.
            lease: How long what this process said counts after it died, seconds.
        """
        self._limits, self._lease = limits, lease
        self._process = new_token()
        self._tenants: Counter[str] = Counter()
        self._mine: Counter[Who] = Counter()
        self._changed: set[Who] = set()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def one(self, principal: Principal) -> AsyncGenerator[None, None]:
        """Hold one more for the length of a block.

        Raises:
            TooManyRequests: That is too much for the caller or its tenant.
            StoreUnavailable: Redis cannot be reached.
        """
        who = Who(principal.tenant, principal.subject)
        self._tenants[who.tenant] += 1
        self._mine[who] += 1
        self._begin()
        try:
            await self._say(who, bounded=True)
            yield
        finally:
            self._tenants[who.tenant] -= 1
            self._mine[who] -= 1
            self._changed.add(who)
            self._news.set()

    async def close(self) -> None:
        """Say that nothing is open any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        everybody = set(self._mine) | self._changed
        self._mine.clear()
        self._tenants.clear()
        with contextlib.suppress(ReattachError):  # what was said runs out by itself
            for who in everybody:
                await self._say(who)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name="reattach-held")

    async def _keep(self) -> None:
        """Say what has changed, and now and then everything, while there is anything."""
        clock = asyncio.get_running_loop().time
        every = self._lease / _PARTS_OF_A_LEASE
        due = clock() + every
        while self._mine:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._news.wait()
            # What ends together, as the viewers of a run that ends, is said together.
            await asyncio.sleep(min(_TOGETHER, every))
            self._news.clear()
            changed, self._changed = self._changed, set()
            if clock() >= due:
                changed, due = changed | set(self._mine), clock() + every
            try:
                everybody = list(changed)
                for start in range(0, len(everybody), _AT_ONCE):
                    await asyncio.gather(*(self._say(who) for who in everybody[start : start + _AT_ONCE]))
            except StoreUnavailable:
                self._changed |= changed
            except Exception:
                _log.exception("held.failed")

    async def _say(self, who: Who, *, bounded: bool = False) -> None:
        mine, tenants = self._mine[who], self._tenants[who.tenant]
        await self._limits.hold(who, self._process, tenants, mine, lease=self._lease, bounded=bounded)
        if self._mine[who] == 0 and not bounded:
            self._mine.pop(who, None)
        if self._tenants[who.tenant] == 0:
            self._tenants.pop(who.tenant, None)
