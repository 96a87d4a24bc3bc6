"""What clients are sent, besides the snapshot: the other answers as types. The OpenAPI document follows from them."""

from typing import Annotated, Any

import msgspec

from ..core.event import EventFrame, event_id
from ..core.run import Cancel, Retention, RunRecord, links, when
from ..core.settings import Settings
from ..core.snapshot import Snapshot

Raw = msgspec.Raw
Meta = msgspec.Meta


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a listing."""

    run_id: str
    tenant: str
    initiator: str
    session_id: str | None
    parent_run_id: str | None
    agent: str
    resource_scope: str
    release_id: str
    state: str
    attempt: int
    sequence: int
    created_at: str
    started_at: str | None
    last_activity_at: str
    finished_at: str | None
    expires_at: str | None
    links: dict[str, str]


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of runs, newest first."""

    runs: tuple[RunSummary, ...]
    next_before: Annotated[
        str | None,
        Meta(description="Pass it as before for the next page, also where this one is short or empty; null on the last one."),
    ]


class EventPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of events after a cursor."""

    events: tuple[EventFrame, ...]
    next_cursor: Annotated[str, Meta(description="Pass it as after for the next page.")]
    latest_sequence: int
    state: str
    done: Annotated[bool, Meta(description="The run has ended and this page reaches its last event.")]
    snapshot: Annotated[Snapshot | None, Meta(description="In place of events that are no longer kept; only with expired=snapshot.")] = None


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a completed tool call left behind."""

    tool_call_id: str
    tool: str
    receipt_id: str | None
    result_version: str | None


class CancelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request to stop."""

    run_id: str
    state: str
    sequence: int
    disposition: Annotated[
        str, Meta(description="cancelled_before_effect, cancelled_after_effect, cancellation_pending or already_terminal.")
    ]
    cancel: Cancel
    receipts: tuple[Receipt, ...]
    resources: dict[str, str]
    outcome: Raw | None
    error: Raw | None
    links: dict[str, str]


class InputAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that reached its waiting run."""

    run_id: str
    wait_id: str
    sequence: Annotated[int, Meta(description="Of the event input.received.")]
    event_id: str
    links: dict[str, str]


class TicketAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket. Make another before it ends, and go on with that after the last event's id."""

    ticket: Annotated[str, Meta(description="For reading this run. It is told once and kept nowhere.")]
    expires_at: str
    expires_in: Annotated[float, Meta(description="Seconds it is good for. What was opened with it is closed then.")]
    url: Annotated[str, Meta(description="The run's events, with the ticket; add &after= to go on after an event.")]


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant, or one subject, may do in a minute and have at the same time; 0: as much as it wants."""

    runs: Annotated[int, Meta(description="Unfinished runs.")]
    run_rate: Annotated[int, Meta(description="Runs created in a minute.")]
    streams: Annotated[int, Meta(description="Streams and held requests that are open.")]
    ticket_rate: Annotated[int, Meta(description="Tickets made in a minute.")]
    agents: Annotated[int, Meta(description="Different names of agents in an hour; counted for tenants only.")]


class RunAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may append; 0: as much as it wants. Sizes are those of payloads."""

    events: int
    bytes: int
    event_rate: Annotated[int, Meta(description="Events in a minute.")]
    byte_rate: Annotated[int, Meta(description="Bytes in a minute.")]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What this deployment allows. Sizes are bytes, times seconds unless a name says otherwise."""

    max_body: int
    max_payload: int
    max_head: int
    max_token: int
    max_metadata: int
    max_depth: int
    max_idempotency_key: int
    max_reason: int
    max_page_events: int
    max_page_runs: int
    max_batch: int
    max_agents: int
    max_wait: float
    max_streams: int
    max_event_type: int
    keepalive: float
    stream_lifetime: float
    write_timeout: float
    ticket_lifetime: float
    lease: float
    live_events: int
    tenant: Allowance
    subject: Allowance
    run: RunAllowance
    retention: Retention


def allowances(settings: Settings) -> dict[str, Any]:
    """What tenants, subjects and runs may, as members of `Limits`."""
    return {
        "tenant": Allowance(
            runs=settings.tenant_runs,
            run_rate=settings.tenant_run_rate,
            streams=settings.tenant_streams,
            ticket_rate=settings.tenant_ticket_rate,
            agents=settings.tenant_agents,
        ),
        "subject": Allowance(
            runs=settings.subject_runs,
            run_rate=settings.subject_run_rate,
            streams=settings.subject_streams,
            ticket_rate=settings.subject_ticket_rate,
            agents=0,
        ),
        "run": RunAllowance(
            events=settings.run_events,
            bytes=settings.run_bytes,
            event_rate=settings.run_event_rate,
            byte_rate=settings.run_byte_rate,
        ),
    }


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Redis is reachable and safe to hold runs."""

    status: str
    server: str
    version: str
    append_only: bool | None


def summary(record: RunRecord) -> RunSummary:
    """A record as a listing shows it."""
    return RunSummary(
        run_id=record.run_id,
        tenant=record.tenant,
        initiator=record.initiator,
        session_id=record.session_id,
        parent_run_id=record.parent_run_id,
        agent=record.agent,
        resource_scope=record.resource_scope,
        release_id=record.release_id,
        state=record.state,
        attempt=record.attempt,
        sequence=record.sequence,
        created_at=when(record.created_at) or "",
        started_at=when(record.started_at),
        last_activity_at=when(record.last_activity_at) or "",
        finished_at=when(record.finished_at),
        expires_at=when(record.expires_at),
        links=links(record.run_id),
    )


def cancel_answer(snapshot: Snapshot, disposition: str) -> CancelAnswer:
    """A cancel request's answer, from the snapshot it was true at: the two cannot tell different stories."""
    return CancelAnswer(
        run_id=snapshot.run_id,
        state=snapshot.state,
        sequence=snapshot.sequence,
        disposition=disposition,
        cancel=snapshot.cancel,
        receipts=tuple(
            Receipt(tool_call_id=t.tool_call_id, tool=t.tool, receipt_id=t.receipt_id, result_version=t.result_version)
            for t in snapshot.tools
            if t.status == "completed"
        ),
        resources=snapshot.resources,
        outcome=snapshot.outcome,
        error=snapshot.error,
        links=snapshot.links,
    )


def input_answer(run_id: str, wait_id: str, sequence: int) -> InputAnswer:
    """The answer to an answer."""
    return InputAnswer(run_id=run_id, wait_id=wait_id, sequence=sequence, event_id=event_id(run_id, sequence), links=links(run_id))
