"""The part of the route table for workers in other languages."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.types import ASGIApp

from ..core.errors import BatchGap, EffectUnresolved, LeaseLost, Nondeterminism, ReattachError, RunClosed, StoreUnavailable, TooManyRequests
from .bodies import NoQuery
from .service import Call, Endpoint, Reply
from .worker import append_events, claim_run, commit_call, finish_run, intend_call, park_run, release_run, renew_lease
from .worker_answers import AppendAnswer, ClaimAnswer, FinishAnswer, IntendAnswer, ParkAnswer, ReleaseAnswer, RenewAnswer
from .worker_bodies import AppendEvents, ClaimRun, CommitCall, FinishRun, IntendCall, ParkRun, ReleaseRun, RenewLease

_JSON: Final = "application/json"


def _on_a_run(
    verb: str,
    handler: Callable[[Call], Awaitable[ASGIApp]],
    name: str,
    summary: str,
    body: type[Any],
    answer: type[Any],
    meaning: str,
    *errors: type[ReattachError],
) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/worker/runs/{{run_id}}/{verb}",
        handler=handler,
        name=name,
        summary=summary,
        action="work",
        query=NoQuery,
        body=body,
        answers={200: Reply(meaning=meaning, content={_JSON: answer})},
        errors=(*errors, LeaseLost, RunClosed, StoreUnavailable),
    )


WORKER_TABLE: Final = (
    Endpoint(
        method="POST",
        path="/worker/claims",
        handler=claim_run,
        name="claimRun",
        summary="Become the owner of the next run of some agents, waiting for one if there is none.",
        action="work",
        query=NoQuery,
        body=ClaimRun,
        answers={
            200: Reply(meaning="It is yours while the lease lasts; the same claim_id finds it again.", content={_JSON: ClaimAnswer}),
            204: Reply(meaning="None came in this time. Ask again."),
        },
        errors=(TooManyRequests, StoreUnavailable),
    ),
    _on_a_run(
        "append", append_events, "appendEvents", "Append a numbered batch of events, once however often it is sent.",
        AppendEvents, AppendAnswer, "They are in the log.", BatchGap,
    ),
    _on_a_run(
        "intent", intend_call, "intendCall", "Ask before a tool is called: whether it may be, or what became of it earlier.",
        IntendCall, IntendAnswer, "See kind.", Nondeterminism,
    ),
    _on_a_run(
        "receipt", commit_call, "commitCall", "Record what became of a tool call.",
        CommitCall, AppendAnswer, "It is in the log.", EffectUnresolved,
    ),
    _on_a_run("park", park_run, "parkRun", "Give the run up until it is answered or its time comes.", ParkRun, ParkAnswer, "See kind."),
    _on_a_run("finish", finish_run, "finishRun", "End the run.", FinishRun, FinishAnswer, "It has ended, as this says."),
    _on_a_run(
        "renew", renew_lease, "renewLease", "Keep the run, and hear whether it shall stop.", RenewLease, RenewAnswer, "It is still yours."
    ),
    _on_a_run(
        "release", release_run, "releaseRun", "Give the run back: another worker goes on.", ReleaseRun, ReleaseAnswer, "It is queued."
    ),
)  # fmt: skip
