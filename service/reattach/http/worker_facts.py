"""From a worker's body to what the store takes: opaque values are checked here, and what only makes sense together."""

import msgspec

from ..core.errors import EffectUnresolved, InvalidRequest, LeaseLost
from ..core.event import Draft, check_type
from ..core.ids import digest
from ..core.payload import check_json
from ..core.receipt import Effect, EffectCall
from ..core.run import RunRecord
from ..store import Lease, Store
from .auth import Principal
from .claims import CONSUMER
from .worker_bodies import AppendEvents, CommitCall, Failure, FinishRun, IntendCall, ParkRun


def claim_name(principal: Principal, claim_id: str | None) -> str | None:
    """What a claim is found by when it is sent again: a name belongs to who gave it."""
    return None if claim_id is None else digest("claim", principal.tenant, principal.subject, claim_id)


def lease_of(record: RunRecord, fence: str) -> Lease:
    """The lease that a fence is a proof of, if it is one: the store's commands decide.

    What the lease needs beyond the fence is in the record. It may change before the command runs, but only together with the fence.
    """
    return Lease(
        run_id=record.run_id,
        agent=record.agent,
        fence=fence,
        entry=record.entry or "",
        consumer=CONSUMER,
        attempt=record.attempt,
        session=record.session,
    )


def drafts(body: AppendEvents, max_payload: int) -> list[Draft]:
    """The events of a batch.

    Raises:
        InvalidRequest: A type or payload is not allowed.
        PayloadTooLarge: A payload is too large.
    """
    found: list[Draft] = []
    for i, event in enumerate(body.events):
        payload = check_json(bytes(event.payload), max_bytes=max_payload, what=f"events[{i}].payload")
        found.append(Draft(check_type(event.type), payload, event.resource_scope))
    return found


def effect_call(body: IntendCall, max_payload: int) -> EffectCall:
    """A call that is about to be made.

    Raises:
        InvalidRequest: Its arguments are not acceptable JSON.
        PayloadTooLarge: They are too large.
    """
    given = b"{}" if isinstance(body.arguments, msgspec.UnsetType) else bytes(body.arguments)
    arguments = check_json(given, max_bytes=max_payload, what="arguments")
    return EffectCall(call_id=body.tool_call_id, tool=body.tool, arguments=arguments, mutating=body.mutating)


async def effect_of(store: Store, record: RunRecord, body: CommitCall, max_payload: int) -> Effect:
    """What is recorded of a call that was made: its intention, and what became of it.

    Raises:
        InvalidRequest: The body says what does not go with its status, or its result is not acceptable JSON.
        PayloadTooLarge: The result is too large.
        LeaseLost: Another owner, or nobody, holds the run.
        EffectUnresolved: No intention is recorded.
        StoreUnavailable: Redis cannot be reached.
    """
    _only(body.status == "receipt", body.receipt_id is not None or body.result_version is not None or _given(body.result), "a receipt")
    _only(body.status == "failed", body.error is not None, "an error")
    _only(body.status == "unresolved", body.why is not None, "a why")
    if body.status == "failed" and body.error is None:
        raise InvalidRequest("error is missing: say how it failed", field="error")
    result = check_value(body.result, max_payload, "result")
    intention = await store.work.effect(record.run_id, body.tool_call_id)
    if intention is None:
        if record.fence != body.fence:
            raise LeaseLost()
        raise EffectUnresolved(f"tool call {body.tool_call_id} has no recorded intention")
    receipt_id = body.receipt_id or f"receipt_{digest(record.run_id, body.tool_call_id)[:20]}"
    return msgspec.structs.replace(
        intention,
        status=body.status,
        receipt_id=receipt_id if body.status == "receipt" else None,
        result_version=body.result_version,
        result=result,
        error=failure(body.error),
    )


def ending(body: FinishRun, max_payload: int) -> tuple[bytes | None, bytes | None]:
    """Outcome and error of a run's end, as JSON text.

    Raises:
        InvalidRequest: The body says what does not go with its state, or its outcome is not acceptable JSON.
        PayloadTooLarge: The outcome is too large.
    """
    _only(body.state == "succeeded", _given(body.outcome), "an outcome")
    _only(body.state == "failed", body.error is not None, "an error")
    if body.state == "failed" and body.error is None:
        raise InvalidRequest("error is missing: say how the run failed", field="error")
    return check_value(body.outcome, max_payload, "outcome"), failure(body.error)


def limit_ms(body: ParkRun) -> int | None:
    """A wait's limit in milliseconds.

    Raises:
        InvalidRequest: It is a sleep without an end.
    """
    if body.timeout is None and body.sleep:
        raise InvalidRequest("timeout is missing: say how long to sleep", field="timeout")
    return None if body.timeout is None else max(1, round(body.timeout * 1000))


def check_value(value: msgspec.Raw | msgspec.UnsetType, max_payload: int, what: str) -> bytes | None:
    """Any JSON value; None when there is none.

    Raises:
        InvalidRequest: It is not acceptable JSON.
        PayloadTooLarge: It is too large.
    """
    if isinstance(value, msgspec.UnsetType):
        return None
    return check_json(bytes(value), max_bytes=max_payload, what=what, want_object=False)


def failure(given: Failure | None) -> bytes | None:
    """An error as events and snapshots have it."""
    return None if given is None else msgspec.json.encode({"code": given.code, "message": given.message or given.code})


def _given(value: msgspec.Raw | msgspec.UnsetType) -> bool:
    return not isinstance(value, msgspec.UnsetType)


def _only(fits: bool, given: bool, what: str) -> None:
    if given and not fits:
        raise InvalidRequest(f"{what} does not go with this", field="status")
