"""Workers that wait for a run, oldest first."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ..core.run import RunRecord
from ..store import Claim
from .auth import Principal


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker far away asks for.

    Attributes:
        agents: Which agents it runs.
        worker: Its name, for people.
        max_losses: Owners that may be lost before the run fails.
        backoff_ms: Pause before the second retry.
        name: A digest of what makes it the same claim when it is sent again; None for one that is never repeated.
        may: Whether whoever asks may work on a run.
        caller: Who asks, where that alone decides what they may.
    """

    agents: tuple[str, ...]
    worker: str
    max_losses: int
    backoff_ms: int
    name: str | None
    may: Callable[[RunRecord], Awaitable[bool]]
    caller: Principal | None = None


class Waiter:
    """One worker that waits.

    Attributes:
        ask: What for.
        answer: What it gets: a claim, or None when it shall ask again.
        looked: Done once all queues were looked at for it.
        serving: A run was taken for it; it is being claimed.
        late: Its time is over: once it is not served any more it gets its answer.
    """

    def __init__(self, ask: Ask) -> None:
        """Wait for nothing yet."""
        loop = asyncio.get_running_loop()
        self.ask = ask
        self.answer: asyncio.Future[Claim | None] = loop.create_future()
        self.looked: asyncio.Future[None] = loop.create_future()
        self.serving = False
        self.late = False

    def give(self, claim: Claim | None) -> bool:
        """Answer it; False when it has left, or was answered before."""
        if self.answer.done():
            return False
        self.answer.set_result(claim)
        return True

    def fail(self, error: Exception) -> bool:
        """Refuse it; False when it has left."""
        if self.answer.done():
            return False
        self.answer.set_exception(error)
        return True

    def was_looked_for(self) -> None:
        """All queues were looked at."""
        if not self.looked.done():
            self.looked.set_result(None)


class Waiters:
    """All of them, by agent."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._by_agent: dict[str, dict[Waiter, None]] = {}
        self._all: dict[Waiter, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, agent: object) -> bool:
        return agent in self._by_agent

    def add(self, waiter: Waiter) -> None:
        """Let it wait."""
        self._all[waiter] = None
        for agent in waiter.ask.agents:
            self._by_agent.setdefault(agent, {})[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        """It waits no more."""
        self._all.pop(waiter, None)
        for agent in waiter.ask.agents:
            if (waiting := self._by_agent.get(agent)) is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._by_agent[agent]

    def pick(self, waiter: Waiter) -> bool:
        """Let it wait no more, since it is served; False where it waits no more already."""
        if waiter not in self._all:
            return False
        self.remove(waiter)
        waiter.serving = True
        return True

    def everybody(self, agent: str | None = None) -> list[Waiter]:
        """All that wait for this agent; None: for any."""
        return list(self._all if agent is None else self._by_agent.get(agent, ()))
