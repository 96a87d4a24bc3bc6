"""What a handler is given: the `Run`."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..core.errors import InvalidRequest
from ..core.payload import from_json
from .effects import Policy
from .message import Message
from .parts import Parts
from .recall import history
from .receipt import Receipt

_ROLES = 32


class PastEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the run's log.

    Attributes:
        sequence: Its place in the log.
        type: e.g. ``tool.completed``.
        payload: The decoded payload.
        at: When it was appended, milliseconds on the Redis server's clock.
    """

    sequence: int
    type: str
    payload: dict[str, Any]
    at: int


class Run:
    """One run, as its handler works on it.

    A handler may be run more than once for one run: after a wait, and after its worker was lost or stopped. It then runs **again from the
    top**. What already happened is answered from the record: effects return their receipts without calling their functions, waits return
    their answers, and what was already said is not said again (see `emit` and `message`). For this to hold, a handler asks for its effects
    and waits in the same order every time; where it does not, it fails with ``nondeterminism`` instead of guessing. Anything the handler
    does outside `effect` is done again.

    When the run must stop (cancelled, the lease lost, the worker stopping), the handler is unwound: its task is cancelled, at once while it
    awaits something, and at the latest at its next call here. A mutating effect that has begun is always finished and recorded first.
    A handler that catches `asyncio.CancelledError` and returns is believed: a cancelled run then ends as succeeded.

    Attributes:
        run_id: The run.
        attempt: 1 in the first attempt; 2 and more after a worker was lost or stopped. Waiting does not change it.
        agent: The agent's name.
        tenant: Whose run it is.
        initiator: Who started it.
        session_id: The session it belongs to.
        parent_run_id: The run that started it.
        resource_scope: What it is about.
        release_id: The release it was started with.
        model_policy: As given at creation.
        tool_catalog: As given at creation.
        input_version: As given at creation.
    """

    def __init__(self, parts: Parts) -> None:
        """Made by the worker."""
        record = parts.claim.record
        self.run_id, self.attempt, self.agent = record.run_id, parts.claim.lease.attempt, record.agent
        self.tenant, self.initiator, self.session_id = record.tenant, record.initiator, record.session_id
        self.parent_run_id, self.resource_scope, self.release_id = record.parent_run_id, record.resource_scope, record.release_id
        self.model_policy, self.tool_catalog, self.input_version = record.model_policy, record.tool_catalog, record.input_version
        self._parts = parts

    @cached_property
    def input(self) -> Any:
        """The decoded input; integers of any size are exact."""
        return from_json(self._parts.claim.record.input)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The decoded metadata."""
        return from_json(self._parts.claim.record.metadata)

    @property
    def last_sequence(self) -> int:
        """The latest sequence of the log that this worker knows of; it may be behind by what others (a cancel request) wrote."""
        return self._parts.hold.sequence

    async def history(self) -> list[PastEvent]:
        """All events of the run so far, those of earlier attempts included. Deltas that a later event covers may be missing."""
        parts = self._parts
        parts.hold.check()
        await parts.appender.flush()
        return [
            PastEvent(sequence=e.sequence, type=e.type, payload=from_json(e.payload), at=e.at)
            async for e in history(parts.events, parts.hold)
        ]

    async def emit(self, type: str, payload: Mapping[str, Any], *, resource_scope: str | None = None) -> None:
        """Append an event. It returns when the event is on its way; order is kept, and a full queue makes it wait.

        When the handler runs again, an event with the same type and payload as one that an earlier pass appended is recognised and not
        appended a second time. ``message.*`` and ``tool.*`` events and progress are always appended.

        Args:
            type: e.g. ``invoice.drafted``; not ``run.`` or ``input.``, which only Reattach writes.
            payload: A JSON object.
            resource_scope: What the event is about, where that is not the run's own scope.

        Raises:
            InvalidRequest: The type, payload or scope is not valid.
            PayloadTooLarge: The payload is larger than the deployment allows.
        """
        await self._parts.output.emit(type, payload, resource_scope)

    def message(self, *, role: str = "assistant") -> Message:
        """Begin a message: ``async with run.message() as message: await message.write("…")``.

        When the handler runs again, a message with the same role and text as one that an earlier pass completed is recognised, and nothing
        is appended. As soon as the text differs it becomes a new message, under an id of its own.

        Raises:
            InvalidRequest: The role is empty or longer than 32 characters.
        """
        if not 0 < len(role) <= _ROLES:
            raise InvalidRequest(f"a role has 1 to {_ROLES} characters", field="role")
        return Message(self._parts.output, role)

    async def effect(
        self,
        name: str,
        fn: Callable[..., Any],
        args: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        read_only: bool = False,
        timeout: float | None = None,
        on_unresolved: Policy = "stop",
    ) -> Receipt:
        """Call a tool at most once in the run's life, and keep its receipt.

        ``fn(**args)`` is called, on the loop if it is ``async``, else in a thread. A parameter named ``idempotency_key`` is filled with
        a key that is the same for every try of this call. What it returns (any JSON value) is the result; members named ``receipt_id`` and
        ``result_version`` of a returned object, or a returned `Receipt`, name the receipt.

        Args:
            name: Name of the tool, e.g. ``tickets.add_note``.
            fn: The function.
            args: Its keyword arguments; a JSON object.
            call_id: What makes it the same call in every attempt. Left out, its place in the order of effects does, and arguments must
                then be the same too. 1 to 128 of ``A-Z a-z 0-9 _ . : # / @ -``.
            read_only: The tool changes nothing: it may run again, be interrupted, and does not count when a run is cancelled.
            timeout: Seconds the function may take. A mutating one that exceeds it is unresolved, since it may have happened.
            on_unresolved: What to do when it is unknown whether an earlier try took effect: ``"stop"`` parks the run until a person says
                what happened (``reattach runs resolve``), ``"retry"`` calls `fn` with the same idempotency key, ``"fail"`` raises. Or a
                function that is called like `fn` and looks: it returns what `fn` would have, or None where nothing happened.

        Raises:
            EffectFailed: The function raised, now or in an earlier attempt.
            EffectUnresolved: It is unknown whether it took effect, and `on_unresolved` did not settle it. Not caught, the run fails with
                ``effect_unresolved``.
            Nondeterminism: An earlier attempt called something else under this id.
            InvalidRequest: An argument is not valid, or the result has no JSON form (the receipt is recorded all the same).
        """
        plan = self._parts.effects.plan(name, fn, args, call_id=call_id, read_only=read_only, timeout=timeout, on_unresolved=on_unresolved)
        return await self._parts.carry_out(plan)

    async def wait_for(self, reason: str, *, prompt: str | None = None, timeout: float | None = None) -> Any:
        """Wait for an answer from outside, however long it takes, without holding a worker.

        The run is parked: this handler is unwound here and runs again from the top when ``POST /agent-runs/{id}/inputs`` has answered,
        on any worker; this call then returns the answer. Messages that are open are ended first.

        Args:
            reason: What is waited for, e.g. ``approval``. Part of the ``wait_id``.
            prompt: What to ask a person.
            timeout: Seconds after which the run fails with ``wait_expired``, on the Redis server's clock.

        Raises:
            InvalidRequest: The limit is not positive, or this is called inside a tool.
        """
        return await self._parts.waits.wait_for(reason, prompt=prompt, timeout=timeout)

    async def sleep(self, seconds: float, *, park: bool | None = None) -> None:
        """Sleep; a cancel request ends it at once.

        Args:
            seconds: How long.
            park: Whether to give the worker back meanwhile (the handler then runs again from the top). Left out: from two minutes on.

        Raises:
            InvalidRequest: The time is negative, or this is called inside a tool.
        """
        await self._parts.waits.sleep(seconds, park=park)
