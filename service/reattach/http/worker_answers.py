"""What workers in other languages are answered, as types."""

from typing import Annotated, Literal

import msgspec

from ..core.receipt import Effect, EffectStatus
from ..core.run import RunRecord
from ..store import Claim, Intended, Parked

Raw = msgspec.Raw
Meta = msgspec.Meta
Unset = msgspec.UnsetType

CancelVersion = Annotated[int, Meta(description="Above 0: somebody asked the run to stop.")]
Sequence = Annotated[int, Meta(description="The run's latest event after this.")]


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One acquisition of a run."""

    fence: Annotated[str, Meta(description="New at every acquisition; send it with everything you do to the run.")]
    seconds: Annotated[float, Meta(description="How long it lasts from when you asked, and from every renewal.")]
    next_batch: Annotated[int, Meta(description="Number of the next append.")]


class ClaimedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is yours."""

    run_id: str
    tenant: str
    initiator: str
    session_id: str | None
    parent_run_id: str | None
    agent: str
    resource_scope: str
    release_id: str
    model_policy: str | None
    tool_catalog: str | None
    input_version: str | None
    input: Raw
    metadata: Raw
    attempt: Annotated[int, Meta(description="1 at the first claim.")]
    sequence: Annotated[int, Meta(description="The latest event: what earlier attempts wrote is up to here.")]
    cancel_version: CancelVersion


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of a tool call."""

    tool_call_id: str
    tool: str
    status: Annotated[EffectStatus, Meta(description="intent: an earlier attempt was about to make it; nobody knows whether it did.")]
    mutating: bool
    arguments: Raw
    receipt_id: str | None
    result_version: str | None
    result: Raw | None
    error: Raw | None


class ClaimAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A run, and what earlier attempts left of it."""

    lease: Grant
    run: ClaimedRun
    resumed: Annotated[bool, Meta(description="It goes on after a wait, in the same attempt.")]
    effects: Annotated[dict[str, CallRecord], Meta(description="By tool_call_id.")]
    answers: Annotated[dict[str, Raw], Meta(description="What was answered, by wait_id.")]


class AppendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Events that are in the log."""

    sequence: Sequence
    cancel_version: CancelVersion


class IntendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate before a tool says."""

    kind: Annotated[
        Literal["go", "receipt", "failed", "unresolved", "cancelled"],
        Meta(
            description="go: make the call, then commit it. receipt, failed: it was made; see effect. unresolved: an earlier worker was "
            "lost in between; look whether it happened, or ask with again. cancelled: stop, and finish as cancelled."
        ),
    ]
    idempotency_key: Annotated[str, Meta(description="Give it to the tool: the same in every try of this call.")]
    effect: CallRecord | None


class ParkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wait."""

    kind: Annotated[
        Literal["parked", "answered", "cancelled"],
        Meta(description="parked: the run is not yours any more. answered: go on with value. cancelled: finish as cancelled."),
    ]
    value: Annotated[Raw | None, Meta(description="The answer.")]


class FinishAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended: the first who ended it decided."""

    state: str
    disposition: str | None
    sequence: Sequence


class RenewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that goes on."""

    seconds: Annotated[float, Meta(description="How long it lasts from now.")]
    cancel_version: CancelVersion


class ReleaseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The run is in the queue again."""

    run_id: str


def call_record(effect: Effect) -> CallRecord:
    """A stored tool call as a worker sees it."""
    return CallRecord(
        tool_call_id=effect.call_id,
        tool=effect.tool,
        status=effect.status,
        mutating=effect.mutating,
        arguments=Raw(effect.arguments),
        receipt_id=effect.receipt_id,
        result_version=effect.result_version,
        result=None if effect.result is None else Raw(effect.result),
        error=None if effect.error is None else Raw(effect.error),
    )


def claimed_run(record: RunRecord, attempt: int) -> ClaimedRun:
    """A claimed run as its worker sees it."""
    return ClaimedRun(
        run_id=record.run_id,
        tenant=record.tenant,
        initiator=record.initiator,
        session_id=record.session_id,
        parent_run_id=record.parent_run_id,
        agent=record.agent,
        resource_scope=record.resource_scope,
        release_id=record.release_id,
        model_policy=record.model_policy,
        tool_catalog=record.tool_catalog,
        input_version=record.input_version,
        input=Raw(record.input),
        metadata=Raw(record.metadata),
        attempt=attempt,
        sequence=record.sequence,
        cancel_version=record.cancel_version,
    )


def claim_answer(claim: Claim, *, seconds: float) -> ClaimAnswer:
    """The answer to a claim."""
    return ClaimAnswer(
        lease=Grant(fence=claim.lease.fence, seconds=seconds, next_batch=claim.record.batch + 1),
        run=claimed_run(claim.record, claim.lease.attempt),
        resumed=claim.resumed,
        effects={call_id: call_record(effect) for call_id, effect in claim.effects.items()},
        answers={wait_id: Raw(value) for wait_id, value in claim.answers.items()},
    )


def intend_answer(run_id: str, call_id: str, intended: Intended) -> IntendAnswer:
    """The answer to an intention."""
    effect = None if intended.effect is None else call_record(intended.effect)
    return IntendAnswer(kind=intended.kind, idempotency_key=f"{run_id}:{call_id}", effect=effect)


def park_answer(parked: Parked) -> ParkAnswer:
    """The answer to a wait."""
    return ParkAnswer(kind=parked.kind, value=None if parked.value is None else Raw(parked.value))
