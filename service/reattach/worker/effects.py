"""Tools: intention, call, receipt. A call id is run at most once, or it is said that nobody knows.

The intention is recorded before the function runs, in the same command that checks the lease and a cancel request. If the process dies
before the receipt, the next attempt finds an intention without one: it may have happened. That is settled by policy, never by silently
running it again:

- ``"stop"``: the run is parked, for as long as it takes, until a person who has looked says what happened (``reattach runs resolve``, or
  ``POST …/inputs`` with a `core.verdict.Verdict`). It happened: that becomes the receipt. It did not: the tool runs again. Inside another
  tool nothing can wait; there it is as ``"fail"``.
- ``"retry"``: the function is called again, with the same idempotency key.
- ``"fail"``: `EffectUnresolved` is raised, and the run fails with it unless the handler knows better.
- a function: it is asked whether the effect is there. It is called like the tool's own function and returns what that would have
  returned; None or False means that it did not happen, and then the tool runs.

A mutating tool that exceeds its timeout is unresolved in the same way, at once. A read-only tool simply runs again.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import structlog

from ..core.errors import EffectFailed, EffectUnresolved, InvalidRequest, Nondeterminism
from ..core.payload import from_json, to_json
from ..core.receipt import Effect, EffectCall
from .appender import Appender
from .calling import call
from .hold import Hold, Interrupt, Stop, current_call
from .operator import Verdicts
from .operator import to_receipt as receipt_of
from .outcome import described, error_json
from .receipt import Receipt, to_effect, to_receipt

if TYPE_CHECKING:
    from ..store.work import Work

Policy = Literal["stop", "retry", "fail"] | Callable[..., Any]

TOOL_PATTERN: Final = r"^[A-Za-z0-9_.:/-]{1,128}$"
TOOL_ERROR: Final = "tool_error"
TIMEOUT: Final = "timeout"
UNWIND: Final = 1.0
MOST_TRIES: Final = 2
"""Times one attempt runs the same call: once, and once more where ``"retry"`` or a probe says so."""

_log = structlog.get_logger("reattach.worker")


class Plan(msgspec.Struct, kw_only=True):
    """One call of `Run.effect`."""

    call: EffectCall
    fn: Callable[..., Any]
    arguments: Mapping[str, Any]
    key: str
    timeout: float | None
    policy: Policy
    tries: int = 0
    waiting: int = 0


class Effects:
    """The tool calls of one run under one hold."""

    def __init__(
        self, work: "Work", hold: Hold, appender: Appender, earlier: Mapping[str, Effect], verdicts: Verdicts, *, max_bytes: int
    ) -> None:
        """Start from what earlier attempts recorded."""
        self._work, self._hold, self._appender, self._max_bytes = work, hold, appender, max_bytes
        self._verdicts = verdicts
        self._known = dict(earlier)
        self._running: dict[str, tuple[Plan, asyncio.Task[Receipt]]] = {}
        self._count = 0
        self.gate = asyncio.Event()
        """Closed while the run is being parked: a tool that started then would end without a lease."""
        self.gate.set()

    def plan(
        self,
        tool: str,
        fn: Callable[..., Any],
        arguments: Mapping[str, Any] | None,
        *,
        call_id: str | None,
        read_only: bool,
        timeout: float | None,
        on_unresolved: Policy,
    ) -> Plan:
        """Check a call and give it its id: the handler's own, else its place in the order of calls.

        Raises:
            InvalidRequest: Tool name, arguments or policy are not valid.
            Nondeterminism: An earlier attempt called something else at this place.
        """
        if re.fullmatch(TOOL_PATTERN[1:-1], tool) is None:
            raise InvalidRequest(f"a tool's name matches {TOOL_PATTERN}", field="tool")
        if not callable(on_unresolved) and on_unresolved not in ("stop", "retry", "fail"):
            raise InvalidRequest('on_unresolved is "stop", "retry", "fail" or a function', field="on_unresolved")
        self._count += 1
        arguments = arguments or {}
        raw = to_json(arguments, max_bytes=self._max_bytes, what="arguments")
        chosen = call_id or f"call_{self._count}"
        planned = EffectCall(call_id=chosen, tool=tool, arguments=raw, mutating=not read_only)
        known = self._known.get(chosen)
        if known is not None:
            _compare(known, planned, by_place=call_id is None)
        key = f"{self._hold.lease.run_id}:{chosen}"
        return Plan(call=planned, fn=fn, arguments=arguments, key=key, timeout=timeout, policy=on_unresolved)

    async def run(self, plan: Plan) -> Receipt:
        """Carry a call to its receipt.

        Raises:
            EffectFailed: The function raised, now or in an earlier attempt.
            EffectUnresolved: It is unknown whether it took effect, and the policy does not settle it.
            Undecided: Only a person can settle it.
            Interrupt: The handler must unwind. A mutating call that had begun goes on without it.
        """
        if current_call.get() is None:  # a tool within a tool that began before the gate closed must not wait for its own end
            await self.gate.wait()
        self._hold.check()
        other, task = self._running.get(plan.call.call_id, (None, None))
        if other is not None and other.call.tool != plan.call.tool:
            raise Nondeterminism(f"call id {plan.call.call_id} is used by {other.call.tool} and {plan.call.tool} at the same time")
        if task is None:
            task = asyncio.create_task(self._perform(plan), name=f"effect {plan.key}")
            self._running[plan.call.call_id] = (plan, task)
            task.add_done_callback(lambda done: self._ended(plan, done))
            self._hold.bind_tool(task)
        begun = other or plan
        begun.waiting += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # A mutating call goes on, since its receipt must be recorded; a read-only one while another branch of the handler waits for it.
            if not begun.call.mutating and begun.waiting == 1:
                task.cancel()
                await asyncio.wait({task})
            raise
        finally:
            begun.waiting -= 1

    def _ended(self, plan: Plan, task: "asyncio.Task[Receipt]") -> None:
        del self._running[plan.call.call_id]
        if not task.cancelled():
            task.exception()  # the handler may be gone and never ask for it

    async def settle(self) -> None:
        """Wait until no mutating call is under way; read-only ones are cancelled."""
        while self._running:
            for plan, task in list(self._running.values()):
                if not plan.call.mutating:
                    task.cancel()
            await asyncio.wait([task for _, task in self._running.values()])

    async def close(self) -> None:
        """Cancel whatever is under way, and leave behind what does not stop soon."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=UNWIND)

    async def idle(self) -> None:
        """Wait until no call is under way."""
        while self._running:
            await asyncio.wait([task for _, task in self._running.values()])

    async def _perform(self, plan: Plan) -> Receipt:
        current_call.set(plan.call)
        with self._hold.uninterrupted() if plan.call.mutating else nullcontext():
            await self._appender.flush()
            return await self._intend(plan, again=not plan.call.mutating)

    async def _intend(self, plan: Plan, *, again: bool) -> Receipt:
        answer = await self._hold.insist(lambda: self._work.intend(self._hold.lease, plan.call, again=again))
        match answer.kind:
            case "go":
                self._hold.saw(answer.sequence, 0)
                return await self._execute(plan)
            case "unresolved":
                return await self._resolve(plan, "the worker was lost before its receipt was recorded", answer.sequence)
            case "cancelled":
                self._hold.give_way(Stop.CANCEL)
            case "receipt" | "failed":
                assert answer.effect is not None
                return self._recorded(answer.effect)

    def _recorded(self, effect: Effect) -> Receipt:
        self._known[effect.call_id] = effect
        if effect.status == "failed":
            raise _failure(effect)
        return to_receipt(effect, replayed=True)

    async def _execute(self, plan: Plan) -> Receipt:
        plan.tries += 1
        # A process that was suspended since the gate said yes may no longer own the run.
        self._hold.check_time()
        scope = asyncio.timeout(plan.timeout)
        try:
            async with scope:
                value = await call(plan.fn, plan.arguments, plan.key)
        except Interrupt:
            raise
        except asyncio.CancelledError as e:
            # Either we are stopped half way, and nobody knows what happened, or the function let a cancellation of its own through.
            task = asyncio.current_task()
            if self._hold.lost or (task is not None and task.cancelling()):
                raise
            return await self._fail(plan, TOOL_ERROR, described(e))
        except (Exception, SystemExit) as e:
            if not scope.expired():
                _log.warning("effect.failed", **self._facts(plan), error=type(e).__name__)
                return await self._fail(plan, TOOL_ERROR, described(e), cause=e)
            if plan.call.mutating:
                return await self._time_out(plan)
            return await self._fail(plan, TIMEOUT, f"no answer within {plan.timeout:g} s")
        return await self._succeed(plan, value)

    async def _succeed(self, plan: Plan, value: Any) -> Receipt:
        effect, problem = to_effect(self._hold.lease.run_id, plan.call, value, self._max_bytes)
        await self._commit(effect)
        if problem is not None:
            raise problem
        return to_receipt(effect, replayed=False)

    async def _fail(self, plan: Plan, code: str, message: str, cause: BaseException | None = None) -> Receipt:
        effect = self._effect(plan, "failed", error_json(code, message))
        await self._commit(effect)
        raise _failure(effect) from cause

    async def _time_out(self, plan: Plan) -> Receipt:
        sequence = await self._commit(self._effect(plan, "unresolved", None), why=TIMEOUT)
        return await self._resolve(plan, f"no answer within {plan.timeout:g} s", sequence)

    async def _resolve(self, plan: Plan, why: str, sequence: int) -> Receipt:
        unresolved = EffectUnresolved(
            f"whether {plan.call.tool} took effect is unknown: {why}", tool_call_id=plan.call.call_id, tool=plan.call.tool
        )
        if callable(plan.policy):
            try:
                found = await call(plan.policy, plan.arguments, plan.key)
            except (Exception, SystemExit) as e:  # a probe that exits must not end the worker, no more than a tool may
                _log.warning("effect.probe_failed", **self._facts(plan), error=type(e).__name__)
                raise unresolved from e
            if found is not None and found is not False:
                return await self._succeed(plan, found)
        elif plan.policy == "stop":
            verdict = self._verdicts.on(plan.call, sequence, unresolved)
            if verdict.happened:
                return await self._succeed(plan, receipt_of(verdict))
            return await self._intend(plan, again=True)
        if plan.policy == "fail" or plan.tries >= MOST_TRIES:
            raise unresolved
        return await self._intend(plan, again=True)

    async def _commit(self, effect: Effect, *, why: str | None = None) -> int:
        try:
            done = await self._hold.insist(lambda: self._work.commit(self._hold.lease, effect, why=why))
        except EffectUnresolved:
            # The store came back without the intention it had confirmed (a failover that lost writes). What happened is told all the same.
            await self._hold.insist(lambda: self._work.intend(self._hold.lease, effect.call, again=True))
            done = await self._hold.insist(lambda: self._work.commit(self._hold.lease, effect, why=why))
        self._known[effect.call_id] = effect
        self._hold.saw(done.sequence, done.cancel_version)
        return done.sequence

    def _effect(self, plan: Plan, status: Literal["failed", "unresolved"], error: bytes | None) -> Effect:
        made = plan.call
        return Effect(call_id=made.call_id, tool=made.tool, status=status, mutating=made.mutating, arguments=made.arguments, error=error)

    def _facts(self, plan: Plan) -> dict[str, Any]:
        lease = self._hold.lease
        return {"run_id": lease.run_id, "attempt": lease.attempt, "tool": plan.call.tool, "tool_call_id": plan.call.call_id}


def _compare(known: Effect, planned: EffectCall, *, by_place: bool) -> None:
    """Make sure that a place in the handler means the same call as before.

    Raises:
        Nondeterminism: It does not.
    """
    if known.tool != planned.tool:
        raise Nondeterminism(f"{planned.call_id} was {known.tool} in an earlier attempt, now it is {planned.tool}")
    # A name chosen by the handler says itself what is the same; a place says it only together with the arguments.
    if by_place and known.arguments != planned.arguments and (known.mutating or known.status != "intent"):
        raise Nondeterminism(f"{planned.call_id} ({planned.tool}) had other arguments in an earlier attempt; give it a call_id of its own")


def _failure(effect: Effect) -> EffectFailed:
    error: Any = from_json(effect.error or b"{}")
    return EffectFailed(
        f"{effect.tool} failed: {error.get('message', 'no reason is recorded')}",
        tool_call_id=effect.call_id,
        tool=effect.tool,
        error=error,
    )
