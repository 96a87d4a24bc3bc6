"""Sessions: make, list, show."""

import asyncio
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import IdempotencyKeyReused, NotFound, RunNotFound, SessionExists, SessionNotFound
from ..core.run import RunRecord
from ..core.session import NewSession, SessionRecord, as_run, goes_on
from ..store.checkpoints import Folded
from ..store.limits import Who
from ..store.sessions import new_session_id
from .answers import summary
from .auth import permitted
from .bodies import NoQuery
from .runs import LOOK_AT, etag, not_modified
from .service import Call, answer
from .session_bodies import (
    CreateSession,
    Session,
    SessionList,
    SessionMessage,
    SessionQuery,
    SessionRun,
    SessionsQuery,
    metadata_of,
    session_summary,
)

_MOST_MESSAGES: Final = 1000
_MOST_BYTES: Final = 1024 * 1024
"""What the messages of one answer may hold together; the newest ones are kept."""
_AT_ONCE: Final = 8


def session_id_of(call: Call) -> tuple[str, str]:
    """The session that a path names, and what follows it. A name may have a slash, which the path's client has encoded.

    Raises:
        NotFound: The path has more parts than any that is served.
    """
    raw: bytes = call.request.scope.get("raw_path") or call.request.url.path.encode()
    parts = raw.partition(b"?")[0].removeprefix(b"/sessions/").split(b"/")
    if len(parts) > 2 or (len(parts) == 2 and parts[1] != b"events"):
        raise NotFound()
    return unquote_to_bytes(parts[0]).decode("utf-8", "replace"), parts[1].decode() if len(parts) == 2 else ""


async def find_session(call: Call) -> SessionRecord:
    """The path's session, if the caller may do this to it.

    Raises:
        SessionNotFound: There is none of this name in the caller's tenant.
        Forbidden: The caller may not.
        StoreUnavailable: Redis cannot be reached.
    """
    record = await call.service.store.sessions.find(call.principal.tenant, session_id_of(call)[0])
    await call.authorise(as_run(record))
    return record


async def create_session(call: Call) -> ASGIApp:
    """``POST /sessions``."""
    call.query(NoQuery)
    body = await call.body(CreateSession)
    key, fingerprint = call.key()
    await call.authorise()
    principal = call.principal
    new = NewSession(
        session_id=body.session_id or new_session_id(key, principal.tenant, principal.subject),
        tenant=principal.tenant,
        initiator=principal.subject,
        policy=body.policy,
        metadata=metadata_of(body),
    )
    try:
        await _count(call, new)
        record, known = await call.service.store.sessions.create(new, key=key, fingerprint=fingerprint)
    except SessionExists:
        if body.session_id is None:
            raise IdempotencyKeyReused() from None
        raise
    shown = await show(call, record, SessionQuery())
    headers = {"location": shown.links["self"], "etag": etag(record.sequence)}
    return answer(shown, 200, **headers, idempotency_replayed="true") if known else answer(shown, 201, **headers)


async def _count(call: Call, new: NewSession) -> None:
    """Count a session that is not there yet against what its maker may make.

    Raises:
        TooManyRequests: It is one too many.
        StoreUnavailable: Redis cannot be reached.
    """
    try:
        await call.service.store.sessions.find(new.tenant, new.session_id)
    except SessionNotFound:
        await call.service.store.limits.count(Who(new.tenant, new.initiator), "sessions")


async def list_sessions(call: Call) -> ASGIApp:
    """``GET /sessions``."""
    query = call.query(SessionsQuery)
    await call.authorise()
    records, before = await call.service.store.sessions.page(call.principal.tenant, limit=query.limit, before=query.before)
    shown = [record for record in records if await permitted(call.service.authorizer, call.principal, "read", as_run(record))]
    return answer(SessionList(sessions=tuple(map(session_summary, shown)), next_before=before))


async def show_session(call: Call) -> ASGIApp:
    """``GET /sessions/{session_id}``."""
    query = call.query(SessionQuery)
    record = await find_session(call)
    known = ",".join(call.request.headers.getlist("if-none-match"))
    if query.wait and (known == "" or not_modified(known, record.sequence)):
        await call.news(record.name, record.sequence, query.wait)
        record = await find_session(call)
    if not_modified(known, record.sequence):
        return Response(status_code=304, headers={"etag": etag(record.sequence), "cache-control": "private, no-cache"})
    return answer(await show(call, record, query), etag=etag(record.sequence))


async def show(call: Call, record: SessionRecord, query: SessionQuery) -> Session:
    """A session with a page of its runs, as the caller may see them.

    What `record` says was read before its runs were: nothing after its sequence is missed by who goes on from there.
    """

    async def allowed(run: RunRecord) -> bool:
        return await permitted(call.service.authorizer, call.principal, "read", run)

    page = await call.service.store.runs.page(
        record.tenant, session_id=record.session_id, limit=query.limit, before=query.before, allowed=allowed, look_at=LOOK_AT
    )
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(run: RunRecord) -> tuple[SessionRun, list[SessionMessage], bool] | None:
        async with limit:
            return await _row(call, run)

    rows = [row for row in await asyncio.gather(*(one(run) for run in reversed(page.runs))) if row is not None]
    messages = [message for _, found, _ in rows for message in found]
    kept = _newest(messages)
    listed = {row.run_id: active for row, _, active in rows}
    active = [run_id for run_id in record.open if listed.get(run_id) or await _goes_on(call, run_id, listed)]
    active += [run_id for run_id, on in listed.items() if on and run_id not in active]
    facts = session_summary(record)
    return Session(
        **{name: getattr(facts, name) for name in facts.__struct_fields__},
        runs=tuple(row for row, _, _ in rows),
        active=tuple(active),
        messages=tuple(kept),
        messages_omitted=len(messages) - len(kept),
        next_before=page.next_before,
    )


async def _goes_on(call: Call, run_id: str, listed: dict[str, bool]) -> bool:
    """Whether a run that is not on the page goes on and may be read."""
    if run_id in listed:
        return False
    try:
        run = await call.service.store.runs.load(run_id)
    except RunNotFound:
        return False
    return goes_on(run) and await permitted(call.service.authorizer, call.principal, "read", run)


async def _row(call: Call, run: RunRecord) -> tuple[SessionRun, list[SessionMessage], bool] | None:
    """A run with its messages at one instant, and whether it goes on; None where the caller may not read it, or it is gone."""
    if not await permitted(call.service.authorizer, call.principal, "read", run):
        return None
    try:
        folded: Folded = await call.service.store.checkpoints.fold(run.run_id)
    except RunNotFound:
        return None
    snapshot = folded.view(await call.hidden(folded.record, folded.fold.scopes))
    facts = summary(folded.record)
    row = SessionRun(**{name: getattr(facts, name) for name in facts.__struct_fields__}, held=folded.record.held)
    messages = [
        SessionMessage(run_id=run.run_id, message_id=m.message_id, role=m.role, status=m.status, content=m.content)
        for m in snapshot.messages
    ]
    return row, messages, goes_on(folded.record)


def _newest(messages: list[SessionMessage]) -> list[SessionMessage]:
    """The newest messages, as many as fit; at least one."""
    size, start = 0, len(messages)
    while start > 0 and len(messages) - start < _MOST_MESSAGES:
        size += len(messages[start - 1].content)
        if size > _MOST_BYTES and start < len(messages):
            break
        start -= 1
    return messages[start:]
