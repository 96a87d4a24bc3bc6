"""Commands on a run: stop it, answer it."""

from time import monotonic

from starlette.types import ASGIApp

from ..core.cancel import PENDING
from ..core.payload import check_json
from ..core.run import TERMINAL_STATES
from ..core.snapshot import Snapshot
from ..obs.metrics import CANCELS
from .answers import cancel_answer, input_answer
from .bodies import CancelQuery, CancelRun, GiveInput, NoQuery
from .service import Call, answer


async def _decided(call: Call, run_id: str, seconds: float) -> Snapshot:
    """The snapshot once the run has ended, or as it is when the time is over."""
    end = monotonic() + seconds
    while True:
        snapshot = await call.snapshot(run_id)
        left = end - monotonic()
        if snapshot.state in TERMINAL_STATES or left <= 0:
            return snapshot
        if await call.news(run_id, snapshot.sequence, left) <= snapshot.sequence:
            # The time is over, or news cannot be waited for now: look once more, but do not spin.
            end = 0.0


async def cancel_run(call: Call) -> ASGIApp:
    """``POST /agent-runs/{run_id}/cancel``."""
    query = call.query(CancelQuery)
    body = await call.body(CancelRun)
    key, fingerprint = call.key()
    run_id = (await call.run()).run_id
    by = call.principal.subject
    reply = await call.service.store.runs.cancel(run_id, by=by, reason=body.reason, key=key, fingerprint=fingerprint)
    snapshot = await _decided(call, run_id, query.wait if reply.disposition == PENDING else 0)
    disposition = reply.disposition
    if disposition == PENDING:
        # It may have been decided between the two reads: what the snapshot says is what happened.
        disposition = snapshot.cancel.disposition or PENDING
    CANCELS.labels(disposition).inc()
    return answer(cancel_answer(snapshot, disposition), 202 if disposition == PENDING else 200, cache_control="no-store")


async def give_input(call: Call) -> ASGIApp:
    """``POST /agent-runs/{run_id}/inputs``."""
    call.query(NoQuery)
    body = await call.body(GiveInput)
    key, fingerprint = call.key()
    value = check_json(bytes(body.value), max_bytes=call.service.settings.max_payload, what="value", want_object=False)
    run_id = (await call.run()).run_id
    by = call.principal.subject
    sequence = await call.service.store.runs.answer(run_id, wait_id=body.wait_id, value=value, by=by, key=key, fingerprint=fingerprint)
    return answer(input_answer(run_id, body.wait_id, sequence), 202, cache_control="no-store")
