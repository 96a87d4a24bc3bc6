"""Workers in other languages: claim a run, and do to it what the SDK does, under the same fence."""

import asyncio
from typing import TypeVar

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..core.run import RunRecord
from ..store import Claim, Lease
from .auth import permitted
from .bodies import NoQuery
from .claims import Claims
from .service import Call, answer
from .waiters import Ask
from .wire import wire_of
from .worker_answers import (
    AppendAnswer,
    FinishAnswer,
    ReleaseAnswer,
    RenewAnswer,
    claim_answer,
    intend_answer,
    park_answer,
)
from .worker_bodies import (
    EVENTS_DEPTH,
    AppendEvents,
    ClaimRun,
    CommitCall,
    FinishRun,
    IntendCall,
    ParkRun,
    ReleaseRun,
    RenewLease,
)
from .worker_facts import claim_name, drafts, effect_call, effect_of, ending, lease_of, limit_ms

T = TypeVar("T")
_PARTS_OF_A_LEASE = 3


class _Handed:
    """The answer that hands a run over. A client that has left by then is not the owner of anything."""

    def __init__(self, response: Response, claim: Claim, claims: Claims) -> None:
        self._response, self._claim, self._claims = response, claim, claims

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wire = wire_of(scope)
        try:
            if wire is not None and wire.lost:
                raise asyncio.CancelledError
            await self._response(scope, receive, send)
        except asyncio.CancelledError:
            self._claims.give_back(self._claim.lease)
            raise


async def claim_run(call: Call) -> ASGIApp:
    """``POST /worker/claims``."""
    call.query(NoQuery)
    body = await call.body(ClaimRun)
    await call.authorise()

    async def may(record: RunRecord) -> bool:
        return await permitted(call.service.authorizer, call.principal, "work", record)

    ask = Ask(
        agents=tuple(dict.fromkeys(body.agents)),
        worker=body.worker,
        max_losses=body.attempts,
        backoff_ms=round(body.backoff * 1000),
        name=claim_name(call.principal, body.claim_id),
        may=may,
        caller=call.principal,
    )
    call.leave_with_client()
    async with call.service.held.one(call.principal):
        claim = await call.service.claims.claim(ask, call.patience(body.wait))
    if claim is None:
        return Response(status_code=204, headers={"cache-control": "no-store"})
    told = claim_answer(claim, seconds=call.service.settings.lease)
    return _Handed(answer(told, cache_control="no-store"), claim, call.service.claims)


async def append_events(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/append``."""
    body = await _read(call, AppendEvents, depth=EVENTS_DEPTH)
    events = drafts(body, call.service.settings.max_payload)
    done = await call.service.store.work.append(await _lease(call, body.fence), body.batch, events)
    return answer(AppendAnswer(sequence=done.sequence, cancel_version=done.cancel_version), cache_control="no-store")


async def intend_call(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/intent``."""
    body = await _read(call, IntendCall)
    planned = effect_call(body, call.service.settings.max_payload)
    lease = await _lease(call, body.fence)
    intended = await call.service.store.work.intend(lease, planned, again=body.again or not body.mutating)
    return answer(intend_answer(lease.run_id, body.tool_call_id, intended), cache_control="no-store")


async def commit_call(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/receipt``."""
    body = await _read(call, CommitCall)
    record = await call.run()
    effect = await effect_of(call.service.store, record, body, call.service.settings.max_payload)
    done = await call.service.store.work.commit(lease_of(record, body.fence), effect, why=body.why)
    return answer(AppendAnswer(sequence=done.sequence, cancel_version=done.cancel_version), cache_control="no-store")


async def park_run(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/park``."""
    body = await _read(call, ParkRun)
    limit = limit_ms(body)
    lease = await _lease(call, body.fence)
    parked = await call.service.store.work.park(
        lease, wait_id=body.wait_id, reason=body.reason, prompt=body.prompt, timeout_ms=limit, sleep=body.sleep
    )
    return answer(park_answer(parked), cache_control="no-store")


async def finish_run(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/finish``."""
    body = await _read(call, FinishRun)
    outcome, error = ending(body, call.service.settings.max_payload)
    done = await call.service.store.work.finish(await _lease(call, body.fence), state=body.state, outcome=outcome, error=error)
    return answer(FinishAnswer(state=done.state, disposition=done.disposition, sequence=done.sequence), cache_control="no-store")


async def renew_lease(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/renew``."""
    body = await _read(call, RenewLease)
    work, seconds = call.service.store.work, call.service.settings.lease
    lease = await _lease(call, body.fence)
    if body.wait == 0:
        renewed = await work.renew(lease)
    else:
        call.leave_with_client()
        async with call.service.held.one(call.principal), call.service.claims.listening(lease.run_id) as hint:
            renewed = await work.renew(lease)
            if renewed.cancel_version <= body.cancel_version:
                await hint(min(body.wait, seconds / _PARTS_OF_A_LEASE))
                renewed = await work.renew(lease)
    return answer(RenewAnswer(seconds=seconds, cancel_version=renewed.cancel_version), cache_control="no-store")


async def release_run(call: Call) -> ASGIApp:
    """``POST /worker/runs/{run_id}/release``."""
    body = await _read(call, ReleaseRun)
    lease = await _lease(call, body.fence)
    await call.service.store.work.release(lease, cause=body.cause)
    return answer(ReleaseAnswer(run_id=lease.run_id), cache_control="no-store")


async def _read(call: Call, kind: type[T], *, depth: int = 1) -> T:
    call.query(NoQuery)
    return await call.body(kind, depth=depth)


async def _lease(call: Call, fence: str) -> Lease:
    return lease_of(await call.run(), fence)
