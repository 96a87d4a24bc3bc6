"""The routes of sessions, and all that is promised about them."""

from typing import Final

from ..core.errors import (
    CursorExpired,
    CursorSessionMismatch,
    FutureCursor,
    IdempotencyKeyReused,
    MalformedCursor,
    NotAcceptable,
    SessionExists,
    SessionNotFound,
    StoreUnavailable,
    TooManyStreams,
)
from .bodies import NoQuery
from .service import Endpoint, Reply
from .session_bodies import CreateSession, Session, SessionEventPage, SessionEventsQuery, SessionList, SessionQuery, SessionsQuery
from .session_events import read_session_events
from .sessions import create_session, list_sessions, show_session

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"

SESSION_TABLE: Final = (
    Endpoint(
        method="POST",
        path="/sessions",
        handler=create_session,
        name="createSession",
        summary="Make a session. One of the same name with the same facts is found again; a session is also made by its first run.",
        action="create",
        query=NoQuery,
        body=CreateSession,
        body_optional=True,
        headers=("Idempotency-Key",),
        answers={
            201: Reply(meaning="The session exists.", content={_JSON: Session}, headers=("Location", "ETag")),
            200: Reply(
                meaning="It was made before, with the same facts.",
                content={_JSON: Session},
                headers=("Location", "ETag", "Idempotency-Replayed"),
            ),
        },
        errors=(SessionExists, IdempotencyKeyReused, StoreUnavailable),
    ),
    Endpoint(
        method="GET",
        path="/sessions",
        handler=list_sessions,
        name="listSessions",
        summary="The caller's tenant's sessions, newest first.",
        action="list",
        query=SessionsQuery,
        answers={200: Reply(meaning="A page of sessions.", content={_JSON: SessionList})},
        errors=(StoreUnavailable,),
    ),
    # Before the session itself: a name may have a slash, so that its route would take this path as well.
    Endpoint(
        method="GET",
        path="/sessions/{session_id}/events",
        handler=read_session_events,
        name="readSessionEvents",
        summary="Events of all the session's runs after a cursor, in one order: as a stream that goes on, or as a JSON page.",
        action="read",
        query=SessionEventsQuery,
        headers=("Accept", "Last-Event-ID"),
        answers={
            200: Reply(
                meaning="A stream for who names text/event-stream with at least the quality of JSON, else a page.",
                content={_SSE: str, _JSON: SessionEventPage},
            ),
        },
        errors=(
            SessionNotFound,
            MalformedCursor,
            CursorSessionMismatch,
            FutureCursor,
            CursorExpired,
            NotAcceptable,
            TooManyStreams,
            StoreUnavailable,
        ),
    ),
    Endpoint(
        method="GET",
        path="/sessions/{session_id}",
        handler=show_session,
        name="showSession",
        summary="A session: its facts, its runs in order, which of them go on, and what was said in them.",
        action="read",
        query=SessionQuery,
        headers=("If-None-Match",),
        answers={
            200: Reply(meaning="The session as it is now.", content={_JSON: Session}, headers=("ETag",)),
            304: Reply(meaning="Nothing is newer than If-None-Match.", headers=("ETag",)),
        },
        errors=(SessionNotFound, StoreUnavailable),
    ),
)
