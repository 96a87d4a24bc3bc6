"""Readers of the queues: what was handed to one that died, and its name when it is gone.

A reader is a consumer of a queue's group. An entry it was handed and has not claimed belongs to nobody; one it claimed is a lease.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import structlog
from redis.exceptions import ResponseError

from ..core.ids import is_run_id
from .door import Door, all_of
from .keys import Keys
from .queues import Queue, Queues
from .records import pairs
from .scripts import GROUP, load_scripts

_log = structlog.get_logger("reattach.sweep")
_AT_ONCE: Final = 100
_FORGOTTEN: Final = 20
"""A reader that did nothing for this many leases, and has nothing, is gone."""


class Readers:
    """Looks after the consumers of the queues."""

    def __init__(self, door: Door, keys: Keys, lease_ms: int) -> None:
        """Bind to a store's parts."""
        self._door, self._keys, self._lease_ms = door, keys, lease_ms
        self._queues = Queues(door, keys)
        self._scripts = load_scripts()
        self._turn = 0

    async def deliveries(self, agents: Sequence[str]) -> int:
        """Return to the queues what was delivered to a reader that died before it claimed it; how many.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        return sum(await all_of(self._undelivered(tag, agent) for agent, tag in await self._queues.filled(agents)))

    async def _undelivered(self, tag: str, agent: str) -> int:
        queue = self._keys.queue(tag, agent)
        try:
            pending = await self._door.call("XPENDING", queue, GROUP, "IDLE", self._lease_ms, "-", "+", _AT_ONCE)
        except ResponseError:
            return 0  # no queue yet
        done = 0
        for entry, *_ in pending:
            found: list[Any] = await self._door.call("XRANGE", queue, entry, entry)
            run_id = pairs(found[0][1]).get("run", b"").decode("utf-8", "replace") if found else ""
            if not is_run_id(run_id):
                keys = {"queue": queue, "poison": self._keys.poison(tag, agent)}
                reply = await self._door.run(self._scripts["setaside"], keys, GROUP, entry)
                if reply.word == "OK":  # else another sweep was there first, and told
                    _log.error("queue.entry_set_aside", agent=agent, shard=tag, entry=entry.decode(), kept_in=keys["poison"])
                continue
            done += await self.reclaim(run_id, agent, entry)
        return done

    async def reclaim(self, run_id: str, agent: str, entry: bytes) -> int:
        """Take a run back if its owner is gone; 1 if it was.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        session = await self._door.call("HGET", self._keys.run(run_id), "session")
        keys = self._keys.of_run(run_id, agent, session and session.decode())
        reply = await self._door.run(self._scripts["reclaim"], keys, run_id, GROUP, agent, entry, self._lease_ms)
        if reply.word in ("HELD", "GONE"):
            return 0
        _log.warning("run.reclaimed", run_id=run_id, agent=agent, became=reply.word.lower())
        return 1

    async def anybody(self, agent: str, tag: str) -> bool:
        """Whether anybody asked for this agent's work in this shard lately: a worker does as soon as it is told of some and has a slot.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        try:
            return bool(await self._door.call("XINFO", "CONSUMERS", self._keys.queue(tag, agent), GROUP))
        except ResponseError:
            return False  # no queue yet

    async def tidy_some(self, agents: Sequence[str], most: int) -> int:
        """`tidy` so many queues, other ones each time until all had their turn: a constant cost however many there are."""
        everywhere = [(agent, tag) for tag in self._keys.tags for agent in agents]
        some = [everywhere[(self._turn + n) % len(everywhere)] for n in range(min(most, len(everywhere)))]
        self._turn += len(some)
        return await self._tidy_all(some, _FORGOTTEN * self._lease_ms)

    async def tidy(self, agents: Sequence[str], *, idle_ms: int | None = None) -> int:
        """Forget readers that are gone; how many. Entries that one of them still has are never dropped with it.

        Args:
            agents: Whose queues.
            idle_ms: How long a reader must have done nothing; by default many leases.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        idle = _FORGOTTEN * self._lease_ms if idle_ms is None else idle_ms
        return await self._tidy_all([(agent, tag) for tag in self._keys.tags for agent in agents], idle)

    async def _tidy_all(self, queues: Iterable[Queue], idle: int) -> int:
        return sum(await all_of(self._tidy(tag, agent, idle) for agent, tag in queues))

    async def _tidy(self, tag: str, agent: str, idle: int) -> int:
        queue, gone = self._keys.queue(tag, agent), 0
        try:
            consumers: list[Any] = await self._door.call("XINFO", "CONSUMERS", queue, GROUP)
        except ResponseError:
            return 0  # no queue yet
        for flat in consumers:
            about = pairs(flat)
            if int(about["pending"]) == 0 and int(about["idle"]) >= idle:
                reply = await self._door.run(self._scripts["tidy"], {"queue": queue}, GROUP, about["name"], idle)
                gone += reply.word == "OK"
        return gone
