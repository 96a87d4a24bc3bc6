"""Looking at many queues at once: which of them hold anything, asked with one command however many agents there are.

An entry leaves its queue when its run ends or waits, so an empty queue has neither work nor leases, and nothing more need be asked of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from redis.exceptions import ResponseError

from .door import Door, all_of
from .keys import Keys

_AT_ONCE: Final = 1024

Queue = tuple[str, str]
"""An agent and a shard."""


class Queues:
    """The queues of all agents."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a store's parts."""
        self._door, self._keys = door, keys

    async def filled(self, agents: Iterable[str]) -> list[Queue]:
        """The queues of these agents that hold something: work that nobody has, or a lease. Shard by shard, each with all its agents.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        names, tags = list(agents), self._keys.tags
        if self._door.target.is_cluster:  # one command reaches one slot
            plan = [[(agent, tag) for agent in names] for tag in tags]
        else:
            everywhere = [(agent, tag) for tag in tags for agent in names]
            plan = [everywhere[start : start + _AT_ONCE] for start in range(0, len(everywhere), _AT_ONCE)]
        return [queue for part in await all_of(self._filled(part) for part in plan if part) for queue in part]

    async def _filled(self, queues: Sequence[Queue]) -> list[Queue]:
        keys = [self._keys.queue(tag, agent) for agent, tag in queues]
        try:
            reply: list[Any] | None = await self._door.call("XREAD", "COUNT", 1, "STREAMS", *keys, *["0"] * len(keys))
        except ResponseError:
            # One of them is something else than a queue: whoever asks each by itself finds out which.
            return list(queues)
        found = {name.decode() for name, _ in reply or ()}
        return [queue for queue, key in zip(queues, keys, strict=True) if key in found]
