"""Runs for workers in other languages: who waits is matched with what is queued, by one reader per process.

A claim belongs to this process until it is handed out, never to the request that asked for it: a client that leaves cancels its request and
nothing else. What was claimed for it goes back to the queue at once. A queue may hold runs of many tenants: it is looked at, and what a
worker may not have stays in it for others. While nobody asks and nothing is queued this costs Redis one blocked connection.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from ..core.errors import Forbidden, ReattachError, RunNotFound, StoreUnavailable, TooManyRequests
from ..core.ids import new_token
from ..core.run import RunRecord
from ..store import Claim, Delivery, Handout, Lease, Store, Wake
from .auth import Principal
from .queues import Queues
from .waiters import Ask, Waiter, Waiters

CONSUMER: Final = "http"
"""The reader's name in the consumer groups: one for all processes, since any of them may be asked to renew a lease."""

MOST_WAITING: Final = 1000
LOOK_AROUND: Final = 60.0
_LONGEST_LOOK: Final = 10.0
_LONGEST_CLOSE: Final = 3.0
_GONE: Final = "worker_gone"
_log = structlog.get_logger("reattach.claims")

Hint = Callable[[float], Awaitable[None]]
"""Waits until a run was asked to stop, at most this many seconds."""


class Claims:
    """The runs that this process hands out. Nothing happens before somebody asks."""

    def __init__(self, store: Store) -> None:
        """Prepare."""
        self._store = store
        self._queues = Queues(store.work.shards)
        self._waiters = Waiters()
        self._named: dict[str, Waiter] = {}
        self._news = asyncio.Event()
        self._listening: dict[str, set[asyncio.Event]] = {}
        self._helpers: list[asyncio.Task[None]] = []
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._busy: set[str] = set()
        self._leftover: set[tuple[str, str]] = set()

    async def claim(self, ask: Ask, seconds: float) -> Claim | None:
        """The next run of one of these agents; None when there is none in this time.

        Cancelled, it leaves nothing behind: a run that was claimed for it meanwhile is given back.

        Args:
            ask: What for.
            seconds: How long to wait; 0: until every queue was looked at.

        Raises:
            Forbidden: The run that it was given before may not be its any more.
            TooManyRequests: Too many wait here already.
            StoreUnavailable: Redis cannot be reached, or this process is stopping.
        """
        if ask.name is not None and (claim := await self._repeated(ask.name, ask)) is not None:
            return claim
        if self._closing:
            raise StoreUnavailable("this process is stopping", reason="stopping")
        if len(self._waiters) >= MOST_WAITING:
            raise TooManyRequests(f"{MOST_WAITING} workers wait here already; try again, perhaps another process answers")
        self._begin()
        waiter = Waiter(ask)
        self._supersede(waiter)
        self._wait_on(waiter)
        try:
            return await _answered(waiter, seconds)
        except asyncio.CancelledError:
            if not waiter.answer.cancel() and not waiter.answer.exception() and (lost := waiter.answer.result()) is not None:
                self.give_back(lost.lease)
            raise
        finally:
            self._waiters.remove(waiter)
            if ask.name is not None and self._named.get(ask.name) is waiter:
                del self._named[ask.name]

    @asynccontextmanager
    async def listening(self, run_id: str) -> AsyncGenerator[Hint]:
        """Hear of requests to stop a run for the length of a block."""
        self._begin()
        event = asyncio.Event()
        heard = self._listening.setdefault(run_id, set())
        heard.add(event)

        async def hint(seconds: float) -> None:
            if not self._closing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await event.wait()

        try:
            yield hint
        finally:
            heard.discard(event)
            if not heard:
                self._listening.pop(run_id, None)

    def give_back(self, lease: Lease) -> None:
        """Release a claim whose worker is gone, without waiting for it."""
        self._spawn(self._release(lease))

    async def close(self) -> None:
        """Answer everybody who waits, and give back what nobody gets."""
        self._closing = True
        self._news.set()
        for waiter in self._waiters.everybody():
            waiter.give(None)
        self._stop_hints(None)
        for task in self._helpers:
            task.cancel()
        # A claim that is on its way is waited for: its run would wait a lease for a sweeper otherwise. Not for ever, in an outage.
        deadline = time.monotonic() + _LONGEST_CLOSE
        while (pending := self._under_way()) and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*self._helpers, *pending, return_exceptions=True)

    def _under_way(self) -> set[asyncio.Task[None]]:
        return self._tasks | ({self._reader} if self._reader is not None and not self._reader.done() else set())

    def _begin(self) -> None:
        if self._reader is not None or self._closing:
            return
        self._reader = asyncio.create_task(_for_ever("claims", self._read, lambda: self._closing), name="reattach-claims")
        wakes = self._store.wakes(self._heard)
        # Where all workers are far away nobody else looks after their leases and their waits.
        for name, work in (("wakes", wakes.run), ("sweep", lambda: self._store.sweep.run(self._queues.agents))):
            self._helpers.append(asyncio.create_task(_for_ever(name, work, lambda: self._closing), name=f"reattach-claims-{name}"))

    def _heard(self, wake: Wake) -> None:
        self._queues.wake(None if wake.everything else wake.work)
        self._news.set()
        self._stop_hints(None if wake.everything else wake.cancelled)

    def _stop_hints(self, runs: frozenset[str] | None) -> None:
        for run_id in self._listening if runs is None else runs:
            for event in self._listening.get(run_id, ()):
                event.set()

    def _supersede(self, waiter: Waiter) -> None:
        if (name := waiter.ask.name) is None:
            return
        # Sent again while the first one still waits: its client has lost that connection, though nobody here has noticed.
        if (first := self._named.get(name)) is not None:
            first.give(None)
        self._named[name] = waiter

    def _wait_on(self, waiter: Waiter) -> None:
        waiter.serving = False
        if waiter.answer.done():
            return
        if self._closing or waiter.late:
            waiter.give(None)
            return
        self._waiters.add(waiter)
        for agent in waiter.ask.agents:
            self._queues.want(agent)
            self._queues.wake([(agent, shard) for shard in self._store.work.shards if (agent, shard) in self._leftover])
        self._news.set()

    async def _read(self) -> None:
        """Look for what somebody waits for, one run at a time, in each queue in turn."""
        while not self._closing:
            self._news.clear()
            queue = self._queues.next(self._waiters)
            if queue is not None:
                await self._ask(*queue)
                continue
            for waiter in self._waiters.everybody():
                waiter.was_looked_for()
            try:
                async with asyncio.timeout(LOOK_AROUND * random.uniform(0.8, 1.0)):
                    await self._news.wait()
            except TimeoutError:
                self._queues.wake(None)

    async def _ask(self, agent: str, shard: str) -> None:
        """Find the first run of a queue that somebody who waits may have. What nobody may have stays, and nobody hears of it."""
        after: str | None = ""
        self._leftover.discard((agent, shard))
        try:
            while after is not None:
                look = await self._store.queued.look(agent, shard, after)
                for delivery, record in look.waiting:
                    if delivery.run_id not in self._busy and (waiter := await self._fitting(agent, record)) is not None:
                        self._queues.wake([(agent, shard)])
                        self._busy.add(delivery.run_id)
                        self._spawn(self._serve(delivery, waiter))
                        return
                if look.waiting:
                    # For a worker that is not here yet, or that may have what those who are here may not.
                    self._leftover.add((agent, shard))
                after = look.after
        except StoreUnavailable as e:
            self._queues.wake([(agent, shard)])
            for waiter in self._waiters.everybody(agent):
                self._waiters.remove(waiter)
                waiter.fail(e)

    async def _fitting(self, agent: str, record: RunRecord) -> Waiter | None:
        """Who has waited longest of those that may work on this run; it waits no more, it is served."""
        answers: dict[Principal | None, bool] = {}
        for waiter in self._waiters.everybody(agent):
            caller = waiter.ask.caller
            if caller is None or caller not in answers:
                try:
                    answers[caller] = await waiter.ask.may(record)
                except ReattachError as e:
                    self._waiters.remove(waiter)
                    waiter.fail(e)
                    continue
            if answers[caller] and self._waiters.pick(waiter):
                return waiter
        return None

    async def _serve(self, delivery: Delivery, waiter: Waiter) -> None:
        """Claim a run for a worker, or let it wait on."""
        try:
            claim = await self._own(delivery, waiter)
        except Exception as e:
            if not isinstance(e, ReattachError):
                _log.exception("claims.failed", run_id=delivery.run_id)
            # Before the refusal is told: who asks again must not find the run under way.
            self._left(delivery)
            waiter.fail(e)
            return
        self._left(delivery)
        if claim is None:
            self._wait_on(waiter)
        elif not waiter.give(claim):
            await self._release(claim.lease)

    def _left(self, delivery: Delivery) -> None:
        """A run is under way no more: it was claimed, here or elsewhere, or waits on."""
        self._busy.discard(delivery.run_id)
        self._store.queued.forget(delivery.agent, delivery.shard, delivery.entry)
        self._queues.wake([(delivery.agent, delivery.shard)])
        self._news.set()

    async def _own(self, delivery: Delivery, waiter: Waiter) -> Claim | None:
        if waiter.answer.done():
            return None
        ask, handout = waiter.ask, Handout(delivery=delivery, fence=new_token())
        if ask.name is not None:
            handout = await self._store.handouts.keep(ask.name, handout)
            if handout.delivery != delivery:
                # The same claim was sent twice and the other one was faster: both get that one.
                return await self._repeated(ask.name, ask)
        claim = await self._claimed(handout, ask)
        if claim is None and ask.name is not None:
            await self._store.handouts.forget(ask.name)
        return claim

    async def _repeated(self, name: str, ask: Ask) -> Claim | None:
        """The claim that this name stands for, while its lease lasts."""
        handout = await self._store.handouts.find(name)
        if handout is None:
            return None
        await self._check(handout.delivery.run_id, ask)
        claim = await self._claimed(handout, ask)
        if claim is not None:
            try:
                await self._store.work.renew(claim.lease)
                return claim
            except ReattachError as e:
                if e.retryable:
                    raise
        await self._store.handouts.forget(name)
        return None

    async def _check(self, run_id: str, ask: Ask) -> None:
        with contextlib.suppress(RunNotFound):  # its entry goes with the claim that is tried
            if not await ask.may(await self._store.runs.load(run_id)):
                raise Forbidden(f"work on runs like the next one of {', '.join(ask.agents)} is not allowed to this caller")

    async def _claimed(self, handout: Handout, ask: Ask) -> Claim | None:
        return await self._store.work.claim(
            handout.delivery,
            consumer=CONSUMER,
            worker=ask.worker,
            max_losses=ask.max_losses,
            backoff_ms=ask.backoff_ms,
            fence=handout.fence,
        )

    async def _release(self, lease: Lease) -> None:
        try:
            await self._store.work.release(lease, cause=_GONE)
            _log.info("run.handed_back", run_id=lease.run_id, attempt=lease.attempt, cause=_GONE)
        except ReattachError as e:
            _log.info("run.not_handed_back", run_id=lease.run_id, attempt=lease.attempt, error=e.code)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="reattach-claim")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _answered(waiter: Waiter, seconds: float) -> Claim | None:
    wanted = {waiter.answer, waiter.looked} if seconds == 0 else {waiter.answer}
    await asyncio.wait(wanted, timeout=seconds or _LONGEST_LOOK, return_when=asyncio.FIRST_COMPLETED)
    waiter.late = True
    if not waiter.serving:
        waiter.give(None)
    # Not the future itself: who is cancelled here still wants to know what it was given.
    await asyncio.wait({waiter.answer})
    return waiter.answer.result()


async def _for_ever(name: str, work: Callable[[], Awaitable[None]], over: Callable[[], bool]) -> None:
    while not over():
        try:
            await work()
        except Exception:
            _log.exception("claims.helper_failed", helper=name)
            await asyncio.sleep(1)
