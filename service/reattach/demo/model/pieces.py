"""What a model says, whichever protocol it speaks."""

from typing import Protocol

import msgspec


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of the model's thinking, as far as its provider shows it."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True):
    """The model began to call one of the agent's tools."""

    call_id: str
    tool: str


class ArgumentsDelta(msgspec.Struct, frozen=True):
    """A piece of a call's arguments."""

    call_id: str
    text: str


class ToolCallReady(msgspec.Struct, frozen=True):
    """A call with all its arguments.

    Attributes:
        call_id: The provider's; unique within one turn.
        tool: As the model names it.
        arguments: JSON text of an object, or whatever the model sent in its place: see `arguments_object`.
    """

    call_id: str
    tool: str
    arguments: str


class ProviderTool(msgspec.Struct, frozen=True, kw_only=True):
    """Something the provider does by itself in the middle of a turn: searching the web, running code.

    Attributes:
        call_id: The provider's.
        tool: Its kind, e.g. ``web_search``.
        status: ``requested``, ``completed``, or the provider's own word for something in between.
        arguments: JSON text, once they are known.
        text: A piece of what it works on, e.g. of the code it is about to run.
    """

    call_id: str
    tool: str
    status: str
    arguments: str | None = None
    text: str | None = None


class ApprovalNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """The provider wants somebody's permission before it calls a remote tool.

    Attributes:
        request_id: What the answer must name.
        tool: The remote tool.
        server: Whose tool it is.
        arguments: JSON text.
    """

    request_id: str
    tool: str
    server: str
    arguments: str


class Done(msgspec.Struct, frozen=True):
    """The turn is complete.

    Attributes:
        reason: Why the model stopped, in its provider's words: ``stop``, ``tool_calls``, ``end_turn`` …
        echo: JSON texts of what the next request must repeat so that the model knows what it said.
    """

    reason: str
    echo: tuple[str, ...]


class ModelFailed(msgspec.Struct, frozen=True):
    """The turn will not be completed.

    Attributes:
        code: ``refused_credentials``, ``rate_limited``, ``overloaded``, ``cut`` … see `failures`.
        message: For people; holds nothing of what was sent or received.
    """

    code: str
    message: str


Piece = Text | Reasoning | ToolCallStarted | ArgumentsDelta | ToolCallReady | ProviderTool | ApprovalNeeded | Done | ModelFailed


class Decoder(Protocol):
    """Turns one answer's chunks into pieces. One object per answer; holds no connection and no clock."""

    def feed(self, data: str) -> list[Piece]:
        """Take in the data of one server-sent event.

        Raises:
            MalformedChunk: It is not what the protocol says.
        """
        ...

    def end(self) -> list[Piece]:
        """Say that nothing more will come. The last piece of a turn that is not complete is `ModelFailed`."""
        ...


def arguments_object(arguments: str) -> dict[str, object] | None:
    """A call's arguments, decoded; None when the model did not send a JSON object. No text at all means no arguments."""
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        return None
