"""One real example of everything that is sent or received, for the OpenAPI document. They are values of the types they illustrate."""

from typing import Any, Final

import msgspec

from ..core.event import Event, to_frame
from ..core.run import Cancel, Retention, RunRecord, links
from ..core.settings import Settings
from ..core.snapshot import Message, Snapshot, Tool
from .answers import EventPage, Health, InputAnswer, Limits, Readiness, RunList, TicketAnswer, allowances, cancel_answer, summary
from .auth.tokens import MAX_TOKEN
from .bodies import EXAMPLE_RUN as RUN
from .bodies import MAX_KEY, MAX_METADATA, MAX_PAGE_EVENTS, MAX_PAGE_RUNS, MAX_REASON, MAX_WAIT, CancelRun, CreateRun, GiveInput, MakeTicket
from .session_examples import SESSION_EXTRAS, session_values
from .sse import closing
from .wire import MAX_HEAD
from .worker_bodies import MAX_AGENTS, MAX_BATCH
from .worker_examples import WORKER_VALUES

Raw = msgspec.Raw

_AT: Final = 1_787_566_471_000
_SCOPE: Final = "dev/ticket_981"
_TICKET: Final = "tkt_m3Vc0bQZr5uJqk8Yw2hXo7nT1sLd9fEgA4iPzKxRvBM"
_RELEASE: Final = "support-agent-2026-08-24.1"

RECORD: Final = RunRecord(
    run_id=RUN, tenant="dev", initiator="developer", agent="support", resource_scope=_SCOPE, release_id=_RELEASE, state="succeeded",
    sequence=9, created_at=_AT - 4000, started_at=_AT - 3950, last_activity_at=_AT, finished_at=_AT, attempt=1,
    session_id="conversation-17", input=b'{"ticket":981}',
)  # fmt: skip

_PAYLOAD: Final = b'{"tool_call_id":"call_22","tool":"tickets.add_note","receipt_id":"receipt_558","result_version":"ticket_981:v19"}'
_EVENT: Final = to_frame(Event(7, "tool.completed", _AT - 200, _PAYLOAD), run_id=RUN, release_id=_RELEASE, scope=_SCOPE)

SNAPSHOT: Final = Snapshot(
    run_id=RUN, tenant="dev", initiator="developer", session_id="conversation-17", parent_run_id=None, agent="support",
    resource_scope=_SCOPE, release_id=_RELEASE, model_policy=None, tool_catalog=None, input_version=None, input=Raw(b'{"ticket":981}'),
    metadata=Raw(b"{}"), state="succeeded", attempt=1, sequence=9, earliest_sequence=1, cancel=Cancel(), waiting=None,
    outcome=Raw(b'{"note":"receipt_558"}'), error=None, created_at="2026-08-24T10:14:27.000Z", started_at="2026-08-24T10:14:27.050Z",
    last_activity_at="2026-08-24T10:14:31.000Z", finished_at="2026-08-24T10:14:31.000Z", events_expire_at="2026-08-31T10:14:31.000Z",
    expires_at="2026-09-23T10:14:31.000Z",
    messages=(
        Message(message_id="m1", role="assistant", status="completed", content=Raw(b'[{"type":"text","text":"I have noted the delay."}]')),
    ),
    tools=(
        Tool(
            tool_call_id="call_22", tool="tickets.add_note", status="completed", requested_at="2026-08-24T10:14:30.100Z",
            finished_at="2026-08-24T10:14:30.800Z", arguments=Raw(b'{"ticket":981}'), receipt_id="receipt_558",
            result_version="ticket_981:v19",
        ),
    ),
    resources={"ticket_981": "v19"}, unresolved=(), links=links(RUN),
)  # fmt: skip

LIMITS: Final = Limits(
    max_body=Settings().max_body, max_payload=Settings().max_payload, max_head=MAX_HEAD, max_token=MAX_TOKEN, max_metadata=MAX_METADATA,
    max_depth=64, max_idempotency_key=MAX_KEY,
    max_reason=MAX_REASON, max_page_events=MAX_PAGE_EVENTS, max_page_runs=MAX_PAGE_RUNS, max_batch=MAX_BATCH, max_agents=MAX_AGENTS,
    max_wait=MAX_WAIT, max_streams=Settings().max_streams, max_event_type=64, keepalive=15.0, stream_lifetime=3600.0, write_timeout=20.0,
    ticket_lifetime=900.0, lease=15.0, live_events=Settings().live_events, **allowances(Settings()), retention=Retention(),
)  # fmt: skip

_VALUES: Final[tuple[Any, ...]] = (
    CreateRun(agent="support", input=Raw(b'{"ticket":981}'), session_id="conversation-17", resource_scope=_SCOPE),
    CancelRun(reason="the customer hung up"),
    GiveInput(wait_id="approval_1", value=Raw(b"true")),
    SNAPSHOT,
    RunList(runs=(summary(RECORD),), next_before=None),
    EventPage(events=(_EVENT,), next_cursor=f"{RUN}:7", latest_sequence=9, state="succeeded", done=False),
    cancel_answer(SNAPSHOT, "already_terminal"),
    MakeTicket(expires_in=60),
    TicketAnswer(ticket=_TICKET, expires_at="2026-08-24T10:15:31.000Z", expires_in=60.0, url=f"{links(RUN)['events']}?ticket={_TICKET}"),
    InputAnswer(run_id=RUN, wait_id="approval_1", sequence=5, event_id=f"{RUN}:5", links=links(RUN)),
    LIMITS,
    Health(status="ok"),
    Readiness(status="ready", server="valkey", version="9.1.2", append_only=True),
    *session_values(RECORD, SNAPSHOT, _EVENT),
    *WORKER_VALUES,
)

STREAM: Final = (
    ": reattach\nretry: 1730\n\n"
    f"id: {RUN}:7\nevent: tool.completed\ndata: {msgspec.json.encode(_EVENT).decode()}\n\n:\n\n{closing('lifetime').decode()}"
)


def example_of(kind: type[Any]) -> Any:
    """The example of a type, as JSON values; None when there is none."""
    for value in _VALUES:
        if type(value) is kind:
            return msgspec.json.decode(msgspec.json.encode(value))
    return None


PROBLEM_EXTRAS: Final[dict[str, dict[str, Any]]] = {
    "invalid_request": {"field": "agent"},
    "payload_too_large": {"field": "input", "max_bytes": 262_144},
    "future_cursor": {"latest_sequence": 9, "state": "succeeded", "snapshot": f"/agent-runs/{RUN}"},
    "cursor_expired": {
        "earliest_sequence": 10, "latest_sequence": 9, "state": "succeeded", "snapshot": f"/agent-runs/{RUN}", "resume_after": f"{RUN}:9",
        "render": "completed_message",
    },
    "internal_error": {"request_id": "5f0c2d9a7b3e4c11"},
    **SESSION_EXTRAS,
}  # fmt: skip
