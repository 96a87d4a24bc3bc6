"""One process's worker: takes runs, works on them, hands them over when it stops."""

import asyncio
import os
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ..core.errors import StoreUnavailable
from ..core.ids import new_token
from ..core.settings import Settings
from ..store import Claim, Delivery, Store, Wake
from .attempt import Attempt
from .hold import Hold, Interrupt, Stop, clock
from .intake import Intake
from .registry import Agents
from .renewal import Renewal

_MARGIN: Final = 2.0
_LEAST_MARGIN: Final = 0.5
_PAUSE: Final = 0.2
_log = structlog.get_logger("reattach.worker")


class Worker:
    """Runs agents until it is told to stop.

    It looks after leases, timers and ended runs of all workers as well (`Sweep`), so a deployment needs no other process for that.
    """

    def __init__(self, store: Store, agents: Agents, settings: Settings, *, name: str | None = None) -> None:
        """Prepare a worker.

        Args:
            store: An open store of this loop. Its settings say where Redis is, for a connection of its own that renews leases, and how
                long they last.
            agents: What it can run.
            settings: `concurrency` and `grace`.
            name: For people, in ``run.started``; by default host and process number.
        """
        self._store, self._agents, self._settings = store, agents, settings
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        # Every worker is a new consumer: two that share a name would take each other's deliveries for their own.
        self._consumer = f"{self.name}-{new_token()[:8]}"
        self._renewal = Renewal(store.settings)
        self._intake = Intake(store.work, agents, self._consumer, slots=settings.concurrency, begin=self._begin)
        self._tasks: dict[asyncio.Task[None], Attempt | None] = {}
        self._claiming: set[str] = set()
        self._asked: set[str] = set()
        self._hurried = asyncio.Event()
        self._stopping = False

    @property
    def active(self) -> int:
        """Runs it works on now."""
        return len(self._tasks)

    async def run(self) -> None:
        """Work until `stop`, then drain. Cancelled, it drops everything at once, as a crash would; the leases then run out.

        After `stop`, runs may finish within ``settings.grace``; the rest is handed back to the queue shortly before it ends, so that
        another worker goes on at once. No run is failed. A mutating effect is not interrupted: if it takes longer than the grace, its
        run is left to the lease.
        """
        self._renewal.start()
        helpers = [
            asyncio.create_task(_again_and_again("wakes", self._store.wakes(self._heard).run), name="worker wakes"),
            asyncio.create_task(self._store.sweep.run(tuple(self._agents)), name="worker sweep"),
        ]
        _log.info("worker.started", worker=self.name, agents=sorted(self._agents), concurrency=self._settings.concurrency)
        try:
            await self._intake.run()
            await self._drain()
            _log.info("worker.stopped", worker=self.name)
        finally:
            everything = [*helpers, *self._tasks]
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
            await self._renewal.stop()

    def stop(self) -> None:
        """Take no more work and drain; called again: hand over what is left without waiting for the grace to end."""
        if self._stopping:
            self._hurried.set()
        self._stopping = True
        self._intake.stop()

    def _heard(self, wake: Wake) -> None:
        self._intake.wake(None if wake.everything else wake.work)
        for attempt in self._tasks.values():
            if attempt is not None and attempt.hold.lease.run_id in wake.cancelled:
                attempt.hold.halt(Stop.CANCEL)
        # A request that comes after the claim was made and before its answer is here: nobody else would tell of it for a while.
        self._asked |= self._claiming & wake.cancelled
        if wake.everything:
            self._renewal.hurry()

    def _begin(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._serve(delivery), name=f"run {delivery.run_id}")
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        self._intake.free()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("worker.attempt_crashed", task=task.get_name(), exc_info=error)

    async def _serve(self, delivery: Delivery) -> None:
        since = clock()
        self._claiming.add(delivery.run_id)
        try:
            claim = await self._claim(delivery, since)
        finally:
            asked = delivery.run_id in self._asked
            self._claiming.discard(delivery.run_id)
            self._asked.discard(delivery.run_id)
        if claim is None:
            return
        hold = Hold(claim, since=since, seconds=self._store.settings.lease)
        if asked:
            hold.halt(Stop.CANCEL)
        attempt = Attempt(self._store, self._agents[delivery.agent], claim, hold)
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = attempt
        self._renewal.add(hold)
        try:
            await attempt.work()
        finally:
            self._renewal.remove(hold)
            # The run may be parked until a time that no other process knows of yet, or have ended.
            self._store.sweep.nudge()

    async def _claim(self, delivery: Delivery, since: float) -> Claim | None:
        agent = self._agents[delivery.agent]
        # One fence for all tries: where only the answer was lost the run is ours, and would be lost, an attempt with it, if nobody asked.
        fence = new_token()
        while True:
            try:
                return await self._store.work.claim(
                    delivery,
                    consumer=self._consumer,
                    worker=self.name,
                    max_losses=agent.attempts,
                    backoff_ms=round(agent.backoff * 1000),
                    fence=fence,
                )
            except StoreUnavailable as e:
                if self._stopping or clock() - since > self._store.settings.lease:
                    # The entry, or the lease nobody knows of, is found by a sweep.
                    _log.warning("worker.claim_failed", run_id=delivery.run_id, error=str(e))
                    return None
                await asyncio.sleep(random.uniform(0.5, 1.0) * _PAUSE)

    async def _drain(self) -> None:
        margin = min(_MARGIN, max(_LEAST_MARGIN, self._settings.grace / 4))
        if self._tasks:
            _log.info("worker.draining", worker=self.name, runs=len(self._tasks), grace=self._settings.grace)
        await self._all_ended(self._settings.grace - margin, or_hurried=True)
        for attempt in self._attempts():
            attempt.hold.halt(Stop.DRAIN)
        await self._all_ended(margin)
        stuck = [a for a in self._attempts() if not a.hold.busy and not a.hold.lost]
        for attempt, result in zip(stuck, await asyncio.gather(*map(_leave, stuck), return_exceptions=True), strict=True):
            if isinstance(result, Exception):
                _log.error("worker.hand_back_failed", run_id=attempt.hold.lease.run_id, error=str(result))

    def _attempts(self) -> list[Attempt]:
        return [attempt for attempt in self._tasks.values() if attempt is not None]

    async def _all_ended(self, seconds: float, *, or_hurried: bool = False) -> None:
        deadline = clock() + seconds
        hurry = asyncio.create_task(self._hurried.wait())
        try:
            while self._tasks and (left := deadline - clock()) > 0 and not (or_hurried and hurry.done()):
                waited = {*self._tasks, hurry} if or_hurried else set(self._tasks)
                await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()


async def _leave(attempt: Attempt) -> None:
    """Hand back a run whose handler does not end, for as long as that may take now."""
    try:
        async with asyncio.timeout(_MARGIN):
            await attempt.hand_back()
    except Interrupt:
        pass
    attempt.hold.halt(Stop.LOST)


async def _again_and_again(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Keep a background task going, whatever happens in it."""
    while True:
        try:
            await run()
        except Exception:
            _log.exception("worker.helper_failed", helper=name)
        await asyncio.sleep(random.uniform(0.5, 1.0))
