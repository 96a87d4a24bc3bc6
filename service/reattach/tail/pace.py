"""How often news is fetched: at once while it is quiet, less often the more there is to do."""

import asyncio
import time
from typing import Final

LONGEST: Final = 0.010
_SETTLE_TURNS: Final = 3


class Pace:
    """Spaces turns of work: after each one, a pause as long as the turn took, at most `LONGEST` seconds.

    So fetching and delivering take half of the loop before events are gathered into fewer, larger turns; and after a quiet moment the
    pause is over already, so that a first token leaves at once. Nothing has to be tuned to the number of viewers.
    """

    __slots__ = ("_began", "_free", "_rest_until")

    def __init__(self) -> None:
        self._began = self._rest_until = 0.0
        self._free = asyncio.Event()
        self._free.set()

    async def free(self) -> None:
        """Wait until no turn is under way, about to begin, or would have to pause first."""
        await asyncio.sleep(0)
        while not self._free.is_set() or self._pause() > 0:
            await self._free.wait()
            await asyncio.sleep(max(0.0, self._pause()))

    def _pause(self) -> float:
        return self._rest_until - time.perf_counter()

    async def __aenter__(self) -> None:
        if self._pause() > 0:
            await asyncio.sleep(self._pause())
        self._free.clear()
        self._began = time.perf_counter()

    async def __aexit__(self, *_: object) -> None:
        try:
            # Whoever was woken by this turn writes now, which is part of what the turn costs.
            for _turn in range(_SETTLE_TURNS):
                await asyncio.sleep(0)
        finally:
            now = time.perf_counter()
            self._rest_until = now + min(now - self._began, LONGEST)
            self._free.set()
