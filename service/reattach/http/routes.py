"""The route table: everything that is served, and all that is promised about it."""

from typing import Final

from ..core.errors import (
    CursorExpired,
    CursorRunMismatch,
    FutureCursor,
    IdempotencyKeyReused,
    MalformedCursor,
    NotAcceptable,
    SessionBusy,
    StoreUnavailable,
    TooManyStreams,
    WaitNotOpen,
)
from ..core.snapshot import Snapshot
from .answers import CancelAnswer, EventPage, Health, InputAnswer, Limits, Readiness, RunList, TicketAnswer
from .bodies import CancelQuery, CancelRun, CreateRun, EventsQuery, GiveInput, ListQuery, MakeTicket, NoQuery, ShowQuery
from .commands import cancel_run, give_input
from .events import read_events
from .health import healthz, readyz, show_limits, show_metrics
from .openapi import show_openapi
from .runs import create_run, list_runs, show_run
from .service import Endpoint, Reply
from .session_routes import SESSION_TABLE
from .tickets import make_ticket
from .worker_routes import WORKER_TABLE

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"

TABLE: Final = (
    Endpoint(
        method="POST",
        path="/agent-runs",
        handler=create_run,
        name="createRun",
        summary="Create a run. The same Idempotency-Key and body again find the same run.",
        action="create",
        query=NoQuery,
        body=CreateRun,
        headers=("Idempotency-Key",),
        answers={
            201: Reply(meaning="The run exists and is queued.", content={_JSON: Snapshot}, headers=("Location", "ETag")),
            200: Reply(
                meaning="An earlier request with this key created it; this is how it stands now.",
                content={_JSON: Snapshot},
                headers=("Location", "ETag", "Idempotency-Replayed"),
            ),
        },
        errors=(IdempotencyKeyReused, SessionBusy, StoreUnavailable),
    ),
    Endpoint(
        method="GET",
        path="/agent-runs",
        handler=list_runs,
        name="listRuns",
        summary="The caller's tenant's runs, newest first.",
        action="list",
        query=ListQuery,
        answers={200: Reply(meaning="A page of runs.", content={_JSON: RunList})},
        errors=(StoreUnavailable,),
    ),
    Endpoint(
        method="GET",
        path="/agent-runs/{run_id}",
        handler=show_run,
        name="showRun",
        summary="The snapshot: the fold of the run's events up to its sequence.",
        action="read",
        ticket=True,
        query=ShowQuery,
        headers=("If-None-Match",),
        answers={
            200: Reply(meaning="The run as it is now.", content={_JSON: Snapshot}, headers=("ETag",)),
            304: Reply(meaning="Nothing is newer than If-None-Match.", headers=("ETag",)),
        },
        errors=(StoreUnavailable,),
    ),
    Endpoint(
        method="GET",
        path="/agent-runs/{run_id}/events",
        handler=read_events,
        name="readEvents",
        summary="Events after a cursor: as a stream that replays, follows and ends with the run, or as a JSON page.",
        action="read",
        ticket=True,
        query=EventsQuery,
        headers=("Accept", "Last-Event-ID"),
        answers={
            200: Reply(
                meaning="A stream for who names text/event-stream with at least the quality of JSON, else a page.",
                content={_SSE: str, _JSON: EventPage},
            ),
            204: Reply(meaning="Stream only: the run has ended and the client has everything. An EventSource stops."),
        },
        errors=(MalformedCursor, CursorRunMismatch, FutureCursor, CursorExpired, NotAcceptable, TooManyStreams, StoreUnavailable),
    ),
    Endpoint(
        method="POST",
        path="/agent-runs/{run_id}/cancel",
        handler=cancel_run,
        name="cancelRun",
        summary="Ask the run to stop. Safe to repeat; disconnecting never does this.",
        action="cancel",
        query=CancelQuery,
        body=CancelRun,
        body_optional=True,
        headers=("Idempotency-Key",),
        answers={
            200: Reply(meaning="Decided: see disposition.", content={_JSON: CancelAnswer}),
            202: Reply(meaning="Recorded; the worker has not reached a boundary yet.", content={_JSON: CancelAnswer}),
        },
        errors=(IdempotencyKeyReused, StoreUnavailable),
    ),
    Endpoint(
        method="POST",
        path="/agent-runs/{run_id}/inputs",
        handler=give_input,
        name="giveInput",
        summary="Answer a waiting run, once.",
        action="input",
        query=NoQuery,
        body=GiveInput,
        headers=("Idempotency-Key",),
        answers={202: Reply(meaning="The run goes on with this answer.", content={_JSON: InputAnswer})},
        errors=(WaitNotOpen, IdempotencyKeyReused, StoreUnavailable),
    ),
    Endpoint(
        method="POST",
        path="/agent-runs/{run_id}/tickets",
        handler=make_ticket,
        name="makeTicket",
        summary="Make a short-lived ticket for reading this run, for clients that cannot send headers, as an EventSource.",
        action="read",
        query=NoQuery,
        body=MakeTicket,
        body_optional=True,
        answers={201: Reply(meaning="Good for reading this run until it ends.", content={_JSON: TicketAnswer})},
        errors=(StoreUnavailable,),
    ),
    *SESSION_TABLE,
    *WORKER_TABLE,
    Endpoint(
        method="GET",
        path="/limits",
        handler=show_limits,
        name="showLimits",
        summary="What this deployment allows and how long it keeps things.",
        action="limits",
        query=NoQuery,
        answers={200: Reply(meaning="The limits.", content={_JSON: Limits})},
    ),
    Endpoint(
        method="GET",
        path="/healthz",
        handler=healthz,
        name="healthz",
        summary="Liveness: the process answers.",
        action=None,
        query=NoQuery,
        answers={200: Reply(meaning="It does.", content={_JSON: Health})},
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        handler=readyz,
        name="readyz",
        summary="Readiness: Redis is reachable and safe to hold runs, and the process is not stopping.",
        action=None,
        query=NoQuery,
        answers={200: Reply(meaning="Send requests.", content={_JSON: Readiness})},
        errors=(StoreUnavailable,),
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=show_metrics,
        name="showMetrics",
        summary="Metrics in Prometheus' text form.",
        action=None,
        query=NoQuery,
        answers={200: Reply(meaning="The metrics.", content={"text/plain": str})},
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        handler=show_openapi,
        name="showOpenapi",
        summary="This document.",
        action=None,
        query=NoQuery,
        answers={200: Reply(meaning="OpenAPI 3.1.", content={_JSON: dict})},
    ),
)
