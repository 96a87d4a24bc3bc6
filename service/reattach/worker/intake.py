"""Finding work: a run is taken from the queue only when a slot is free, so nothing waits here under a lease.

Work announces itself by wakes; a hint tells which agent's queue in which shard to look at, and each of them is asked in turn, one run at a
time, until it has no more: fair over agents and shards. Where hints may have been missed, one look tells which queues hold anything. An
idle worker sends nothing but such a look now and then, for the hint that nobody sent.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import structlog

from ..core.errors import StoreUnavailable
from .registry import Agents

if TYPE_CHECKING:
    from ..store import Delivery
    from ..store.work import Work

LOOK_AROUND: Final = 120.0
"""Seconds between two looks without a reason, which find nothing unless a hint was never sent."""
_LONGEST_PAUSE: Final = 2.0
_log = structlog.get_logger("reattach.worker")


class Intake:
    """Takes runs while there are slots, and hands each to `begin`, which takes the slot."""

    def __init__(self, work: "Work", agents: Agents, consumer: str, *, slots: int, begin: "Callable[[Delivery], None]") -> None:
        """Look after these agents.

        Args:
            work: The workers' side of the store.
            agents: Which queues to look at.
            consumer: Our name in their consumer groups.
            slots: Runs at the same time.
            begin: Called with every delivery; `free` must be called when it is done with.
        """
        self._work, self._agents, self._consumer, self._begin = work, agents, consumer, begin
        self._slots = slots
        self._news = asyncio.Event()
        self._stopping = False
        self._failures = 0
        # In the order in which they are asked; a dict, because each is asked once per turn however often it announced itself.
        self._hot: dict[tuple[str, str], None] = {}
        self._unknown = True

    def wake(self, queues: Iterable[tuple[str, str]] | None) -> None:
        """There may be work in these queues (agent and shard); None: in any."""
        self._unknown = self._unknown or queues is None
        for queue in queues or ():
            if queue[0] in self._agents:
                self._hot.setdefault(queue)
        self._news.set()

    def free(self) -> None:
        """A slot is free again."""
        self._slots += 1
        self._news.set()

    def stop(self) -> None:
        """Take nothing more. A take that is on its way is still handed over: its run would wait a lease for a sweeper otherwise."""
        self._stopping = True
        self._news.set()

    async def run(self) -> None:
        """Take work until stopped."""
        while not self._stopping:
            if self._slots > 0 and self._unknown:
                await self._look()
            elif self._slots > 0 and self._hot:
                await self._ask(next(iter(self._hot)))
            else:
                await self._rest(LOOK_AROUND)

    async def _look(self) -> None:
        # Known before looking: what comes while the answer is on its way has a hint of its own.
        self._unknown = False
        try:
            # Shards of one agent come apart from each other, so that an agent with work in all of them does not hold the others up.
            found = await self._work.filled(self._agents)
        except StoreUnavailable:
            self._unknown = True
            await self._pause()
            return
        except Exception:
            _log.exception("worker.look_failed")
            return
        self.wake(found)

    async def _pause(self) -> None:
        self._failures += 1
        await self._rest(random.uniform(0.5, 1.0) * min(0.05 * 2 ** min(self._failures, 8), _LONGEST_PAUSE), deaf=True)

    async def _ask(self, queue: tuple[str, str]) -> None:
        # Out of the list before asking: a wake that comes while the answer is on its way puts it back.
        del self._hot[queue]
        agent, shard = queue
        try:
            found = await self._work.take(agent, self._consumer, shard=shard)
        except StoreUnavailable:
            self._hot.setdefault(queue)
            await self._pause()
            return
        except Exception:
            # One queue that cannot be read, whatever is wrong with it, must not end the worker of all others; it is looked at again with
            # the next hint or look around.
            _log.exception("worker.take_failed", agent=agent, shard=shard)
            return
        self._failures = 0
        for delivery in found:
            self._hot.setdefault(queue)
            self._slots -= 1
            self._begin(delivery)

    async def _rest(self, seconds: float, *, deaf: bool = False) -> None:
        """Pause until there is news, or (`deaf`: only) until the time is over."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds * random.uniform(0.8, 1.0)):
                while True:
                    await self._news.wait()
                    if self._stopping or not deaf:
                        return
                    self._news.clear()
        if not deaf:
            self.wake(None)
