"""What workers in other languages send, as types. Opaque values are carried byte for byte; `worker_facts` checks them."""

from typing import Annotated, Final, Literal

import msgspec

from ..core.event import MAX_TYPE, TYPE_PATTERN
from .bodies import MAX_WAIT, Agent, Object, Scope, Text

Meta = msgspec.Meta
Raw = msgspec.Raw
Unset = msgspec.UnsetType

MAX_AGENTS: Final = 32
MAX_BATCH: Final = 256
"""Most events in one append."""
MAX_PROMPT: Final = 4000
MAX_MESSAGE: Final = 500
MAX_LIMIT: Final = 10 * 366 * 86_400.0
"""Longest limit of a wait, seconds."""
EVENTS_DEPTH: Final = 3
"""Levels of a body above an event's payload."""
CODE_PATTERN: Final = r"^[a-z][a-z0-9_.-]{0,63}$"
EXAMPLE_FENCE: Final = "9f8b1c0de2a34b55a6c7d8e9f0a1b2c3"
_NAME: Final = r"^[A-Za-z0-9_.:#/@-]{1,128}$"
_TOOL: Final = r"^[A-Za-z0-9_.:/-]{1,128}$"


def _like(pattern: str, description: str, example: str) -> Meta:
    return Meta(pattern=pattern + r"(?!\n)", description=description, examples=[example])


def _text(length: int, description: str, example: str, *, least: int = 1) -> Meta:
    return Meta(min_length=least, max_length=length, description=f"{description}; at most {length} characters.", examples=[example])


