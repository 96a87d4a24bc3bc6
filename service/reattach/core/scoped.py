"""Which parts of a fold come from events about something else than their run, so that a snapshot can leave them out.

A message or a tool call that an event of such a scope had a part in is shown to those only who may read that scope. It is left out as a
whole: what of it came from other events is not kept apart. Nothing can be learned that way that the redacted events did not say.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from .event import Event
from .projections import read


class _Message(msgspec.Struct, frozen=True, gc=False):
    message_id: str


class _Call(msgspec.Struct, frozen=True, gc=False):
    tool_call_id: str


class _Version(msgspec.Struct, frozen=True, gc=False):
    result_version: str


_message: Final = msgspec.json.Decoder(_Message)
_call: Final = msgspec.json.Decoder(_Call)
_version: Final = msgspec.json.Decoder(_Version)


def _named(event: Event) -> Iterator[tuple[str, str]]:
    """What of a snapshot an event has a part in; a type that is not projected has none, nor has a payload that does not fit."""
    family = event.type.partition(".")[0]
    if family == "message" and (message := read(_message, event.payload)) is not None:
        yield "message", message.message_id
    if family == "tool":
        if (call := read(_call, event.payload)) is not None:
            yield "tool", call.tool_call_id
        if (version := read(_version, event.payload)) is not None:
            yield "resource", version.result_version.rpartition(":")[0]


class Scoped(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What events with a scope of their own had a part in, by name: message, tool call or resource → those scopes."""

    message: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    tool: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    resource: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.message or self.tool or self.resource)

    def note(self, event: Event) -> None:
        """Take note of an event that has a scope of its own."""
        assert event.scope is not None
        for kind, name in _named(event):
            known: dict[str, list[str]] = getattr(self, kind)
            scopes = known.setdefault(name, [])
            if event.scope not in scopes:
                scopes.append(event.scope)

    @property
    def scopes(self) -> frozenset[str]:
        """All of them."""
        return frozenset(scope for named in (self.message, self.tool, self.resource) for scopes in named.values() for scope in scopes)

    def shows(self, kind: str, name: str, hidden: Iterable[str]) -> bool:
        """Whether a message, tool or resource is shown to somebody who may not read these scopes."""
        named: dict[str, list[str]] = getattr(self, kind)
        scopes = named.get(name)
        return scopes is None or frozenset(hidden).isdisjoint(scopes)
