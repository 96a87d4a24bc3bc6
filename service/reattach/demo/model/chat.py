"""Chat Completions (``/chat/completions``), as OpenAI defined it and as others send it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from .dialect import END, Answered, Asked, Dialect, Request, Said, bearer
from .failures import CUT, MalformedChunk, by_report
from .pieces import ArgumentsDelta, Done, Piece, Reasoning, Text, ToolCallReady, ToolCallStarted


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _ToolCall(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, frozen=True):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str | int | None = None
    type: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    error: _Error | str | None = None


class _Call:
    """A call that is still coming in."""

    def __init__(self, call_id: str, index: int | None) -> None:
        self.call_id, self.index, self.tool, self.parts = call_id, index, "", list[str]()

    @property
    def arguments(self) -> str:
        return "".join(self.parts)

    def echo(self) -> dict[str, object]:
        return {"id": self.call_id, "type": "function", "function": {"name": self.tool, "arguments": self.arguments or "{}"}}


class ChatDecoder:
    """Decodes one streamed completion; only the first choice counts."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._reason: str | None = None
        self._over = False

    def feed(self, data: str) -> list[Piece]:
        """Take in one chunk, or ``[DONE]``.

        Raises:
            MalformedChunk: It is neither.
        """
        if data.strip() == END:
            return self._close(self._reason or "stop")
        try:
            chunk = msgspec.json.decode(data, type=_Chunk)
        except msgspec.DecodeError:
            raise MalformedChunk from None
        if chunk.error is not None:
            return [by_report(_kind(chunk.error))]
        return [piece for choice in chunk.choices or () if choice.index == 0 for piece in self._choice(choice)]

    def end(self) -> list[Piece]:
        """Not every provider says ``[DONE]``; one that gave a reason to stop has finished."""
        if self._over:
            return []
        return [CUT] if self._reason is None else self._close(self._reason)

    def _choice(self, choice: _Choice) -> Iterator[Piece]:
        delta = choice.delta or _Delta()
        # Some send their thinking under both names: it is the same text.
        if thought := delta.reasoning_content or delta.reasoning:
            yield Reasoning(thought)
        if text := _plain(delta.content) or delta.refusal:
            self._text.append(text)
            yield Text(text)
        for call in delta.tool_calls or ():
            yield from self._call(call)
        self._reason = choice.finish_reason or self._reason

    def _call(self, part: _ToolCall) -> Iterator[Piece]:
        function = part.function or _Function()
        call = self._find(part)
        if call is None:
            call = _Call(part.id or f"call_{len(self._calls)}", part.index)
            self._calls.append(call)
        if function.name and not call.tool:
            call.tool = function.name
            yield ToolCallStarted(call.call_id, call.tool)
        arguments = function.arguments
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode() if arguments else ""
        if arguments:
            call.parts.append(arguments)
            yield ArgumentsDelta(call.call_id, arguments)

    def _find(self, part: _ToolCall) -> _Call | None:
        # The index tells the calls apart, except where a provider gives all of them the same one, or none: there an id that comes with
        # a name does. An id alone does not: some make up a new one for every piece.
        for call in self._calls:
            if part.id and part.id == call.call_id:
                return call
        if part.id and part.function is not None and part.function.name:
            return None
        for call in reversed(self._calls):
            if part.index is None or part.index == call.index:
                return call
        return None

    def _close(self, reason: str) -> list[Piece]:
        if self._over:
            return []
        self._over = True
        ready: list[Piece] = [ToolCallReady(call.call_id, call.tool, call.arguments) for call in self._calls]
        text = "".join(self._text)
        if not text and not self._calls:
            return [Done(reason, ())]
        message: dict[str, object] = {"role": "assistant", "content": text or None}
        if self._calls:
            message["tool_calls"] = [call.echo() for call in self._calls]
        return [*ready, Done(reason, (msgspec.json.encode(message).decode(),))]


def _kind(error: _Error | str) -> str | None:
    if isinstance(error, str):
        return None
    return str(error.code) if error.code is not None else error.type


def _plain(content: str | list[_Part] | None) -> str:
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    return content or ""


def body(request: Request) -> bytes:
    """The request for one turn."""
    messages: list[object] = [{"role": "system", "content": request.instructions}]
    for entry in request.conversation:
        if isinstance(entry, Asked):
            messages.append({"role": "user", "content": entry.text})
        elif isinstance(entry, Said):
            messages.extend(msgspec.Raw(item.encode()) for item in entry.echo)
        else:
            messages.extend(_answers(entry))
    tools = [
        {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}}
        for tool in request.tools
    ]
    return msgspec.json.encode({"model": request.model, "stream": True, "messages": messages, **({"tools": tools} if tools else {})})


def _answers(entry: Answered) -> list[object]:
    return [{"role": "tool", "tool_call_id": result.call_id, "content": result.output} for result in entry.results]


CHAT: Final = Dialect(name="chat", path="/chat/completions", headers=bearer, body=body, decoder=ChatDecoder)
