"""Which queues may have work: told by hints, cold after an empty answer, so that asking costs Redis nothing while there is none."""

import random
from collections.abc import Container, Iterable, Sequence
from typing import Final

MOST_AGENTS: Final = 256
"""Agents that are remembered; what was asked for longest ago is forgotten first."""


class Queues:
    """The queues of the agents that somebody asked for, one per agent and shard."""

    def __init__(self, shards: Sequence[str]) -> None:
        """Know no agent yet."""
        self._shards = shards
        # In the order in which they are asked; a dict, because each is asked once per turn however often it announced itself.
        self._hot: dict[tuple[str, str], None] = {}
        self.agents: list[str] = []
        """Least recently asked for first; the same list for ever."""

    def want(self, agent: str) -> None:
        """Somebody asks for this agent's work; where it was not known, nobody knows what its queues hold."""
        if agent in self.agents:
            self.agents.remove(agent)
        else:
            self._heat(agent)
        self.agents.append(agent)
        for old in self.agents[:-MOST_AGENTS]:
            self.agents.remove(old)
            for shard in self._shards:
                self._hot.pop((old, shard), None)

    def wake(self, queues: Iterable[tuple[str, str]] | None) -> None:
        """There may be work in these queues (agent and shard); None: in any."""
        if queues is None:
            for agent in self.agents:
                self._heat(agent)
            return
        for queue in queues:
            if queue[0] in self.agents:
                self._hot.setdefault(queue)

    def _heat(self, agent: str) -> None:
        # From another shard each time, or one worker alone would empty the first shard before it looks at the second.
        first = random.randrange(len(self._shards))
        for shard in (*self._shards[first:], *self._shards[:first]):
            self._hot.setdefault((agent, shard))

    def next(self, agents: Container[str]) -> tuple[str, str] | None:
        """The next queue to ask for one of these agents; it is cold from now on, unless `wake` says otherwise."""
        found = next((queue for queue in self._hot if queue[0] in agents), None)
        if found is not None:
            # Out of the list before it is asked: a hint that comes while the answer is on its way puts it back.
            del self._hot[found]
        return found
