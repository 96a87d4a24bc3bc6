"""A conversation with a model: turn, tools, results, next turn, until it has answered."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from reattach import EffectFailed, Receipt, Run, RunFailed

from .ask import is_yes
from .desk import Offered
from .model.client import Model
from .model.dialect import Answered, Approval, Asked, Entry, Request, Said, ToolResult
from .model.failures import ModelError
from .model.pieces import ApprovalNeeded, arguments_object
from .turn import Call, Turn, hear, recorded_turns, repeat

MODEL_ERROR: Final = "model_error"
MOST_TURNS: Final = 8
APPROVAL_TIMEOUT: Final = 3600.0
"""Seconds a person has to decide on what the provider wants to do."""

BROKEN_OFF: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded", "content_filter", "refusal", "incomplete"}
)
"""Reasons to stop that are not the end of an answer."""

PAUSED: Final = "pause_turn"
"""The provider wants the same conversation again, to go on with its own tools."""


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a conversation.

    Attributes:
        answer: What the model said last.
        receipts: Of all tool calls that succeeded, in order.
    """

    answer: str
    receipts: tuple[Receipt, ...]


async def converse(
    run: Run, model: Model, *, instructions: str, question: str, tools: Sequence[Offered], most_turns: int = MOST_TURNS
) -> Talk:
    """Talk until the model has nothing more to ask for.

    Raises:
        RunFailed: ``model_error``: a turn failed or broke off, or there were too many.
        EffectUnresolved: It is unknown whether a tool took effect.
    """
    known = await recorded_turns(run)
    offered = {tool.wire_name: tool for tool in tools}
    described = [tool.described() for tool in tools]
    talk: list[Entry] = [Asked(question)]
    receipts: list[Receipt] = []
    for number in range(1, most_turns + 1):
        request = Request(model=model.name, instructions=instructions, tools=described, conversation=talk)
        turn = await _turn(run, model, request, number, known.get(number))
        talk.append(Said(turn.echo))
        if turn.calls or turn.approvals:
            talk.append(await _answers(run, turn, offered, receipts))
        elif turn.finish != PAUSED:
            return Talk(answer=_answer(turn), receipts=tuple(receipts))
    raise RunFailed(MODEL_ERROR, f"the model did not come to an answer within {most_turns} turns")


async def _turn(run: Run, model: Model, request: Request, number: int, known: Turn | None) -> Turn:
    if known is not None:
        await repeat(run, known)
        return known
    try:
        turn = await hear(run, model, request, number)
    except ModelError as e:
        # Not chained: what is below may know the key.
        raise RunFailed(MODEL_ERROR, e.failed.message) from None
    if turn.finish in BROKEN_OFF:
        raise RunFailed(MODEL_ERROR, f"the model stopped before its answer was complete ({turn.finish})")
    return turn


def _answer(turn: Turn) -> str:
    if not turn.messages:
        raise RunFailed(MODEL_ERROR, "the model ended its turn without an answer")
    return turn.messages[-1]


async def _answers(run: Run, turn: Turn, offered: Mapping[str, Offered], receipts: list[Receipt]) -> Answered:
    results: list[ToolResult] = []
    for call in turn.calls:
        try:
            receipt = await _carry_out(run, call, offered)
        except EffectFailed as e:
            results.append(ToolResult(call_id=call.call_id, output=e.detail, is_error=True))
            continue
        receipts.append(receipt)
        results.append(ToolResult(call_id=call.call_id, output=json.dumps(receipt.result, ensure_ascii=False)))
    approvals = [await _decide(run, wanted) for wanted in turn.approvals]
    return Answered(tuple(results), tuple(approvals))


async def _carry_out(run: Run, call: Call, offered: Mapping[str, Offered]) -> Receipt:
    tool, given = offered.get(call.tool), arguments_object(call.arguments)
    if tool is None:
        return await _refuse(run, call, f"there is no tool of this name; there are: {', '.join(offered)}")
    if given is None:
        return await _refuse(run, call, "the arguments are not a JSON object")
    try:
        checked = msgspec.convert(given, tool.arguments, strict=False)
    except msgspec.ValidationError as e:
        return await _refuse(run, call, str(e))
    return await run.effect(
        tool.name,
        tool.fn,
        msgspec.structs.asdict(checked),
        call_id=call.tool_call_id,
        read_only=tool.read_only,
        on_unresolved=tool.on_unresolved,
    )


async def _refuse(run: Run, call: Call, why: str) -> Receipt:
    """Let a call fail that cannot be carried out, in the log as well as for the model."""

    def refused(arguments: str) -> None:
        raise ValueError(why)

    name = "".join(char if char.isascii() and (char.isalnum() or char in "_.:/-") else "_" for char in call.tool)[:128] or "unnamed"
    return await run.effect(name, refused, {"arguments": call.arguments}, call_id=call.tool_call_id, read_only=True)


async def _decide(run: Run, wanted: ApprovalNeeded) -> Approval:
    prompt = f"Let {wanted.server or 'the provider'} run {wanted.tool} with {wanted.arguments[:300]}?"
    said = await run.wait_for("approval", prompt=prompt, timeout=APPROVAL_TIMEOUT)
    return Approval(request_id=wanted.request_id, approved=is_yes(said))
