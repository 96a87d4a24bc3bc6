"""One claimed run, from its claim to its end here: succeeded, failed, cancelled, parked, handed back, or lost.

What the run becomes is decided by what really happened, in this order:

1. It is not ours any more (lease lost, ended, parked): nothing is written.
2. The handler returned: succeeded, also when a cancel request was on its way. Only a handler that was interrupted because the worker stops
   is not believed: the run goes back to the queue, or a deploy could end it half done.
3. The handler was interrupted, or raised while it was being interrupted: cancelled, or handed back.
4. The handler raised: failed.
"""

import asyncio
import contextlib
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import structlog

from ..core.errors import InvalidRequest, PayloadTooLarge
from .context import Run
from .hold import Hold, Interrupt, Stop
from .message import Message
from .outcome import CANCELLED, Ending, RunFailed, failed, succeeded
from .parts import Parts
from .recall import Recall, history
from .registry import Agent

if TYPE_CHECKING:
    from ..store import Claim, Store

DRAIN_CAUSE: Final = "drain"
_UNWIND: Final = 1.0
_log = structlog.get_logger("reattach.worker")


class Attempt:
    """Works on one claimed run.

    Attributes:
        hold: What may stop it, and what its lease is renewed by.
    """

    def __init__(self, store: "Store", agent: Agent, claim: "Claim", hold: Hold) -> None:
        """Prepare; `work` does it."""
        self.hold = hold
        self._store, self._agent, self._claim = store, agent, claim
        self._log = _log.bind(run_id=claim.lease.run_id, attempt=claim.lease.attempt, agent=agent.name)

    async def work(self) -> None:
        """Run the handler and end the run. Cancelled, it drops everything as a crash would: the lease runs out by itself."""
        parts: Parts | None = None
        try:
            parts = Parts(self._store, self._claim, self.hold, await self._remember())
            handler = asyncio.create_task(_drive(self._agent, Run(parts)), name=f"handler {self._claim.lease.run_id}")
            self.hold.bind(handler)
            try:
                await asyncio.wait({handler})
                if not self.hold.lost:
                    with contextlib.suppress(PayloadTooLarge):  # told as the run's failure
                        await parts.settle()
                await self._conclude(handler, parts.appender.full)
            except asyncio.CancelledError:
                # Also what the handler does while it unwinds must not be written: a crash would not have written it.
                self.hold.halt(Stop.LOST)
                raise
            finally:
                await self._unwind(handler)
        except Interrupt:
            self._tell_why()
        finally:
            if parts is not None:
                await parts.close()

    def _tell_why(self) -> None:
        parked = self.hold.stop is Stop.PARKED
        self._log.info("run.parked" if parked else "run.given_up", **({} if parked else {"reason": self._reason()}))

    async def hand_back(self) -> None:
        """Return the run to its queue without waiting for its handler. Nothing the handler still tries would be taken.

        Raises:
            Interrupt: It was not ours any more.
        """
        await self.hold.insist(lambda: self._store.work.release(self.hold.lease, cause=DRAIN_CAUSE))
        self._log.info("run.handed_back")

    async def _remember(self) -> Recall:
        recall = Recall()
        if self._claim.lease.attempt > 1 or self._claim.resumed:
            async for event in history(self._store.events, self.hold):
                recall.add(event)
        return recall

    async def _conclude(self, handler: "asyncio.Task[Any]", full: PayloadTooLarge | None) -> None:
        stop = self.hold.stop
        if self.hold.lost:
            self._tell_why()
        elif stop is Stop.DRAIN and self.hold.told:
            await self.hand_back()
        else:
            ending = self._ending(handler, cancelled=stop is Stop.CANCEL and self.hold.told)
            # Also where the handler did not mind: a run whose log lacks what it said has not succeeded.
            await self._finish(failed(full) if full is not None and ending.state == "succeeded" else ending)

    def _ending(self, handler: "asyncio.Task[Any]", *, cancelled: bool) -> Ending:
        error = asyncio.CancelledError() if handler.cancelled() else handler.exception()
        if error is None:
            return succeeded(handler.result(), self._store.settings.max_payload)
        if cancelled:
            if isinstance(error, Exception):
                self._log.warning("run.handler_failed_while_stopping", error=type(error).__name__)
            return CANCELLED
        if isinstance(error, RunFailed):
            self._log.info("run.handler_gave_up", code=error.code)
        else:
            self._log.warning("run.handler_failed", error=type(error).__name__, exc_info=error)
        return failed(error)

    async def _finish(self, ending: Ending) -> None:
        done = await self.hold.insist(
            lambda: self._store.work.finish(self.hold.lease, state=ending.state, outcome=ending.outcome, error=ending.error)
        )
        # What the handler left running can do nothing more for this run.
        self.hold.halt(Stop.LOST)
        self._log.info("run.finished", state=done.state, disposition=done.disposition, sequence=done.sequence)

    async def _unwind(self, handler: "asyncio.Task[Any]") -> None:
        if handler.done():
            return
        handler.cancel()
        await asyncio.wait({handler}, timeout=_UNWIND)
        if handler.done() and not handler.cancelled():
            handler.exception()  # nobody else will ask

    def _reason(self) -> str:
        return self.hold.stop.name.lower() if self.hold.stop else "unknown"


async def _drive(agent: Agent, run: Run) -> Any:
    try:
        if agent.generator:
            return await _consume(agent, run)
        made: Any = agent.handler(run)
        return await made
    except SystemExit as e:
        # As it is, it would end the worker, and with it every other run here.
        raise RuntimeError(f"the handler called sys.exit({e.code!r})") from e


async def _consume(agent: Agent, run: Run) -> None:
    """Run a handler that is an async generator.

    A yielded string is text of the current message, which the first string opens. A yielded ``(type, payload)`` is an event; it leaves the
    message open unless its type begins with ``message.``. The end of the generator ends the message.
    """
    message: Message | None = None
    generator: Any = agent.handler(run)
    async with aclosing(generator):
        try:
            async for item in generator:
                match item:
                    case str(text):
                        message = message or await run.message().__aenter__()
                        await message.write(text)
                    case (str(kind), payload):
                        if message is not None and kind.startswith("message."):
                            await message.__aexit__(None, None, None)
                            message = None
                        await run.emit(kind, payload)
                    case _:
                        raise InvalidRequest(f"a handler yields strings and (type, payload) pairs, not {type(item).__name__}")
        except BaseException as e:
            if message is not None:
                await message.__aexit__(type(e), e, e.__traceback__)
            raise
    if message is not None:
        await message.__aexit__(None, None, None)
