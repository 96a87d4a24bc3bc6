"""Events of one run: as a stream, or as pages for clients that cannot hold one. Both keep the same promises."""

import asyncio
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.cursor import LogBounds, judge, pick_cursor
from ..core.errors import CursorError, CursorExpired, InternalError, ReattachError
from ..core.event import Event, event_id, to_frame
from ..core.run import TERMINAL_STATES, RunRecord
from ..core.snapshot import Snapshot
from ..obs.metrics import DELIVERED
from ..obs.trace import Trace
from ..tail import REDACTED
from .accept import prefers_stream
from .answers import EventPage
from .bodies import PAGE_EVENTS, EventsQuery
from .service import Call, answer
from .sight import Sight
from .sse import HEADERS, snapshot_frame
from .stream import EventStream

_FIRST_CHUNK: Final = 16
_LARGEST_CHUNK: Final = 128
_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page that has reached this size is long enough, however many events were asked for."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where delivery begins.

    Attributes:
        record: The run.
        bounds: What its log can replay.
        cursor: The sequence to go on after.
        snapshot: Sent in place of what is no longer kept.
    """

    record: RunRecord
    bounds: LogBounds
    cursor: int
    snapshot: Snapshot | None = None

    @property
    def over(self) -> bool:
        """Whether the run has ended and the client has everything."""
        return self.bounds.terminal and self.cursor == self.bounds.sequence


async def read_events(call: Call) -> ASGIApp:
    """``GET /agent-runs/{run_id}/events``."""
    query = call.query(EventsQuery)
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


async def _place(call: Call, query: EventsQuery, trace: Trace) -> Place:
    read = await call.service.store.runs.read(call.run_id)
    await call.authorise(read.record)
    trace.allow(read.record)
    headers = call.request.headers.getlist("last-event-id")
    try:
        cursor = pick_cursor(headers, [] if query.after is None else [query.after], call.run_id)
    except CursorError:
        trace.requested_cursor = "malformed"
        raise
    trace.requested_cursor = str(cursor) if any(headers) or query.after else None
    place = Place(record=read.record, bounds=read.bounds, cursor=cursor)
    try:
        judge(cursor, read.bounds, run_id=call.run_id)
    except CursorExpired:
        if query.expired != "snapshot":
            raise
        place = await _from_snapshot(call, place)
    trace.accept(place.cursor)
    return place


async def _from_snapshot(call: Call, place: Place) -> Place:
    snapshot = await call.snapshot(call.run_id)
    bounds = msgspec.structs.replace(
        place.bounds, sequence=snapshot.sequence, state=snapshot.state, terminal=snapshot.state in TERMINAL_STATES
    )
    return msgspec.structs.replace(place, bounds=bounds, cursor=snapshot.sequence, snapshot=snapshot)


def _stream(call: Call, place: Place, trace: Trace) -> ASGIApp:
    first = None if place.snapshot is None else snapshot_frame(place.snapshot)
    if place.over and first is None:
        trace.end("nothing_left")
        return Response(status_code=204, headers={"cache-control": "no-store"})
    if call.request.method == "HEAD":
        trace.end("head")
        head = Response(headers={name.decode(): value.decode() for name, value in HEADERS})
        del head.headers["content-length"]  # a stream's is not known, and 0 would say that it is empty
        return head
    # A stream lasts long, and an input may be large; nothing is decided by it.
    record = msgspec.structs.replace(place.record, input=b"{}")
    sight = Sight(call.service.authorizer, call.principal, record, lasts=call.service.settings.keepalive / 2)
    return EventStream(call.service, call.principal, call.run_id, place.cursor, trace, sight=sight, first=first)


async def _page(call: Call, query: EventsQuery, place: Place, trace: Trace) -> ASGIApp:
    if query.wait and place.cursor == place.bounds.sequence and not place.bounds.terminal:
        await call.news(call.run_id, place.cursor, query.wait)
        read = await call.service.store.runs.read(call.run_id)
        await call.authorise(read.record)  # what was allowed when the wait began may not be any more
        place = msgspec.structs.replace(place, record=read.record, bounds=read.bounds)
    events = await _events(call, place, query.limit or PAGE_EVENTS)
    hidden = await call.hidden(place.record, {event.scope for event in events if event.scope is not None})
    last = events[-1].sequence if events else place.cursor
    if events:
        trace.saw(events[0].sequence, last, len(events), [event.type for event in events])
    DELIVERED.labels("json").inc(len(events))
    trace.end("page")
    return answer(_encode(place, events, last, hidden), cache_control="no-store")


async def _events(call: Call, place: Place, limit: int) -> list[Event]:
    """The next events up to the sequence that `place.bounds` tells of, so that a page is true at one instant."""
    found: list[Event] = []
    size, position, chunk = 0, place.cursor, _FIRST_CHUNK
    while position < place.bounds.sequence and len(found) < limit and size < _PAGE_BYTES:
        part = await call.service.store.events.after(call.run_id, position, min(chunk, limit - len(found)))
        if not part or part[0].sequence != position + 1:
            # Something is missing: covered deltas, which is as promised, or everything, since it expired a moment ago.
            judge(place.cursor, (await call.service.store.runs.read(call.run_id)).bounds, run_id=call.run_id)
        part = [event for event in part if event.sequence <= place.bounds.sequence]
        if not part:
            break
        found += part
        size += sum(len(event.payload) for event in part)
        position = part[-1].sequence
        # More at a time as long as events turn out to be small: what is read at once must fit into memory many times over.
        chunk = min(4 * chunk, _LARGEST_CHUNK) if size < _PAGE_BYTES // 64 else _FIRST_CHUNK
    return found


def _encode(place: Place, events: list[Event], last: int, hidden: frozenset[str]) -> EventPage:
    record = place.record
    run_id, release_id, scope = record.run_id, record.release_id, record.resource_scope
    return EventPage(
        events=tuple(
            to_frame(e, run_id=run_id, release_id=release_id, scope=scope, payload=REDACTED if e.scope in hidden else None) for e in events
        ),
        next_cursor=event_id(record.run_id, last),
        latest_sequence=place.bounds.sequence,
        state=place.bounds.state,
        done=place.bounds.terminal and last == place.bounds.sequence,
        snapshot=place.snapshot,
    )
