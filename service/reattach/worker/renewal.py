"""Leases are renewed from a thread of their own, with a loop and a connection of their own.

A handler that blocks the worker's loop for minutes therefore keeps its lease, as long as it lets other threads run at all. Each lease is
renewed every third of its time. When it was not renewed for its whole time, counted on a clock that no one can step and from before the
last successful renewal was sent, it is taken for lost and its handler is stopped, whatever the store might say later.
"""

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable
from typing import Final

import structlog

from ..core.errors import LeaseLost, RunClosed, StoreUnavailable
from ..core.settings import Settings
from ..store import Store
from .hold import Hold, Stop, clock

_PARTS: Final = 3
_PAUSE: Final = 0.1
_log = structlog.get_logger("reattach.worker")


class Renewal:
    """Keeps the leases of one worker. All methods are called from the worker's loop."""

    def __init__(self, settings: Settings) -> None:
        """Prepare; `start` makes the thread."""
        self._settings = settings
        self._thread = threading.Thread(target=self._main, name="reattach-renewal", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._keepers: dict[Hold, asyncio.Task[None]] = {}
        self._hurry: dict[Hold, asyncio.Event] = {}
        self._store = Store(settings)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        self._ready.wait()

    async def stop(self) -> None:
        """End the thread and close its connection."""
        if self._loop is not None and self._stop is not None:
            self._call(self._stop.set)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def add(self, hold: Hold) -> None:
        """Keep a lease from now on."""
        self._call(self._keep, hold)

    def remove(self, hold: Hold) -> None:
        """Keep it no longer."""
        self._call(self._drop, hold)

    def hurry(self) -> None:
        """Renew every lease now: hints may have been missed, and a renewal brings cancel requests along."""
        self._call(lambda: [event.set() for event in self._hurry.values()])

    def _call(self, function: Callable[..., object], *args: object) -> None:
        assert self._loop is not None, "the renewal was not started"
        with contextlib.suppress(RuntimeError):  # the thread has ended: nothing is kept any more
            self._loop.call_soon_threadsafe(function, *args)

    def _main(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            tasks = list(self._keepers.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._store.close()

    def _keep(self, hold: Hold) -> None:
        self._hurry[hold] = asyncio.Event()
        self._keepers[hold] = asyncio.create_task(self._renew_for_ever(hold), name=f"renew {hold.lease.run_id}")

    def _drop(self, hold: Hold) -> None:
        self._hurry.pop(hold, None)
        if (task := self._keepers.pop(hold, None)) is not None:
            task.cancel()

    async def _renew_for_ever(self, hold: Hold) -> None:
        hurry = self._hurry[hold]
        # Spread over time: leases that were claimed together are not renewed together for ever.
        # Counted from before the claim was sent: on a busy loop a good part of the lease may be over when its answer is read.
        spent = hold.seconds - (hold.until - clock())
        pause: float | None = random.uniform(0.7, 1.0) * hold.seconds / _PARTS - spent
        while pause is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(pause, hold.until - clock()))):
                    await hurry.wait()
            hurry.clear()
            if clock() > hold.until:
                _log.warning("run.lease_ran_out", run_id=hold.lease.run_id, attempt=hold.lease.attempt)
                hold.halt_soon(Stop.LOST)
                return
            pause = await self._renew(hold)

    async def _renew(self, hold: Hold) -> float | None:
        """Send one renewal; seconds until the next, None for never."""
        sent = clock()
        try:
            # The store may take longer to give up than the lease lasts.
            async with asyncio.timeout(max(0.0, hold.until - sent)):
                renewed = await self._store.work.renew(hold.lease)
        except (StoreUnavailable, TimeoutError):
            return _PAUSE
        except (LeaseLost, RunClosed):
            hold.halt_soon(Stop.LOST)
            return None
        except Exception:
            _log.exception("run.renewal_failed", run_id=hold.lease.run_id, attempt=hold.lease.attempt)
            return _PAUSE
        hold.until = sent + hold.seconds
        if renewed.cancel_version > 0:
            hold.halt_soon(Stop.CANCEL)
        return random.uniform(0.8, 1.0) * hold.seconds / _PARTS - (clock() - sent)
