"""Queues of agents that nobody creates runs for any more: names that were made up once must not stay for ever."""

from typing import Final

from .door import Door, all_of
from .keys import Keys
from .scripts import GROUP, load_scripts

_AT_ONCE: Final = 200


class Idle:
    """Takes empty queues away."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door, self._keys = door, keys
        self._script = load_scripts()["retire"]

    async def retire(self) -> int:
        """Take away some of the queues that are empty now, in every shard; how many.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        return sum(await all_of(self._retire(tag) for tag in self._keys.tags))

    async def _retire(self, tag: str) -> int:
        names: list[bytes] = await self._door.call("SRANDMEMBER", self._keys.agents(tag), _AT_ONCE)
        replies = await all_of(self._one(tag, name.decode()) for name in names)
        return sum(replies)

    async def _one(self, tag: str, agent: str) -> bool:
        keys = {"queue": self._keys.queue(tag, agent), "agents": self._keys.agents(tag)}
        return (await self._door.run(self._script, keys, agent, GROUP)).word == "OK"
