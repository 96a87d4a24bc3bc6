"""Anthropic Messages (``/messages``)."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from .dialect import END, Answered, Asked, Dialect, Request
from .failures import CUT, MalformedChunk, by_report
from .pieces import ArgumentsDelta, Done, Piece, ProviderTool, Reasoning, Text, ToolCallReady, ToolCallStarted, arguments_object

VERSION: Final = "2023-06-01"
MAX_TOKENS: Final = 4096
"""The protocol wants a limit; an answer to a ticket is far below it."""


class _Block(msgspec.Struct, frozen=True):
    type: str
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    input: msgspec.Raw = msgspec.Raw()


class _Delta(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    content: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct, frozen=True):
    content: list[msgspec.Raw] | None = None
    stop_reason: str | None = None


class _Report(msgspec.Struct, frozen=True):
    type: str | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: msgspec.Raw = msgspec.Raw()
    delta: _Delta | None = None
    error: _Report | None = None


class _Open:
    """A block that is still coming in: how it started, and the pieces since."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self.start = msgspec.json.decode(raw, type=_Block)
        self._raw = raw
        self._added: dict[str, list[str]] = {}

    @property
    def call_id(self) -> str:
        return self.start.id or self.start.tool_use_id or ""

    def add(self, member: str, piece: str) -> None:
        self._added.setdefault(member, []).append(piece)

    @property
    def arguments(self) -> str:
        """The pieces joined; where there were none, what the block started with."""
        return "".join(self._added.get("input", ())) or bytes(self.start.input).decode() or "{}"

    def echo(self) -> str | None:
        """The whole block as JSON; None for one that a request must not contain."""
        block = msgspec.json.decode(self._raw, type=dict[str, object])
        for member, pieces in self._added.items():
            block[member] = f"{block.get(member) or ''}{''.join(pieces)}"
        if "input" in self._added:
            known = arguments_object(self.arguments)
            block["input"] = {"unreadable": self.arguments} if known is None else known
        if self.start.type == "text" and not block.get("text"):
            return None
        return msgspec.json.encode(block).decode()


class MessagesDecoder:
    """Decodes one streamed message."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._blocks: dict[int, _Open] = {}
        self._echo: list[str] = []
        self._reason = ""
        self._over = False
        self._rules: dict[str, Callable[[_Event], Iterator[Piece]]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
        }

    def feed(self, data: str) -> list[Piece]:
        """Take in one event; types that are unknown, and pings, bring nothing.

        Raises:
            MalformedChunk: It is not one.
        """
        if data.strip() == END:
            return []
        try:
            kind = msgspec.json.decode(data, type=_Report).type or ""
            if (rule := self._rules.get(kind)) is None:
                return []
            return list(rule(msgspec.json.decode(data, type=_Event)))
        except msgspec.DecodeError:
            raise MalformedChunk from None

    def end(self) -> list[Piece]:
        """The message must have stopped by then."""
        return [] if self._over else [CUT]

    def _message_start(self, event: _Event) -> Iterator[Piece]:
        message = event.message or _Message()
        self._blocks.clear()
        self._over, self._reason = False, message.stop_reason or ""
        # A message may bring blocks along: calls that code on the provider's side makes come so, without any delta.
        for raw in message.content or ():
            block = _Open(raw)
            yield from self._started(block)
            yield from self._stopped(block)

    def _block_start(self, event: _Event) -> Iterator[Piece]:
        block = self._blocks[event.index] = _Open(event.content_block)
        yield from self._started(block)

    def _started(self, block: _Open) -> Iterator[Piece]:
        start = block.start
        if start.type == "tool_use":
            yield ToolCallStarted(block.call_id, start.name or "")
        elif start.type in ("server_tool_use", "mcp_tool_use"):
            yield ProviderTool(call_id=block.call_id, tool=start.name or start.type, status="started")
        elif start.type == "text" and start.text:
            yield Text(start.text)
        elif start.type == "thinking" and start.thinking:
            yield Reasoning(start.thinking)

    def _block_delta(self, event: _Event) -> Iterator[Piece]:
        block, delta = self._blocks.get(event.index), event.delta
        if block is None or delta is None:
            raise MalformedChunk
        if delta.type == "text_delta" and delta.text:
            block.add("text", delta.text)
            yield Text(delta.text)
        elif delta.type == "thinking_delta" and delta.thinking:
            block.add("thinking", delta.thinking)
            yield Reasoning(delta.thinking)
        elif delta.type == "signature_delta":
            block.add("signature", delta.signature)
        elif delta.type == "compaction_delta" and delta.content:
            block.add("content", delta.content)
        elif delta.type == "input_json_delta" and delta.partial_json:
            block.add("input", delta.partial_json)
            yield self._argument(block, delta.partial_json)

    def _argument(self, block: _Open, text: str) -> Piece:
        if block.start.type == "tool_use":
            return ArgumentsDelta(block.call_id, text)
        return ProviderTool(call_id=block.call_id, tool=block.start.name or block.start.type, status="arguments", text=text)

    def _block_stop(self, event: _Event) -> Iterator[Piece]:
        block = self._blocks.pop(event.index, None)
        if block is not None:
            yield from self._stopped(block)

    def _stopped(self, block: _Open) -> Iterator[Piece]:
        kind, name = block.start.type, block.start.name
        if (echo := block.echo()) is not None:
            self._echo.append(echo)
        if kind == "tool_use":
            yield ToolCallReady(block.call_id, name or "", block.arguments)
        elif kind in ("server_tool_use", "mcp_tool_use"):
            yield ProviderTool(call_id=block.call_id, tool=name or kind, status="requested", arguments=block.arguments)
        elif kind.endswith("_tool_result"):
            yield ProviderTool(call_id=block.call_id, tool=kind.removesuffix("_tool_result"), status="completed")

    def _message_delta(self, event: _Event) -> Iterator[Piece]:
        self._reason = (event.delta.stop_reason if event.delta else None) or self._reason
        yield from ()

    def _message_stop(self, event: _Event) -> Iterator[Piece]:
        self._over = True
        yield Done(self._reason or "end_turn", tuple(self._echo))
        self._echo.clear()

    def _error(self, event: _Event) -> Iterator[Piece]:
        yield by_report(event.error.type if event.error else None)


def body(request: Request) -> bytes:
    """The request for one turn."""
    messages: list[object] = []
    for entry in request.conversation:
        if isinstance(entry, Asked):
            messages.append({"role": "user", "content": entry.text})
        elif isinstance(entry, Answered):
            messages.append({"role": "user", "content": [_result(entry, i) for i in range(len(entry.results))]})
        elif entry.echo:
            messages.append({"role": "assistant", "content": [msgspec.Raw(block.encode()) for block in entry.echo]})
    tools = [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in request.tools]
    about = {"model": request.model, "max_tokens": MAX_TOKENS, "system": request.instructions, "stream": True}
    return msgspec.json.encode({**about, "messages": messages, "tools": tools})


def _result(entry: Answered, index: int) -> dict[str, object]:
    result = entry.results[index]
    about: dict[str, object] = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.output}
    return {**about, "is_error": True} if result.is_error else about


def _headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


MESSAGES: Final = Dialect(name="messages", path="/messages", headers=_headers, body=body, decoder=MessagesDecoder)
