"""Events on their way into the log: in batches that grow with the load, one batch in flight, numbered within the lease."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

import structlog

from ..core.errors import PayloadTooLarge, TooManyRequests
from ..core.event import Draft
from .hold import Hold, Interrupt, Stop

if TYPE_CHECKING:
    from ..store.leases import Appended
    from ..store.work import Work

MAX_EVENTS: Final = 64
MAX_BYTES: Final = 256 * 1024
HIGH_EVENTS: Final = 512
HIGH_BYTES: Final = 1024 * 1024
_LOOK: Final = 1.0

_log = structlog.get_logger("reattach.worker")


class Appender:
    """One run's queue of events.

    The first event leaves at once; what is offered while a batch is on its way leaves together as the next one. An event is never joined
    with another or dropped: one `put` is one event, in this order.

    Attributes:
        full: Why nothing more is taken: the run has appended as much as one may. What was offered since is not in the log.
    """

    def __init__(self, work: "Work", hold: Hold) -> None:
        """Append under a hold."""
        self._work, self._hold = work, hold
        self._waiting: deque[Draft] = deque()
        self._bytes = 0
        self._number = 0
        self._pump: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._slowed = False
        self.full: PayloadTooLarge | None = None

    async def put(self, draft: Draft) -> None:
        """Offer an event. Returns when it is in the queue, which has a bound: a handler faster than Redis is slowed down here.

        Raises:
            PayloadTooLarge: The run has appended as much as one may.
            Interrupt: The run is not ours any more.
        """
        while len(self._waiting) >= HIGH_EVENTS or self._bytes >= HIGH_BYTES:
            self._hold.check_time()
            self._moved.clear()
            await self._moved.wait()
        self._check_room()
        self._waiting.append(draft)
        self._bytes += len(draft.payload)
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name=f"append {self._hold.lease.run_id}")
        # A handler that never awaits anything else would otherwise see its first event leave only when the queue is full.
        await asyncio.sleep(0)

    async def flush(self) -> None:
        """Wait until everything offered so far is in the log.

        Raises:
            PayloadTooLarge: It will never be: the run has appended as much as one may.
            Interrupt: It will never be: the run is not ours any more.
        """
        while self._pump is not None:
            # The batch on its way belongs to the run, not to whoever waits for it here.
            await asyncio.shield(self._pump)
        if self._hold.lost:
            raise Interrupt(Stop.LOST.name)
        self._check_room()

    def _check_room(self) -> None:
        if self.full is not None:
            raise PayloadTooLarge(self.full.detail)

    async def close(self) -> None:
        """Drop what is left, when the run is not ours any more."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait({self._pump})

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._send(self._cut())
        except Interrupt:
            pass
        except PayloadTooLarge as e:
            _log.warning("run.full", run_id=self._hold.lease.run_id, why=e.detail)
            self.full = e
            self._waiting.clear()
            self._bytes = 0
        except Exception:
            _log.exception("run.append_failed", run_id=self._hold.lease.run_id, attempt=self._hold.lease.attempt)
            self._hold.halt(Stop.LOST)
        finally:
            if self._hold.lost:
                self._waiting.clear()
            self._pump = None
            self._moved.set()

    def _cut(self) -> list[Draft]:
        batch: list[Draft] = []
        size = 0
        while self._waiting and len(batch) < MAX_EVENTS:
            size += len(self._waiting[0].payload)
            if batch and size > MAX_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send(self, batch: list[Draft]) -> None:
        number = self._number + 1
        done = await self._appended(number, batch)
        self._number = number
        self._bytes -= sum(len(draft.payload) for draft in batch)
        self._moved.set()
        self._hold.saw(done.sequence, done.cancel_version)

    async def _appended(self, number: int, batch: list[Draft]) -> "Appended":
        while True:
            try:
                return await self._hold.insist(lambda: self._work.append(self._hold.lease, number, batch))
            except TooManyRequests as e:
                if not self._slowed:
                    _log.warning("run.slowed_down", run_id=self._hold.lease.run_id, why=e.detail)
                self._slowed = True
                # Looking up now and then: the run may be taken from us, or be stopped, meanwhile.
                await asyncio.sleep(min(_LOOK, e.retry_after or _LOOK))
