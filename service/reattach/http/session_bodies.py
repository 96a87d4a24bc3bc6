"""What clients send and are sent about sessions, as types."""

from typing import Annotated, Literal

import msgspec

from ..core.event import EventFrame
from ..core.payload import check_json
from ..core.run import when
from ..core.session import Policy, SessionRecord, session_path
from .answers import RunSummary
from .bodies import MAX_METADATA, MAX_PAGE_EVENTS, PAGE_EVENTS, Object, SessionId, Text, Wait

Meta = msgspec.Meta
Raw = msgspec.Raw

MAX_PAGE_SESSIONS = 200
MAX_SESSION_RUNS = 50
EXAMPLE_SESSION = "ses_07q2m8xk5v0r3t9w6z1y4n7p2s"

_RUN_ID_TEXT = "the run id that was the oldest on the page before: next_before."


class CreateSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to make."""

    session_id: Annotated[
        SessionId | None, Meta(description="Its name: 1 to 128 printable ASCII characters. One is made up when it is left out.")
    ] = None
    policy: Annotated[
        Policy,
        Meta(
            description="What a run does that is created while another one goes on: parallel (starts), queue (waits for it), reject "
            "(is refused with session_busy), replace (cancels it, then starts). Fixed for the life of the session.",
            examples=["queue"],
        ),
    ] = "parallel"
    metadata: Annotated[Object | msgspec.UnsetType, Meta(description="The caller's own facts: a JSON object, kept byte for byte.")] = (
        msgspec.UNSET
    )


class SessionsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions to list."""

    limit: Annotated[
        int, Meta(ge=1, le=MAX_PAGE_SESSIONS, description=f"Most sessions on the page, 1 to {MAX_PAGE_SESSIONS}.", examples=[50])
    ] = 50
    before: Annotated[Text | None, Meta(description="Go on after this session: next_before of the page before.")] = None


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to read a session."""

    wait: Wait = 0.0
    limit: Annotated[
        int, Meta(ge=1, le=MAX_SESSION_RUNS, description=f"Most of its runs, newest page first, 1 to {MAX_SESSION_RUNS}.", examples=[20])
    ] = 20
    before: Annotated[Text | None, Meta(description=f"Older runs: {_RUN_ID_TEXT}")] = None


class SessionEventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to begin in a session, and how much."""

    after: Annotated[
        str | None,
        Meta(description="Cursor: 184 or ses_…:184, the id of a frame. Last-Event-ID wins over it.", examples=[f"{EXAMPLE_SESSION}:184"]),
    ] = None
    expired: Annotated[
        Literal["snapshot"] | None,
        Meta(description="snapshot: where the cursor is too old, begin with the snapshot instead of failing.", examples=["snapshot"]),
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_PAGE_EVENTS)] | None,
        Meta(description=f"Most events on a JSON page, 1 to {MAX_PAGE_EVENTS}; {PAGE_EVENTS} if not given.", examples=[PAGE_EVENTS]),
    ] = None
    wait: Wait = 0.0

    @property
    def pages(self) -> bool:
        """Whether it asks for something that only a page has."""
        return self.limit is not None or self.wait > 0


class SessionRun(RunSummary, frozen=True, kw_only=True):
    """A run in its session."""

    held: Annotated[bool, Meta(description="It waits until those before it have ended, by the session's policy.")]


class SessionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of one of the session's runs."""

    run_id: str
    message_id: str
    role: str
    status: str
    content: Raw


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a listing."""

    session_id: str
    tenant: str
    initiator: str
    policy: Policy
    sequence: int
    earliest_sequence: int
    created_at: str
    last_activity_at: str
    metadata: Raw
    links: dict[str, str]


class SessionList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of sessions, newest first."""

    sessions: tuple[SessionSummary, ...]
    next_before: Annotated[str | None, Meta(description="Pass it as before for the next page; null on the last one.")]


class Session(SessionSummary, frozen=True, kw_only=True):
    """A session: its facts at `sequence`, and a page of its runs as each is now, which may be a moment later."""

    runs: Annotated[tuple[SessionRun, ...], Meta(description="Oldest first. What the caller may not read is not among them.")]
    active: Annotated[tuple[str, ...], Meta(description="Ids of all its runs that have not ended, on whatever page.")]
    messages: Annotated[tuple[SessionMessage, ...], Meta(description="Of the runs on this page, in their order.")]
    messages_omitted: Annotated[int, Meta(description="Older messages of these runs that were too many or too large; see the runs.")]
    next_before: Annotated[str | None, Meta(description="Pass it as before for older runs; null when there are none.")]


class SessionEventFrame(EventFrame, frozen=True, kw_only=True):
    """An event of one of the session's runs, with its place in the session."""

    session_sequence: int


class SessionEventPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of a session's events after a cursor. A session is never done."""

    events: tuple[SessionEventFrame, ...]
    next_cursor: Annotated[str, Meta(description="Pass it as after for the next page.")]
    latest_sequence: int
    state: Annotated[str, Meta(description="active while any of its runs has not ended, else idle.")]
    snapshot: Annotated[Session | None, Meta(description="In place of events that are no longer kept; only with expired=snapshot.")] = None


def session_links(session_id: str) -> dict[str, str]:
    """Where a client goes from a session."""
    base = session_path(session_id)
    return {"self": base, "events": f"{base}/events"}


def session_summary(record: SessionRecord) -> SessionSummary:
    """A session as a listing shows it."""
    return SessionSummary(
        session_id=record.session_id,
        tenant=record.tenant,
        initiator=record.initiator,
        policy=record.policy,
        sequence=record.sequence,
        earliest_sequence=record.earliest_sequence,
        created_at=when(record.created_at) or "",
        last_activity_at=when(record.last_activity_at) or "",
        metadata=Raw(record.metadata),
        links=session_links(record.session_id),
    )


def metadata_of(body: CreateSession) -> bytes:
    """The metadata of a session to be made.

    Raises:
        InvalidRequest: It is not acceptable JSON.
        PayloadTooLarge: It is too large.
    """
    return b"{}" if body.metadata is msgspec.UNSET else check_json(bytes(body.metadata), max_bytes=MAX_METADATA, what="metadata")
