"""Events of a session, which is all its runs: as a stream, or as pages. Both keep the promises of a run's own stream.

A session has no last event: its stream ends only as that of a run that goes on does, and its pages are never the last ones.
"""

import asyncio
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.cursor import judge, pick_cursor
from ..core.errors import CursorError, CursorExpired, InternalError, ReattachError, RunNotFound
from ..core.event import event_id, to_frame
from ..core.run import RunRecord
from ..core.session import SessionRecord, session_bounds, session_path
from ..obs.metrics import DELIVERED
from ..obs.trace import Trace
from ..store import Placed
from ..tail import REDACTED
from .accept import prefers_stream
from .bodies import PAGE_EVENTS
from .service import Call, answer
from .session_bodies import Session, SessionEventFrame, SessionEventPage, SessionEventsQuery, SessionQuery
from .session_sight import SessionSight, hidden_places
from .sessions import find_session, session_id_of, show, show_session
from .sse import HEADERS, session_frame
from .stream import EventStream

_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page that has reached this size is long enough, however many events were asked for."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where delivery begins.

    Attributes:
        record: The session.
        cursor: The sequence to go on after.
        snapshot: Sent in place of what is no longer kept.
    """

    record: SessionRecord
    cursor: int
    snapshot: Session | None = None


async def read_session_events(call: Call) -> ASGIApp:
    """``GET /sessions/{session_id}/events``."""
    if session_id_of(call)[1] != "events":
        return await show_session(call)  # of a session whose name ends like this path
    query = call.query(SessionEventsQuery)
    stream = prefers_stream(",".join(call.request.headers.getlist("accept")), otherwise=not query.pages)
    principal = call.principal
    trace = Trace(transport="sse" if stream else "json", principal=f"{principal.tenant}/{principal.subject}")
    try:
        if stream:
            call.service.streams.check_room()
        place = await _place(call, query, trace)
        return _stream(call, place, trace) if stream else await _page(call, query, place, trace)
    except ReattachError as e:
        trace.policy = trace.policy or e.code
        trace.end(e.code)
        raise
    except asyncio.CancelledError:
        trace.end("client_closed")  # while it was waiting for news
        raise
    except Exception:
        trace.end(InternalError.code)
        raise


async def _place(call: Call, query: SessionEventsQuery, trace: Trace) -> Place:
    record = await find_session(call)
    bounds = session_bounds(record)
    trace.allow_session(record.session_id, record.sequence, bounds.state)
    headers = call.request.headers.getlist("last-event-id")
    try:
        cursor = pick_cursor(headers, [] if query.after is None else [query.after], record.name)
    except CursorError:
        trace.requested_cursor = "malformed"
        raise
    trace.requested_cursor = str(cursor) if any(headers) or query.after else None
    place = Place(record=record, cursor=cursor)
    try:
        judge(cursor, bounds, run_id=record.name, snapshot=session_path(record.session_id))
    except CursorExpired:
        if query.expired != "snapshot":
            raise
        place = Place(record=record, cursor=record.sequence, snapshot=await show(call, record, SessionQuery()))
    trace.accept(place.cursor)
    return place


def _stream(call: Call, place: Place, trace: Trace) -> ASGIApp:
    if call.request.method == "HEAD":
        trace.end("head")
        head = Response(headers={name.decode(): value.decode() for name, value in HEADERS})
        del head.headers["content-length"]  # a stream's is not known, and 0 would say that it is empty
        return head
    service, name = call.service, place.record.name
    first = None if place.snapshot is None else session_frame(name, place.snapshot)
    sight = SessionSight(service.store, service.authorizer, call.principal, lasts=service.settings.keepalive / 2)
    return EventStream(service, call.principal, name, place.cursor, trace, sight=sight, first=first)


async def _page(call: Call, query: SessionEventsQuery, place: Place, trace: Trace) -> ASGIApp:
    record = place.record
    if query.wait and place.cursor == record.sequence:
        await call.news(record.name, place.cursor, query.wait)
        record = await find_session(call)  # what was allowed when the wait began may not be any more
        place = msgspec.structs.replace(place, record=record)
    events, last = await _events(call, place, query.limit or PAGE_EVENTS)
    shown = await _encode(call, events)
    if len(shown) < len(events):
        await _judge_again(call, place)
    if events:
        trace.saw(events[0].place, last, len(events), ())
    DELIVERED.labels("json").inc(len(events))
    trace.end("page")
    page = SessionEventPage(
        events=shown,
        next_cursor=event_id(record.name, last),
        latest_sequence=record.sequence,
        state=session_bounds(record).state,
        snapshot=place.snapshot,
    )
    return answer(page, cache_control="no-store")


async def _events(call: Call, place: Place, limit: int) -> tuple[list[Placed], int]:
    """The next events up to the sequence that `place.record` tells of, and the place they reach to."""
    record = place.record
    if place.cursor >= record.sequence:
        return [], place.cursor
    batch = await call.service.store.session_log.after(record.name, place.cursor, limit, most_bytes=_PAGE_BYTES)
    events = [placed for placed in batch.events if placed.place <= record.sequence]
    if (events[-1].place if events else batch.last) - place.cursor > len(events):
        # Something is missing: covered deltas, which is as promised, or more, since it expired a moment ago.
        await _judge_again(call, place)
    return events, min(batch.last, record.sequence)


async def _judge_again(call: Call, place: Place) -> None:
    record = await call.service.store.sessions.load(place.record.name)
    judge(place.cursor, session_bounds(record), run_id=record.name, snapshot=session_path(record.session_id))


async def _encode(call: Call, events: list[Placed]) -> tuple[SessionEventFrame, ...]:
    runs: dict[str, RunRecord] = {}
    for run_id in {placed.run_id for placed in events}:
        try:
            runs[run_id] = await call.service.store.runs.load(run_id)
        except RunNotFound:
            continue  # it expired a moment ago, and its events with it
    scopes = {_scope(placed, runs[placed.run_id]) for placed in events if placed.run_id in runs}
    hidden = await hidden_places(call.service.store, call.service.authorizer, call.principal, scopes)
    shown: list[SessionEventFrame] = []
    for placed in events:
        run = runs.get(placed.run_id)
        if run is None:
            continue
        payload = REDACTED if _scope(placed, run) in hidden else None
        frame = to_frame(placed.event, run_id=run.run_id, release_id=run.release_id, scope=run.resource_scope, payload=payload)
        shown.append(SessionEventFrame(**msgspec.structs.asdict(frame), session_sequence=placed.place))
    return tuple(shown)


def _scope(placed: Placed, run: RunRecord) -> str:
    own = placed.event.scope
    return f"{placed.run_id} {'' if own is None or own == run.resource_scope else own}"
