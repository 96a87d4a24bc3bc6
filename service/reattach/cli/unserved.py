"""Runs that wait for a worker that is not there: said, since nothing else would."""

import asyncio
from typing import Final

from ..core.errors import StoreUnavailable
from ..core.ids import shard_of
from ..store import Store, Wake
from .console import say

PATIENCE: Final = 2.0
"""Seconds within which a worker with a free slot has asked for what it was told of."""
_MOST_NAMES: Final = 100
_HINT: Final = "no worker with a free slot serves agent {agent}; the run waits for one: reattach work MODULE:AGENTS"


def unserved(agent: str) -> str:
    """The sentence."""
    return _HINT.format(agent=agent)


async def explain_waiting(store: Store, run_id: str) -> str | None:
    """Why a run is not worked on, where that is since nobody asked for it.

    Raises:
        ReattachError: There is no such run, or Redis cannot be reached.
    """
    record = await store.runs.load(run_id)
    if record.state != "queued" or await store.sweep.readers.anybody(record.agent, shard_of(run_id)):
        return None
    return unserved(record.agent)


class Watch:
    """Tells of every agent for which runs wait that nobody takes, once. For `reattach dev`, where a name is easily mistyped."""

    def __init__(self, store: Store) -> None:
        """Prepare; `run` listens."""
        self._store = store
        self._looked: set[str] = set()
        self._looks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Listen until cancelled."""
        try:
            await self._store.wakes(self._heard).run()
        finally:
            for look in self._looks:
                look.cancel()
            await asyncio.gather(*self._looks, return_exceptions=True)

    def _heard(self, wake: Wake) -> None:
        for agent, shard in wake.work:
            if agent not in self._looked and len(self._looked) < _MOST_NAMES:
                self._looked.add(agent)
                look = asyncio.create_task(self._look(agent, shard))
                self._looks.add(look)
                look.add_done_callback(self._looks.discard)

    async def _look(self, agent: str, shard: str) -> None:
        await asyncio.sleep(PATIENCE)
        try:
            if await self._store.sweep.readers.anybody(agent, shard):
                self._looked.discard(agent)
            else:
                say("queue", unserved(agent))
        except StoreUnavailable:
            self._looked.discard(agent)
