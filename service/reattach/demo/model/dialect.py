"""What a protocol is made of, and the conversation that its requests carry."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from .pieces import Decoder

END: Final = "[DONE]"
"""Data that ends a stream of Chat Completions; others send it too."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model is told of it.

    Attributes:
        name: Letters, digits, ``_`` and ``-`` only: no protocol takes a dot.
        parameters: JSON Schema of its arguments.
    """

    name: str
    description: str
    parameters: msgspec.Raw


class Asked(msgspec.Struct, frozen=True):
    """What the user says."""

    text: str


class Said(msgspec.Struct, frozen=True):
    """What the model said in one turn, as its `Done` told to repeat it."""

    echo: tuple[str, ...]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call brought; `output` is text for the model, mostly JSON."""

    call_id: str
    output: str
    is_error: bool = False


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the provider may call the remote tool it asked for."""

    request_id: str
    approved: bool


class Answered(msgspec.Struct, frozen=True):
    """What came of everything the model asked for in one turn."""

    results: tuple[ToolResult, ...]
    approvals: tuple[Approval, ...] = ()


Entry = Asked | Said | Answered


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be had."""

    model: str
    instructions: str
    tools: Sequence[Tool]
    conversation: Sequence[Entry]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol.

    Attributes:
        name: As ``REATTACH_DEMO_API`` names it.
        path: Below the base URL.
        headers: Made from the key, which may be empty.
        body: The request as JSON.
        decoder: Makes a decoder for one answer.
    """

    name: str
    path: str
    headers: Callable[[str], dict[str, str]]
    body: Callable[[Request], bytes]
    decoder: Callable[[], Decoder]


def bearer(key: str) -> dict[str, str]:
    """The header of the OpenAI family; local endpoints often want none."""
    return {"Authorization": f"Bearer {key}"} if key else {}
