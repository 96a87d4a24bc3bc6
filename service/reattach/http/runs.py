"""Runs: create, list, show."""

import re
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.run import RunRecord
from ..core.snapshot import Snapshot
from ..obs.metrics import RUNS_CREATED
from .answers import RunList, summary
from .auth import permitted
from .bodies import CreateRun, ListQuery, NoQuery, ShowQuery, new_run, planned
from .joining import check_joining
from .service import Call, answer

LOOK_AT: Final = 1000
"""Runs that one request looks at to find those that were asked for, about."""

_TAG: Final = re.compile(r'(?:W/)?"([^"]*)"')


def etag(sequence: int) -> str:
    """A snapshot's tag: the sequence it is the fold of."""
    return f'"{sequence}"'


def not_modified(header: str, tag: int | str) -> bool:
    """Whether an If-None-Match header names this tag, given without its quotes (weak comparison, RFC 9110 section 13.1.2)."""
    return header.strip() == "*" or str(tag) in _TAG.findall(header)


def _shown(snapshot: Snapshot, status: int = 200, **headers: str) -> Response:
    return answer(snapshot, status, etag=etag(snapshot.sequence), **headers)


async def create_run(call: Call) -> ASGIApp:
    """``POST /agent-runs``."""
    call.query(NoQuery)
    body = await call.body(CreateRun)
    key, fingerprint = call.key()
    await call.authorise(planned(body, call.principal))
    await check_joining(call, body.session_id)
    new = new_run(body, call.principal, call.service.settings)
    created = await call.service.store.runs.create(new, key=key, fingerprint=fingerprint, limited=True)
    snapshot = await call.snapshot(created.record.run_id)
    if created.replayed:
        return _shown(snapshot, 200, location=snapshot.links["self"], idempotency_replayed="true")
    RUNS_CREATED.inc()
    return _shown(snapshot, 201, location=snapshot.links["self"])


async def list_runs(call: Call) -> ASGIApp:
    """``GET /agent-runs``."""
    query = call.query(ListQuery)
    await call.authorise()

    async def allowed(record: RunRecord) -> bool:
        return await permitted(call.service.authorizer, call.principal, "read", record)

    page = await call.service.store.runs.page(
        call.principal.tenant,
        state=query.state,
        session_id=query.session_id,
        agent=query.agent,
        limit=query.limit,
        before=query.before,
        allowed=allowed,
        look_at=LOOK_AT,
    )
    return answer(RunList(runs=tuple(summary(record) for record in page.runs), next_before=page.next_before))


async def show_run(call: Call) -> ASGIApp:
    """``GET /agent-runs/{run_id}``."""
    query = call.query(ShowQuery)
    record = await call.run()
    known = ",".join(call.request.headers.getlist("if-none-match"))
    current = known == "" or not_modified(known, record.sequence)
    if query.wait and current and not record.terminal:
        await call.news(record.run_id, record.sequence, query.wait)
        await call.run()  # what was allowed when the wait began may not be any more
    snapshot = await call.snapshot(record.run_id)
    if not_modified(known, snapshot.sequence):
        return Response(status_code=304, headers={"etag": etag(snapshot.sequence), "cache-control": "private, no-cache"})
    return _shown(snapshot)
