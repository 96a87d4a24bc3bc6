"""Examples of everything about sessions, for the OpenAPI document."""

from typing import Any, Final

import msgspec

from ..core.event import EventFrame
from ..core.run import RunRecord
from ..core.session import SessionRecord
from ..core.snapshot import Snapshot
from .answers import summary
from .session_bodies import (
    EXAMPLE_SESSION,
    CreateSession,
    Session,
    SessionEventFrame,
    SessionEventPage,
    SessionList,
    SessionMessage,
    SessionRun,
    session_summary,
)


def session_values(record: RunRecord, snapshot: Snapshot, event: EventFrame) -> tuple[Any, ...]:
    """One example of each type, of a session with the run of the other examples."""
    facts = session_summary(
        SessionRecord(
            name=EXAMPLE_SESSION,
            session_id="conversation-17",
            tenant=record.tenant,
            initiator=record.initiator,
            policy="queue",
            metadata=b"{}",
            sequence=9,
            earliest_sequence=1,
            created_at=record.created_at,
            last_activity_at=record.last_activity_at,
            open=(),
        )
    )
    run = SessionRun(**_fields(summary(record)), held=False)
    messages = tuple(SessionMessage(run_id=record.run_id, **_fields(message)) for message in snapshot.messages)
    return (
        CreateSession(session_id="conversation-17", policy="queue"),
        SessionList(sessions=(facts,), next_before=None),
        Session(**_fields(facts), runs=(run,), active=(), messages=messages, messages_omitted=0, next_before=None),
        SessionEventPage(
            events=(SessionEventFrame(**_fields(event), session_sequence=7),),
            next_cursor=f"{EXAMPLE_SESSION}:7",
            latest_sequence=9,
            state="idle",
        ),
    )


def _fields(value: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


SESSION_EXTRAS: Final[dict[str, dict[str, Any]]] = {
    "session_busy": {"active": ["run_0701k3v9x2m4q7r8s5t6w0y1z2"]},
    "session_exists": {"policy": "queue"},
}
