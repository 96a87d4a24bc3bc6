"""Pauses that outlive the process: waiting for an answer, and long sleeps."""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import InvalidRequest
from ..core.payload import from_json
from .appender import Appender
from .effects import Effects
from .hold import Hold, Interrupt, Stop, current_call
from .output import Output

if TYPE_CHECKING:
    from ..store.work import Work

PARK_FROM: Final = 120.0
"""Sleeps of this many seconds and more give the worker back."""

_LONGEST_NAME: Final = 40


class Waits:
    """The waits of one run under one hold. Each has a name made of its reason and its place, the same in every pass."""

    def __init__(
        self, work: "Work", hold: Hold, *, appender: Appender, effects: Effects, output: Output, answers: Mapping[str, bytes]
    ) -> None:
        """Start from the answers earlier passes got."""
        self._work, self._hold, self._answers = work, hold, answers
        self._appender, self._effects, self._output = appender, effects, output
        self._count = 0
        self._closed = False
        self._lock = asyncio.Lock()

    def close(self) -> None:
        """The handler has ended: nothing it left running may park the run in place of its end."""
        self._closed = True

    async def wait_for(self, reason: str, *, prompt: str | None, timeout: float | None) -> Any:
        """Park the run until it is answered; the answer.

        Raises:
            InvalidRequest: The limit is not positive, or this is inside a tool.
            Interrupt: The run is parked now, or must stop.
        """
        wait_id = self._name(reason)
        return from_json(await self._pause(wait_id, reason=reason, prompt=prompt, seconds=timeout, sleep=False))

    async def ask(self, wait_id: str, *, reason: str, prompt: str) -> bytes:
        """Park the run until somebody answers a question that Reattach itself has; the answer's JSON text.

        Raises:
            Interrupt: The run is parked now, or must stop.
        """
        return await self._pause(wait_id, reason=reason, prompt=prompt, seconds=None, sleep=False)

    async def sleep(self, seconds: float, *, park: bool | None) -> None:
        """Sleep: in place when short, parked when long.

        Raises:
            InvalidRequest: The time is negative, or this is inside a tool.
            Interrupt: The run is parked now, or must stop.
        """
        wait_id = self._name("sleep")
        if seconds < 0:
            raise InvalidRequest("a time to sleep is not negative", field="seconds")
        self._hold.check()
        if wait_id in self._answers:
            return
        if park if park is not None else seconds >= PARK_FROM:
            await self._pause(wait_id, reason="sleep", prompt=None, seconds=max(seconds, 0.001), sleep=True)
            return
        await asyncio.sleep(seconds)
        self._hold.check()

    def _name(self, reason: str) -> str:
        if current_call.get() is not None:
            raise InvalidRequest("a tool cannot wait for an answer or sleep; wait in the handler, before or after it")
        self._count += 1
        slug = re.sub(r"[^a-z0-9]+", "_", reason.lower())[:_LONGEST_NAME].strip("_")
        return f"{slug or 'wait'}_{self._count}"

    async def _pause(self, wait_id: str, *, reason: str, prompt: str | None, seconds: float | None, sleep: bool) -> bytes:
        if seconds is not None and seconds <= 0:
            raise InvalidRequest("a limit is more than 0 seconds", field="timeout")
        self._check()
        # In every pass, also when the answer is there: messages must split at the same places to be recognised.
        await self._output.split()
        if wait_id in self._answers:
            return self._answers[wait_id]
        async with self._lock:
            self._effects.gate.clear()
            try:
                return await self._park(wait_id, reason=reason, prompt=prompt, seconds=seconds, sleep=sleep)
            finally:
                self._effects.gate.set()

    def _check(self) -> None:
        self._hold.check()
        if self._closed:
            raise Interrupt("ended")

    async def _park(self, wait_id: str, *, reason: str, prompt: str | None, seconds: float | None, sleep: bool) -> bytes:
        # Parking gives the lease up, so whatever needs it comes first.
        await self._effects.idle()
        await self._appender.flush()
        self._check()
        limit = None if seconds is None else max(1, round(seconds * 1000))
        parked = await self._hold.insist(
            lambda: self._work.park(self._hold.lease, wait_id=wait_id, reason=reason, prompt=prompt, timeout_ms=limit, sleep=sleep)
        )
        if parked.kind == "answered":
            return parked.value or b"null"
        self._hold.give_way(Stop.CANCEL if parked.kind == "cancelled" else Stop.PARKED)
