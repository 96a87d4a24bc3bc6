"""OpenAI Responses (``/responses``)."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from .dialect import END, Answered, Asked, Dialect, Request, Said, bearer
from .failures import CUT, MalformedChunk, by_report
from .pieces import ApprovalNeeded, ArgumentsDelta, Done, Piece, ProviderTool, Reasoning, Text, ToolCallReady, ToolCallStarted

_STEP = re.compile(r"response\.(?:[a-z0-9_]+_call|mcp_list_tools)\.([a-z_]+)")
_TOLD_ELSEWHERE: Final = frozenset({"in_progress", "completed"})
"""Steps of a provider's tool that its item tells of as well, and better."""


class _Item(msgspec.Struct, frozen=True):
    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    status: str | None = None
    server_label: str | None = None
    code: str | None = None
    queries: list[str] | None = None
    action: dict[str, object] | None = None

    @property
    def key(self) -> str:
        return self.call_id or self.id or ""


class _Report(msgspec.Struct, frozen=True):
    code: str | None = None
    type: str | None = None


class _Reason(msgspec.Struct, frozen=True):
    reason: str | None = None


class _Response(msgspec.Struct, frozen=True):
    output: list[msgspec.Raw] | None = None
    error: _Report | None = None
    incomplete_details: _Reason | None = None


class _Event(msgspec.Struct, frozen=True):
    """Any event: members that a type does not have stay empty, and those of unknown types may hold anything."""

    type: str = ""
    output_index: int = -1
    content_index: int = 0
    summary_index: int = 0
    delta: object = None
    text: object = None
    item: msgspec.Raw = msgspec.Raw()
    response: _Response | None = None
    error: _Report | None = None
    code: str | None = None


