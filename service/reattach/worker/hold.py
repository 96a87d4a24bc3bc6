"""A worker's hold on one run: whether the run is still ours, and whether its handler must stop.

Reasons to stop are ranked: a hold that is lost stays lost whatever is asked of it later. They reach the handler in two ways, whichever
comes first: at its next boundary (any call on `Run`), or as a cancelled task while it awaits something. Being cancelled is what async code
is prepared for anyway; ``except Exception`` does not catch it.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from ..core.errors import LeaseLost, RunClosed, StoreUnavailable
from ..core.receipt import EffectCall

if TYPE_CHECKING:
    from ..store.leases import Claim

T = TypeVar("T")

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LONGEST_PAUSE: Final = 1.0

current_call: ContextVar[EffectCall | None] = ContextVar("current_call", default=None)
"""The tool call that the running code is part of."""


def clock() -> float:
    """Seconds that pass here: immune to clock steps and, where the system can, counting time spent suspended."""
    return time.clock_gettime(_CLOCK)


class Stop(IntEnum):
    """Why a handler must stop; a higher reason replaces a lower one."""

    DRAIN = 1
    """The process is stopping: the run goes back to the queue."""
    CANCEL = 2
    """Somebody asked for it."""
    PARKED = 3
    """The run waits; no worker owns it."""
    LOST = 4
    """The lease is lost or the run has ended: nothing this worker writes would be taken."""


class Interrupt(asyncio.CancelledError):
    """Unwinds a handler at one of its boundaries."""


class Hold:
    """One acquisition of one run, from claim to its end here. Belongs to the worker's loop; `until` may be set from the renewing thread.

    Attributes:
        lease: What the store knows it by.
        until: The time on `clock` up to which the lease certainly lasts.
        stop: Why the handler must stop, once it must.
        told: Whether the handler was interrupted.
        sequence: The latest sequence this worker knows of.
    """

    def __init__(self, claim: "Claim", *, since: float, seconds: float) -> None:
        """Begin with a claim.

        Args:
            claim: From the store.
            since: `clock` before the claim was sent, so that no delay on the way can lengthen the lease.
            seconds: The lease time.
        """
        self.lease = claim.lease
        self.seconds = seconds
        self.until = since + seconds
        self.stop: Stop | None = None
        self.told = False
        self.sequence = claim.record.sequence
        self._delivered = 0
        self._busy = 0
        self._handler: asyncio.Task[Any] | None = None
        self._tools: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.get_running_loop()
        self.saw(self.sequence, claim.record.cancel_version)

    def bind(self, handler: "asyncio.Task[Any]") -> None:
        """Name the task that is cancelled when the handler has to stop."""
        self._handler = handler
        self._deliver()

    def bind_tool(self, tool: "asyncio.Task[Any]") -> None:
        """Name a task that is cancelled when the run is not ours any more."""
        self._tools.add(tool)
        tool.add_done_callback(self._tools.discard)

    @property
    def lost(self) -> bool:
        """Whether nothing can be written for this run any more."""
        return self.stop is not None and self.stop >= Stop.PARKED

    @property
    def busy(self) -> bool:
        """Whether a mutating effect is under way."""
        return self._busy > 0

    def halt(self, reason: Stop) -> None:
        """Stop the handler: at once when the run is not ours any more, otherwise as soon as no mutating effect is under way."""
        if self.stop is None or self.stop < reason:
            self.stop = reason
            self._deliver()

    def halt_soon(self, reason: Stop) -> None:
        """`halt` from another thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: there is nothing left to stop
            self._loop.call_soon_threadsafe(self.halt, reason)

    def _deliver(self) -> None:
        if self.stop is None or self._delivered >= self.stop or (self._busy and not self.lost):
            return
        current = asyncio.current_task()
        for tool in self._tools if self.lost else ():
            if tool is not current:
                tool.cancel()
        # A handler that stops itself raises at its boundary; cancelling it too would hit its clean-up.
        if self._handler is not None and self._handler is not current and self._handler.cancel():
            self._tell()

    def _tell(self) -> None:
        self.told = True
        self._delivered = self.stop or 0

    def check(self) -> None:
        """A boundary: go on only if the run is ours and nobody asked to stop. Inside a mutating tool only the former counts.

        Raises:
            Interrupt: The handler must unwind.
        """
        self.check_time()
        call = current_call.get()
        if self.stop is not None and not (self._busy and call is not None and call.mutating):
            self._refuse()

    def check_time(self) -> None:
        """Make sure that the lease lasts at this very moment: a process that was suspended must not act on a claim of the past.

        Raises:
            Interrupt: It has run out.
        """
        if clock() > self.until and not self.lost:
            self.halt(Stop.LOST)
        if self.lost:
            self._refuse()

    def give_way(self, reason: Stop) -> NoReturn:
        """`halt`, and unwind whoever learned of the reason: the store has said it before anybody else did.

        Raises:
            Interrupt: Always.
        """
        self.halt(reason)
        self._refuse()

    def _refuse(self) -> NoReturn:
        if asyncio.current_task() is self._handler:
            self._tell()
        self.told = True
        raise Interrupt(self.stop.name if self.stop else "")

    def saw(self, sequence: int, cancel_version: int) -> None:
        """Take note of what a reply said."""
        self.sequence = max(self.sequence, sequence)
        if cancel_version > 0:
            self.halt(Stop.CANCEL)

    @contextlib.contextmanager
    def uninterrupted(self) -> Generator[None]:
        """While a mutating effect is under way, asking to stop waits for its receipt."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._deliver()

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Send one of the worker's commands until the store answers. All of them are idempotent.

        Raises:
            Interrupt: The run is not ours any more, or the store was away for longer than the lease lasts.
        """
        pause = 0.05
        while True:
            if self.lost:  # a tool that outlived its worker may end up here; it would be refused
                raise Interrupt(Stop.LOST.name)
            try:
                return await call()
            except StoreUnavailable:
                self.check_time()
                await asyncio.sleep(random.uniform(0.5, 1.0) * pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except (LeaseLost, RunClosed):
                self.halt(Stop.LOST)
                raise Interrupt(Stop.LOST.name) from None
