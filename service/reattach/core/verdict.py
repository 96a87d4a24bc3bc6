"""What a person says of a tool call whose fate nobody knows, and the wait it is said to.

The wait is named after the call and the very ``tool.unresolved`` event it is about: a call that becomes unresolved again is a new
question, which an earlier answer does not settle.
"""

import re
from typing import Final

import msgspec

from .ids import digest

REASON: Final = "effect_unresolved"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
ABSENT: Final = msgspec.Raw()
"""No result; ``null`` is one. The very object: what is equal to it is not left out."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The answer; over HTTP it is the ``value`` of ``POST …/inputs``.

    Attributes:
        happened: Whether the call took effect. If not, the tool is called again.
        receipt_id: What the outside calls the effect.
        result_version: The resource's version after it, ``resource:version``.
        result: JSON text of what the tool would have returned.
    """

    happened: bool
    receipt_id: str | None = None
    result_version: str | None = None
    result: msgspec.Raw = ABSENT


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Verdict)


def write_verdict(verdict: Verdict) -> bytes:
    """A verdict as JSON text."""
    return _encoder.encode(verdict)


def read_verdict(raw: bytes) -> Verdict | None:
    """An answer; None when it is not a verdict."""
    try:
        return _decoder.decode(raw)
    except msgspec.DecodeError:
        return None


def question_id(call_id: str, sequence: int, turn: int = 1) -> str:
    """Name of the wait that asks about a call.

    Args:
        call_id: The call.
        sequence: Of its ``tool.unresolved`` event.
        turn: Above 1 where earlier answers were not verdicts.
    """
    # The point keeps these names apart from those of `Run.wait_for`, which have none.
    return f"{_stem(call_id)}{sequence}" + (f".{turn}" if turn > 1 else "")


def asks_about(wait_id: str, call_id: str) -> bool:
    """Whether a wait is a question about this call."""
    return wait_id.startswith(_stem(call_id))


def _stem(call_id: str) -> str:
    return f"resolve_{call_id if _PLAIN.fullmatch(call_id) else digest(call_id)[:20]}."
