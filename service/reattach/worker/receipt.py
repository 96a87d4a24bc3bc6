"""What a tool call left behind, as a handler sees it."""

from typing import Any

import msgspec

from ..core.errors import ReattachError
from ..core.ids import digest
from ..core.payload import from_json, to_json
from ..core.receipt import Effect, EffectCall


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a tool call took effect; `Run.effect` returns it. A tool's function may also return one, to choose its members.

    Attributes:
        receipt_id: What the outside calls the effect; made from run and call where the function names none.
        result_version: The resource's version after it, ``resource:version``.
        result: What the function returned, as JSON carries it (a tuple is a list), in the first attempt as in any later one.
        tool_call_id: The call.
        tool: Name of the tool.
        replayed: Whether it was answered from the record, without calling the function.
    """

    receipt_id: str = ""
    result_version: str | None = None
    result: Any = None
    tool_call_id: str = ""
    tool: str = ""
    replayed: bool = False


def to_receipt(effect: Effect, *, replayed: bool) -> Receipt:
    """A stored effect as a handler sees it."""
    return Receipt(
        receipt_id=effect.receipt_id or "",
        result_version=effect.result_version,
        result=None if effect.result is None else from_json(effect.result),
        tool_call_id=effect.call_id,
        tool=effect.tool,
        replayed=replayed,
    )


def to_effect(run_id: str, call: EffectCall, value: Any, max_bytes: int) -> tuple[Effect, ReattachError | None]:
    """What is recorded of a function that returned.

    A value that has no JSON form or is too large does not undo what the function did: the receipt is then recorded without a result, and
    the handler is told.

    Returns:
        The effect, and what was wrong with the value.
    """
    facts = value if isinstance(value, Receipt) else None
    result: bytes | None = None
    problem: ReattachError | None = None
    try:
        result = to_json(facts.result if facts else value, max_bytes=max_bytes, what=f"result of {call.tool}", want_object=False)
    except ReattachError as e:
        problem = e
    if facts is None:
        facts = _named(result)
    effect = Effect(
        call_id=call.call_id,
        tool=call.tool,
        status="receipt",
        mutating=call.mutating,
        arguments=call.arguments,
        receipt_id=_text(facts.receipt_id) or f"receipt_{digest(run_id, call.call_id)[:20]}",
        result_version=_text(facts.result_version),
        result=result,
    )
    return effect, problem


def _named(result: bytes | None) -> Receipt:
    """The members of an object that name a receipt; a database's number is as good as a text."""
    members: Any = from_json(result) if result is not None and result[:1] == b"{" else {}
    return Receipt(receipt_id=members.get("receipt_id"), result_version=members.get("result_version"))


def _text(member: object) -> str | None:
    """What is recorded must be readable for the next attempt, whatever a function put where a name belongs: the effect has happened."""
    if not isinstance(member, str | int) or isinstance(member, bool):
        return None
    return str(member).encode("utf-8", "replace").decode()
