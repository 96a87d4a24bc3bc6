"""One real example of everything that workers send and are sent, for the OpenAPI document."""

from typing import Any, Final

import msgspec

from ..core.receipt import Effect
from ..core.run import RunRecord
from .bodies import EXAMPLE_RUN as RUN
from .worker_answers import (
    AppendAnswer,
    ClaimAnswer,
    FinishAnswer,
    Grant,
    IntendAnswer,
    ParkAnswer,
    ReleaseAnswer,
    RenewAnswer,
    call_record,
    claimed_run,
)
from .worker_bodies import EXAMPLE_FENCE as FENCE
from .worker_bodies import AppendEvents, ClaimRun, CommitCall, FinishRun, IntendCall, NewEvent, ParkRun, ReleaseRun, RenewLease

Raw = msgspec.Raw

_RECORD: Final = RunRecord(
    run_id=RUN, tenant="dev", initiator="developer", agent="support", resource_scope="dev/ticket_981", release_id="unreleased",
    state="running", sequence=5, created_at=0, last_activity_at=0, input=b'{"ticket":981}',
)  # fmt: skip
_NOTE: Final = Effect(
    call_id="call_1", tool="tickets.add_note", status="receipt", mutating=True, arguments=b'{"ticket":981}', receipt_id="receipt_558",
    result_version="ticket_981:v19", result=b'{"note":7}',
)  # fmt: skip

WORKER_VALUES: Final[tuple[Any, ...]] = (
    ClaimRun(agents=("support",), worker="node-7", claim_id="b0c3f6f2-7f1e-4d43-9a51-0f6b8d6a8f10"),
    ClaimAnswer(
        lease=Grant(fence=FENCE, seconds=15.0, next_batch=1), run=claimed_run(_RECORD, 2), resumed=False,
        effects={"call_1": call_record(_NOTE)}, answers={"approval_1": Raw(b"true")},
    ),
    AppendEvents(fence=FENCE, batch=1, events=(NewEvent(type="message.delta", payload=Raw(b'{"message_id":"m1","text":"Looking"}')),)),
    AppendAnswer(sequence=6, cancel_version=0),
    IntendCall(fence=FENCE, tool_call_id="call_1", tool="tickets.add_note", arguments=Raw(b'{"ticket":981}')),
    IntendAnswer(kind="receipt", idempotency_key=f"{RUN}:call_1", effect=call_record(_NOTE)),
    CommitCall(
        fence=FENCE, tool_call_id="call_1", status="receipt", receipt_id="receipt_558", result_version="ticket_981:v19",
        result=Raw(b'{"note":7}'),
    ),
    ParkRun(fence=FENCE, wait_id="approval_1", reason="approval", prompt="Refund 40 EUR?", timeout=3600),
    ParkAnswer(kind="parked", value=None),
    FinishRun(fence=FENCE, state="succeeded", outcome=Raw(b'{"note":"receipt_558"}')),
    FinishAnswer(state="succeeded", disposition=None, sequence=9),
    RenewLease(fence=FENCE, wait=5),
    RenewAnswer(seconds=15.0, cancel_version=0),
    ReleaseRun(fence=FENCE, cause="drain"),
    ReleaseAnswer(run_id=RUN),
)  # fmt: skip