Fence = Annotated[str, _like(r"^[0-9a-f]{32}$", "The claim's fence: proof that the run is yours.", EXAMPLE_FENCE)]
Version = Annotated[str, _text(256, "The resource's version after the call, as resource:version", "ticket_981:v19")]
CallId = Annotated[
    str, _like(r"^(?!wait:)" + _NAME[1:], "What makes it the same call in every attempt: A-Z a-z 0-9 _ . : # / @ -, 1 to 128.", "call_1")
]
WaitId = Annotated[
    str, _like(r"^(?!wait:)" + _NAME[1:], "Name of the wait, the same in every attempt: A-Z a-z 0-9 _ . : # / @ -, 1 to 128.", "approval_1")
]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every body here keeps to."""


class ClaimRun(Body, frozen=True, kw_only=True):
    """A worker that asks for a run."""

    agents: Annotated[
        tuple[Agent, ...], Meta(min_length=1, max_length=MAX_AGENTS, description=f"Agents the worker runs, 1 to {MAX_AGENTS}.")
    ]
    worker: Annotated[Text, Meta(description="Its name, for people: 1 to 128 printable ASCII characters.", examples=["node-7"])]
    claim_id: Annotated[
        Annotated[str, Meta(pattern=r"^[!-~]{16,128}(?!\n)", examples=["b0c3f6f2-7f1e-4d43-9a51-0f6b8d6a8f10"])] | None,
        Meta(
            description="A fresh random name for this claim, 16 to 128 printable ASCII characters. "
            "Sent again, it finds the same claim while its lease lasts."
        ),
    ] = None
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT, description=f"Seconds to wait for one, 0 to {MAX_WAIT:g}.", examples=[25])] = 25.0
    attempts: Annotated[int, Meta(ge=1, le=100, description="Workers that may be lost before the run fails, 1 to 100.")] = 3
    backoff: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds before the second retry, 0 to 3600; it doubles from then on.", examples=[1])
    ] = 1.0


class NewEvent(Body, frozen=True, kw_only=True):
    """An event to append."""

    type: Annotated[
        str,
        Meta(description=f"At most {MAX_TYPE} characters of the form {TYPE_PATTERN}; not run., input. or stream.", examples=["step.done"]),
    ]
    payload: Annotated[Object, Meta(description="A JSON object, kept byte for byte.", examples=[{"n": 1}])]
    resource_scope: Annotated[Scope | None, Meta(description="What it is about, where that is not the run's own scope.")] = None


class AppendEvents(Body, frozen=True, kw_only=True):
    """A numbered batch of events: all are appended, once however often the batch is sent."""

    fence: Fence
    batch: Annotated[int, Meta(ge=1, le=2**53, description="The claim's next_batch, then one more each time.", examples=[1])]
    events: Annotated[tuple[NewEvent, ...], Meta(min_length=1, max_length=MAX_BATCH, description=f"In this order; 1 to {MAX_BATCH}.")]


class IntendCall(Body, frozen=True, kw_only=True):
    """A tool call that is about to be made."""

    fence: Fence
    tool_call_id: CallId
    tool: Annotated[str, _like(_TOOL, "Name of the tool: A-Z a-z 0-9 _ . : / -, 1 to 128.", "tickets.add_note")]
    arguments: Annotated[Object | Unset, Meta(description="A JSON object, kept byte for byte.", examples=[{"ticket": 981}])] = msgspec.UNSET
    mutating: Annotated[bool, Meta(description="Whether it changes anything outside the run.")] = True
    again: Annotated[
        bool, Meta(description="Make it although an earlier owner may have made it: it only reads, or your policy for unresolved says so.")
    ] = False


class Failure(Body, frozen=True, kw_only=True):
    """How something failed."""

    code: Annotated[str, _like(CODE_PATTERN, "Stable, for programs: lower-case letters, digits and _ . -, at most 64.", "no_such_ticket")]
    message: Annotated[str, _text(MAX_MESSAGE, "For people; clients see it", "There is no ticket 981.", least=0)] = ""


class CommitCall(Body, frozen=True, kw_only=True):
    """What became of a tool call."""

    fence: Fence
    tool_call_id: CallId
    status: Annotated[
        Literal["receipt", "failed", "unresolved"],
        Meta(description="receipt: done. failed: done, and it failed. unresolved: nobody can tell."),
    ]
    receipt_id: Annotated[
        Annotated[str, _text(256, "What the outside calls it", "receipt_558")] | None,
        Meta(description="For receipt: what the outside calls it."),
    ] = None
    result_version: Annotated[Version | None, Meta(description="For receipt: the resource's version after it, as resource:version.")] = None
    result: Annotated[Raw | Unset, Meta(description="For receipt: any JSON value, kept byte for byte.", examples=[{"note": 7}])] = (
        msgspec.UNSET
    )
    error: Annotated[Failure | None, Meta(description="For failed: why.")] = None
    why: Annotated[
        Annotated[str, _text(200, "Why nobody can tell", "timeout")] | None, Meta(description="For unresolved: why nobody can tell.")
    ] = None


class ParkRun(Body, frozen=True, kw_only=True):
    """A wait for an answer or a time, without a worker."""

    fence: Fence
    wait_id: WaitId
    reason: Annotated[str, _text(128, "What is waited for", "approval")]
    prompt: Annotated[
        Annotated[str, _text(MAX_PROMPT, "What to ask a person", "Refund 40 EUR?")] | None, Meta(description="What to ask a person.")
    ] = None
    timeout: Annotated[
        Annotated[float, Meta(ge=0.001, le=MAX_LIMIT)] | None,
        Meta(description="Seconds after which the run fails with wait_expired, on the server's clock; none: no limit.", examples=[3600]),
    ] = None
    sleep: Annotated[bool, Meta(description="The limit is the purpose: the run goes on then. Needs timeout.")] = False


class FinishRun(Body, frozen=True, kw_only=True):
    """The end of a run."""

    fence: Fence
    state: Annotated[
        Literal["succeeded", "failed", "cancelled"], Meta(description="cancelled: only where it was asked for (cancel_version above 0).")
    ]
    outcome: Annotated[Raw | Unset, Meta(description="For succeeded: any JSON value, kept byte for byte.", examples=[{"note": 7}])] = (
        msgspec.UNSET
    )
    error: Annotated[Failure | None, Meta(description="For failed: why.")] = None


class RenewLease(Body, frozen=True, kw_only=True):
    """A worker that goes on."""

    fence: Fence
    wait: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_WAIT,
            description=f"Seconds to hold the answer until a stop is asked for, 0 to {MAX_WAIT:g} and at most a third of the lease.",
            examples=[5],
        ),
    ] = 0.0
    cancel_version: Annotated[int, Meta(ge=0, le=2**53, description="The highest one you were told: only a newer one ends the wait.")] = 0


class ReleaseRun(Body, frozen=True, kw_only=True):
    """A run that is given back."""

    fence: Fence
    cause: Annotated[str, _text(128, "Why, for run.retrying", "drain")] = "released"
