"""What clients send: bodies and query strings as types. Validation, its error texts and the OpenAPI document all follow from them."""

from typing import Annotated, Any, Final, Literal

import msgspec

from ..core.errors import InvalidRequest
from ..core.ids import RUN_ID
from ..core.payload import check_json
from ..core.run import AGENT_PATTERN, SCOPE_PATTERN, SESSION_PATTERN, TEXT_PATTERN, NewRun, Retention, RunRecord, State
from ..core.settings import Settings
from .auth import Principal

Meta = msgspec.Meta
Raw = msgspec.Raw

MAX_WAIT: Final = 60.0
"""Longest `?wait=`, seconds."""
MAX_PAGE_EVENTS: Final = 1000
PAGE_EVENTS: Final = 100
MAX_PAGE_RUNS: Final = 200
MAX_METADATA: Final = 16 * 1024
MAX_REASON: Final = 1000
MAX_KEY: Final = 255
EXAMPLE_RUN: Final = "run_0701k3v9x2m4q7r8s5t6w0y1z2"


def _like(pattern: str, *, example: str) -> Meta:
    # `$` also matches before a final line break, which must not get into a key, a log line or a frame.
    return Meta(pattern=pattern + r"(?!\n)", examples=[example])


Agent = Annotated[str, _like(AGENT_PATTERN, example="support")]
Text = Annotated[str, _like(TEXT_PATTERN, example="conversation-17")]
RunId = Annotated[str, _like(f"^{RUN_ID.pattern}$", example=EXAMPLE_RUN)]
Place = Annotated[str, _like(f"^({RUN_ID.pattern}|[0-9]{{1,16}})$", example=EXAMPLE_RUN)]
SessionId = Annotated[str, _like(SESSION_PATTERN, example="conversation-17")]
Scope = Annotated[str, _like(SCOPE_PATTERN, example="tenant_42/ticket_981")]
Object = Annotated[Raw, Meta(extra_json_schema={"type": "object"}, examples=[{"ticket": 981}])]
Wait = Annotated[float, Meta(ge=0, le=MAX_WAIT, description=f"Hold the answer up to this many seconds, 0 to {MAX_WAIT:g}.", examples=[25])]
Ticket = Annotated[str | None, Meta(description="In place of a token, where no header can be sent; see makeTicket.")]
Days = Annotated[int, Meta(ge=100, examples=[600_000])]


class KeepFor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long this run is kept after it ended, milliseconds; what is left out is the deployment's, and nothing may be above it."""

    deltas_ms: Annotated[Days | None, Meta(description="Delta-class events; at least 100.")] = None
    events_ms: Annotated[Days | None, Meta(description="All other events; at least 100.")] = None
    run_ms: Annotated[Days | None, Meta(description="The record and the terminal snapshot; at least 100.")] = None


class CreateRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to create."""

    agent: Annotated[Agent, Meta(description=f"Which agent runs: {AGENT_PATTERN}.")]
    input: Annotated[Object, Meta(description="The agent's input: a JSON object, kept byte for byte.")]
    session_id: Annotated[SessionId | None, Meta(description="The conversation it belongs to: 1 to 128 printable ASCII characters.")] = None
    parent_run_id: Annotated[RunId | None, Meta(description="The run that started it: a run id.")] = None
    resource_scope: Annotated[
        Scope | None,
        Meta(description="What it works on: the caller's tenant and up to 15 more parts joined by /; the run itself when left out."),
    ] = None
    release_id: Annotated[Text | None, Meta(description="Release of the agent: 1 to 128 printable ASCII characters.")] = None
    model_policy: Annotated[Text | None, Meta(description="Kept with the run: 1 to 128 printable ASCII characters.")] = None
    tool_catalog: Annotated[Text | None, Meta(description="Kept with the run: 1 to 128 printable ASCII characters.")] = None
    input_version: Annotated[Text | None, Meta(description="Kept with the run: 1 to 128 printable ASCII characters.")] = None
    metadata: Annotated[Object | msgspec.UnsetType, Meta(description="The caller's own facts: a JSON object, kept byte for byte.")] = (
        msgspec.UNSET
    )
    retention: Annotated[
        KeepFor | None, Meta(description="How long it is kept after it ended; never longer than the deployment keeps.")
    ] = None


class CancelRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to stop a run."""

    reason: Annotated[
        Annotated[str, Meta(max_length=MAX_REASON)] | None,
        Meta(description=f"Why, for people; at most {MAX_REASON} characters.", examples=["the customer hung up"]),
    ] = None


class GiveInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer to a waiting run."""

    wait_id: Annotated[str, Meta(min_length=1, max_length=128, description="The snapshot's waiting.wait_id.", examples=["approval_1"])]
    value: Annotated[Raw, Meta(description="The answer: any JSON value, kept byte for byte.", examples=[True])]


class MakeTicket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ticket to make."""

    expires_in: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="How long it shall be good for, seconds; at most what the deployment allows, which is the default.", examples=[60]
        ),
    ] = None


class NoQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameters."""


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to list."""

    state: Annotated[
        State | None, Meta(description="One of queued, running, waiting, succeeded, failed, cancelled.", examples=["running"])
    ] = None
    session_id: Annotated[Text | None, Meta(description="Only runs of this session.")] = None
    agent: Annotated[Agent | None, Meta(description="Only runs of this agent.")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_RUNS, description=f"Most runs on the page, 1 to {MAX_PAGE_RUNS}.", examples=[50])] = 50
    before: Annotated[Place | None, Meta(description="Go on after this place: next_before of the page before.")] = None


class ShowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to read a snapshot."""

    wait: Wait = 0.0
    ticket: Ticket = None


class CancelQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for a cancel request's outcome."""

    wait: Wait = 0.0


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to begin, and how much."""

    after: Annotated[
        str | None, Meta(description="Cursor: 184 or run_…:184. Last-Event-ID wins over it.", examples=[f"{EXAMPLE_RUN}:184"])
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
    ticket: Ticket = None

    @property
    def pages(self) -> bool:
        """Whether it asks for something that only a page has."""
        return self.limit is not None or self.wait > 0


def planned(body: CreateRun, principal: Principal) -> RunRecord:
    """The run as the authorizer is asked about it before it exists: without an id, and its scope empty where it will be its own.

    Raises:
        InvalidRequest: It would be about something of another tenant.
    """
    scope = body.resource_scope or ""
    if scope and scope.partition("/")[0] != principal.tenant:
        raise InvalidRequest(f"resource_scope begins with the caller's tenant: {principal.tenant}/…", field="resource_scope")
    return RunRecord(
        run_id="",
        tenant=principal.tenant,
        initiator=principal.subject,
        agent=body.agent,
        resource_scope=scope,
        release_id=body.release_id or "",
        state="queued",
        sequence=0,
        created_at=0,
        last_activity_at=0,
        session_id=body.session_id,
        parent_run_id=body.parent_run_id,
    )


def new_run(body: CreateRun, principal: Principal, settings: Settings) -> NewRun:
    """What the store creates from a body.

    Raises:
        InvalidRequest: An opaque field is not acceptable JSON, or the retention is above the deployment's.
        PayloadTooLarge: An opaque field is too large.
    """
    return NewRun(
        agent=body.agent,
        tenant=principal.tenant,
        initiator=principal.subject,
        input=check_json(bytes(body.input), max_bytes=settings.max_payload, what="input"),
        metadata=b"{}" if body.metadata is msgspec.UNSET else check_json(bytes(body.metadata), max_bytes=MAX_METADATA, what="metadata"),
        session_id=body.session_id,
        parent_run_id=body.parent_run_id,
        resource_scope=body.resource_scope,
        release_id=body.release_id or settings.release,
        model_policy=body.model_policy,
        tool_catalog=body.tool_catalog,
        input_version=body.input_version,
        retention=retention(body.retention or KeepFor(), settings),
    )


def deployment_retention(settings: Settings) -> Retention:
    """How long the deployment keeps a run."""
    return Retention(
        deltas_ms=round(settings.retain_deltas * 1000),
        events_ms=round(settings.retain_events * 1000),
        run_ms=round(settings.retain_run * 1000),
    )


def retention(asked: KeepFor, settings: Settings) -> Retention:
    """A run's retention: what was asked for, else the deployment's; no event outlives its run, no delta the other events.

    Raises:
        InvalidRequest: More than the deployment's was asked for, or one class to outlive what it belongs to.
    """
    ours = deployment_retention(settings)
    kept: dict[str, int] = {}
    above = ours.run_ms
    for name in ("run_ms", "events_ms", "deltas_ms"):
        most: int = min(getattr(ours, name), above)
        value: Any = getattr(asked, name)
        if value is not None and value > most:
            raise InvalidRequest(f"retention.{name} is at most {most} here", field=f"retention.{name}", maximum=most)
        above = kept[name] = most if value is None else value
    return Retention(**kept)
