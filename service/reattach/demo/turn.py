"""One turn of a model: heard piece by piece, told as events, and recorded so that it is never asked for twice."""

import hashlib
import re
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from reattach import Message, Run

from .model.client import Model
from .model.dialect import Request
from .model.pieces import ApprovalNeeded, ArgumentsDelta, Done, Piece, ProviderTool, Reasoning, Text, ToolCallReady, ToolCallStarted

TURN: Final = "model.turn"
"""Type of the event that records a turn."""

_LONGEST_ID: Final = 96


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of one turn.

    Attributes:
        tool_call_id: Its id in the run's log: the model's own, made unique among all turns.
        call_id: The model's own.
        tool: As the model named it.
        arguments: JSON text, or what the model sent in its place.
    """

    tool_call_id: str
    call_id: str
    tool: str
    arguments: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said and wanted in one turn; the payload of ``model.turn``.

    It is in the log before any of its calls is carried out. A handler that runs again takes it from there: another turn of the same
    model would have other calls under other ids, and every effect would happen once more.
    """

    turn: int
    model: str
    finish: str
    messages: tuple[str, ...]
    calls: tuple[Call, ...]
    approvals: tuple[ApprovalNeeded, ...]
    echo: tuple[str, ...]


async def recorded_turns(run: Run) -> dict[int, Turn]:
    """The turns that earlier passes of the handler recorded, by number."""
    turns = [msgspec.convert(event.payload, Turn) for event in await run.history() if event.type == TURN]
    return {turn.turn: turn for turn in turns}


async def hear(run: Run, model: Model, request: Request, number: int) -> Turn:
    """Have a turn and record it.

    Raises:
        ModelError: The turn failed; a message it had begun is ended as interrupted.
    """
    heard = _Hearing(run, number)
    async with heard:
        async for piece in model.turn(request):
            await heard.take(piece)
    turn = heard.turn(model.name)
    await run.emit(TURN, msgspec.to_builtins(turn))
    return turn


async def repeat(run: Run, turn: Turn) -> None:
    """Say what a recorded turn said; the run recognises it and appends nothing."""
    for text in turn.messages:
        async with run.message() as message:
            await message.write(text)


class _Hearing:
    """Tells the pieces of one turn as events, and keeps what the record needs."""

    def __init__(self, run: Run, number: int) -> None:
        self._run, self._number = run, number
        self._message: Message | None = None
        self._stack = AsyncExitStack()
        self._text: list[str] = []
        self._messages: list[str] = []
        self._tools: dict[str, str] = {}
        self._calls: list[Call] = []
        self._approvals: list[ApprovalNeeded] = []
        self._echo: list[str] = []
        self._finish = ""

    async def __aenter__(self) -> "_Hearing":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)
        self._keep()

    def turn(self, model: str) -> Turn:
        """The record."""
        return Turn(
            turn=self._number,
            model=model,
            finish=self._finish,
            messages=tuple(self._messages),
            calls=tuple(self._calls),
            approvals=tuple(self._approvals),
            echo=tuple(self._echo),
        )

    async def take(self, piece: Piece) -> None:
        """Tell one piece."""
        match piece:
            case Text(text):
                await self._write(text)
            case Reasoning(text):
                await self._run.emit("reasoning.delta", {"text": text})
            case ToolCallStarted(call_id, tool):
                self._tools[call_id] = tool
                await self._progress(self._id(call_id), tool, "started")
            case ArgumentsDelta(call_id, text):
                await self._progress(self._id(call_id), self._tools.get(call_id, ""), "arguments", text=text)
            case ToolCallReady(call_id, tool, arguments):
                self._calls.append(Call(tool_call_id=self._unique(call_id), call_id=call_id, tool=tool, arguments=arguments))
            case ProviderTool():
                facts = {"text": piece.text, "arguments": piece.arguments, "by": "provider"}
                await self._progress(piece.call_id, piece.tool, piece.status, **facts)
            case ApprovalNeeded():
                self._approvals.append(piece)
            case Done(reason, echo):
                self._finish = reason
                self._echo += echo
                await self._stack.aclose()
                self._keep()
            case _:
                pass

    async def _write(self, text: str) -> None:
        if self._message is None:
            self._message = await self._stack.enter_async_context(self._run.message())
        self._text.append(text)
        await self._message.write(text)

    def _keep(self) -> None:
        if self._text:
            self._messages.append("".join(self._text))
        self._text, self._message = [], None

    async def _progress(self, call_id: str, tool: str, status: str, **facts: str | None) -> None:
        known = {name: value for name, value in facts.items() if value is not None}
        await self._run.emit("tool.progress", {"tool_call_id": call_id, "tool": tool, "status": status, **known})

    def _id(self, call_id: str) -> str:
        return f"turn_{self._number}/{_plain(call_id)}"

    def _unique(self, call_id: str) -> str:
        same = sum(call.call_id == call_id for call in self._calls)
        return self._id(call_id) + (f"#{same + 1}" if same else "")


def _plain(call_id: str) -> str:
    """An id in the alphabet that ids of calls have; one that must be changed for that is told apart by its digest."""
    plain = re.sub(r"[^A-Za-z0-9_.:@-]", "_", call_id)[:_LONGEST_ID]
    return plain if plain == call_id and plain else f"{plain}_{hashlib.sha256(call_id.encode()).hexdigest()[:8]}"
