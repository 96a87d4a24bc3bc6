"""What the fold reads of each event's payload; everything else in a payload is carried and not looked at.

A member is required unless it has a default; an optional one may be null. A payload that does not fit is not projected: handlers may
append ``message.*`` and ``tool.*`` events of any shape, and no event that is in a log may ever make its run unreadable.
"""

from typing import Final, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from .cancel import Disposition

ABSENT: Final = Raw()
"""A JSON value that was not given; null is one that was."""

T = TypeVar("T")


class MessageStarted(msgspec.Struct, frozen=True, gc=False):
    """``message.started``; `content` is what the message begins with."""

    message_id: str
    role: str | None = None
    content: Raw = ABSENT


class MessageText(msgspec.Struct, frozen=True, gc=False):
    """``message.delta`` (more text) and ``message.checkpoint`` (the text so far)."""

    message_id: str
    text: str


class MessageCompleted(msgspec.Struct, frozen=True, gc=False):
    """``message.completed``; status ``interrupted`` says that the message ends here without being whole."""

    message_id: str
    content: Raw
    role: str | None = None
    status: str | None = None


class ToolRequested(msgspec.Struct, frozen=True, gc=False):
    """``tool.requested``."""

    tool_call_id: str
    tool: str
    arguments: Raw = ABSENT


class ToolSettled(msgspec.Struct, frozen=True, gc=False):
    """``tool.completed``, ``tool.failed`` and ``tool.unresolved``."""

    tool_call_id: str
    tool: str
    receipt_id: str | None = None
    result_version: str | None = None
    result: Raw = ABSENT
    error: Raw = ABSENT
    why: str | None = None


class RunAttempt(msgspec.Struct, frozen=True, gc=False):
    """``run.started``, ``run.resumed`` and ``run.retrying``."""

    attempt: int | None = None


class RunWaiting(msgspec.Struct, frozen=True, gc=False):
    """``run.waiting``."""

    wait_id: str = ""
    reason: str = ""
    expires_at: str | None = None
    prompt: str | None = None


class RunCancelRequested(msgspec.Struct, frozen=True, gc=False):
    """``run.cancel_requested``."""

    cancel_version: int = 1
    by: str | None = None
    reason: str | None = None


class RunEnded(msgspec.Struct, frozen=True, gc=False):
    """``run.succeeded``, ``run.failed`` and ``run.cancelled``."""

    outcome: Raw = ABSENT
    error: Raw = ABSENT
    disposition: Disposition | None = None


STARTED: Final = Decoder(MessageStarted)
TEXT: Final = Decoder(MessageText)
COMPLETED: Final = Decoder(MessageCompleted)
REQUESTED: Final = Decoder(ToolRequested)
SETTLED: Final = Decoder(ToolSettled)
ATTEMPT: Final = Decoder(RunAttempt)
WAITING: Final = Decoder(RunWaiting)
CANCEL_REQUESTED: Final = Decoder(RunCancelRequested)
ENDED: Final = Decoder(RunEnded)


def read(decoder: "Decoder[T]", payload: bytes) -> T | None:
    """Decode a payload; None when it does not fit."""
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return None


def given(value: Raw) -> Raw | None:
    """The value for a snapshot, where a value that was not given is None."""
    return None if value == ABSENT else value
