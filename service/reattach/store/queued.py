"""Looking at what waits in a queue, without taking it: for whoever may work on some runs only.

A taken entry would have to be given back by a worker that may not have it, for another one that may, or nobody, to take it again. What is
only looked at stays where it is; who gets it is decided by the claim.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from ..core.ids import is_run_id, shard_of
from ..core.run import RunRecord
from .door import Door, all_of
from .keys import Keys
from .leases import Delivery
from .records import LISTED, pairs, to_record

_PAGE: Final = 200
_REMEMBERED: Final = 10_000


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a queue.

    Attributes:
        waiting: What waits there, oldest first, without inputs.
        after: Where the next part begins; None when this is the last one.
    """

    waiting: tuple[tuple[Delivery, RunRecord], ...]
    after: str | None


class Queued:
    """What waits in the queues of all agents."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door, self._keys = door, keys
        # Entries that were seen: a run keeps its facts, and an entry that carries no waiting run never carries one again.
        self._seen: OrderedDict[tuple[str, str], tuple[Delivery, RunRecord] | None] = OrderedDict()

    async def look(self, agent: str, shard: str, after: str = "") -> Look:
        """The next part of a queue. Some of it may be claimed by somebody by now: only the claim tells.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        queue = self._keys.queue(shard, agent)
        entries: list[Any] = await self._door.call("XRANGE", queue, f"({after}" if after else "-", "+", "COUNT", _PAGE)
        found = await all_of(self._known(queue, agent, shard, entry.decode(), fields or []) for entry, fields in entries)
        last = entries[-1][0].decode() if len(entries) == _PAGE else None
        return Look(waiting=tuple(each for each in found if each is not None), after=last)

    def forget(self, agent: str, shard: str, entry: str) -> None:
        """Look at an entry anew next time."""
        self._seen.pop((self._keys.queue(shard, agent), entry), None)

    async def _known(self, queue: str, agent: str, shard: str, entry: str, fields: list[bytes]) -> tuple[Delivery, RunRecord] | None:
        seen = (queue, entry)
        if seen in self._seen:
            self._seen.move_to_end(seen)
            return self._seen[seen]
        found = await self._read(agent, shard, entry, fields)
        self._seen[seen] = found
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return found

    async def _read(self, agent: str, shard: str, entry: str, fields: list[bytes]) -> tuple[Delivery, RunRecord] | None:
        run_id = pairs(fields).get("run", b"").decode("utf-8", "replace")
        if not is_run_id(run_id) or shard_of(run_id) != shard:
            return None
        values = await self._door.call("HMGET", self._keys.run(run_id), *LISTED)
        named = {name: value for name, value in zip(LISTED, values, strict=True) if value is not None}
        if "run_id" not in named:
            return None
        record = to_record(named)
        if record.state != "queued" or record.entry != entry:
            return None
        return Delivery(run_id=run_id, agent=agent, shard=shard, entry=entry), record