class ResponsesDecoder:
    """Decodes one streamed response."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._items: dict[int, _Item] = {}
        self._echo: list[str] = []
        self._ready: set[str] = set()
        self._spoken: set[tuple[int, int]] = set()
        self._over = False
        self._rules: dict[str, Callable[[_Event], Iterator[Piece]]] = {
            "response.created": self._created,
            "response.output_text.delta": self._text,
            "response.output_text.done": self._whole_text,
            "response.refusal.delta": self._text,
            "response.reasoning_text.delta": self._reasoning,
            "response.reasoning_summary_text.delta": self._reasoning,
            "response.reasoning_summary_part.added": self._reasoning_part,
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.completed": self._completed,
            "response.incomplete": self._completed,
            "response.failed": self._failed,
            "error": self._failed,
        }

    def feed(self, data: str) -> list[Piece]:
        """Take in one event.

        Raises:
            MalformedChunk: It is not one.
        """
        if data.strip() == END:
            return []
        try:
            event = msgspec.json.decode(data, type=_Event)
            return list(self._rules.get(event.type, self._other)(event))
        except msgspec.DecodeError:
            raise MalformedChunk from None

    def end(self) -> list[Piece]:
        """The response must have ended by then."""
        return [] if self._over else [CUT]

    def _created(self, event: _Event) -> Iterator[Piece]:
        self._items.clear()
        self._spoken.clear()
        self._over = False
        yield from ()

    def _text(self, event: _Event) -> Iterator[Piece]:
        self._spoken.add((event.output_index, event.content_index))
        if isinstance(event.delta, str) and event.delta:
            yield Text(event.delta)

    def _whole_text(self, event: _Event) -> Iterator[Piece]:
        if isinstance(event.text, str) and event.text and (event.output_index, event.content_index) not in self._spoken:
            yield Text(event.text)

    def _reasoning(self, event: _Event) -> Iterator[Piece]:
        if isinstance(event.delta, str) and event.delta:
            yield Reasoning(event.delta)

    def _reasoning_part(self, event: _Event) -> Iterator[Piece]:
        if event.summary_index > 0:
            yield Reasoning("\n\n")

    def _added(self, event: _Event) -> Iterator[Piece]:
        item = _item(event.item)
        self._items[event.output_index] = item
        if _is_call(item):
            yield ToolCallStarted(item.key, item.name or "")
        elif _is_provided(item):
            yield ProviderTool(call_id=item.key, tool=_kind(item), status="started")

    def _done(self, event: _Event) -> Iterator[Piece]:
        item = _item(event.item)
        self._items[event.output_index] = item
        self._echo.append(bytes(event.item).decode())
        yield from self._finished(item)

    def _finished(self, item: _Item) -> Iterator[Piece]:
        if _is_call(item):
            if item.key not in self._ready:
                self._ready.add(item.key)
                yield ToolCallReady(item.key, item.name or "", item.arguments or item.input or "")
        elif item.type == "mcp_approval_request":
            yield ApprovalNeeded(
                request_id=item.id or "", tool=item.name or "", server=item.server_label or "", arguments=item.arguments or "{}"
            )
        elif _is_provided(item):
            status = item.status or "completed"
            yield ProviderTool(call_id=item.key, tool=_kind(item), status=status, arguments=_arguments(item))

    def _completed(self, event: _Event) -> Iterator[Piece]:
        response = event.response or _Response()
        if not self._echo:
            # Some servers send the items here only.
            for raw in response.output or ():
                self._echo.append(bytes(raw).decode())
                yield from self._finished(_item(raw))
        self._over = True
        reason = (response.incomplete_details or _Reason()).reason or event.type.removeprefix("response.")
        yield Done(reason, tuple(self._echo))
        self._echo.clear()

    def _failed(self, event: _Event) -> Iterator[Piece]:
        report = event.error or (event.response.error if event.response else None) or _Report(code=event.code)
        yield by_report(report.code or report.type)

    def _other(self, event: _Event) -> Iterator[Piece]:
        item = self._items.get(event.output_index)
        if item is None:
            return
        if event.type.endswith(".delta") and isinstance(event.delta, str) and event.delta:
            if _is_call(item):
                yield ArgumentsDelta(item.key, event.delta)
            elif _is_provided(item):
                yield ProviderTool(call_id=item.key, tool=_kind(item), status="arguments", text=event.delta)
        elif (step := _STEP.fullmatch(event.type)) and step[1] not in _TOLD_ELSEWHERE and _is_provided(item):
            yield ProviderTool(call_id=item.key, tool=_kind(item), status=step[1])


def _item(raw: msgspec.Raw) -> _Item:
    return msgspec.json.decode(raw, type=_Item)


def _is_call(item: _Item) -> bool:
    return item.type in ("function_call", "custom_tool_call")


def _is_provided(item: _Item) -> bool:
    return item.type not in ("message", "reasoning", "mcp_approval_request") and not _is_call(item)


def _kind(item: _Item) -> str:
    return item.name or item.type.removesuffix("_call")


def _arguments(item: _Item) -> str | None:
    if item.arguments:
        return item.arguments
    asked: dict[str, object] = {name: value for name, value in (item.action or {}).items() if name != "sources"}
    if item.code:
        asked["code"] = item.code
    if item.queries:
        asked["queries"] = item.queries
    return msgspec.json.encode(asked).decode() if asked else None


def body(request: Request) -> bytes:
    """The request for one turn."""
    entries: list[object] = []
    for entry in request.conversation:
        if isinstance(entry, Asked):
            entries.append({"role": "user", "content": entry.text})
        elif isinstance(entry, Said):
            entries.extend(msgspec.Raw(item.encode()) for item in entry.echo)
        else:
            entries.extend(_answers(entry))
    tools = [
        {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters, "strict": False}
        for t in request.tools
    ]
    return msgspec.json.encode(
        {"model": request.model, "instructions": request.instructions, "stream": True, "input": entries, "tools": tools}
    )


def _answers(entry: Answered) -> Iterator[object]:
    for result in entry.results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result.output}
    for approval in entry.approvals:
        yield {"type": "mcp_approval_response", "approval_request_id": approval.request_id, "approve": approval.approved}


RESPONSES: Final = Dialect(name="responses", path="/responses", headers=bearer, body=body, decoder=ResponsesDecoder)
