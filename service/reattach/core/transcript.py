"""The messages of a run, folded from its ``message.*`` events.

What a message's events say is chosen so that a delta may be forgotten once a later ``message.checkpoint`` or ``message.completed`` of
the same message has been folded, without changing what anyone sees afterwards:

- both replace the whole text, so nothing of an earlier delta is left in it;
- messages stand in the order of their first event that is not a delta (messages that only deltas have named so far come last), so an
  earlier delta does not decide a place;
- a message takes text until it is completed, and again after another ``message.started``: no delta decides that either.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from .projections import ABSENT, MessageCompleted, MessageStarted, MessageText
from .snapshot import Message

_NOTHING: Final = Raw(b"[]")


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message as it is folded and stored.

    Attributes:
        message_id: Chosen by the handler.
        role: ``assistant`` unless an event says otherwise.
        status: streaming, completed or interrupted.
        content: What ``message.started`` or ``message.completed`` gave, as it was given.
        text: What was written after it, in pieces.
        first: Lowest sequence of a delta that no later event carries; 0 for none.
        last: Highest such sequence.
        named: Whether any event but a delta has named the message.
    """

    message_id: str
    role: str = "assistant"
    status: str = "streaming"
    content: Raw = _NOTHING
    text: list[str] = msgspec.field(default_factory=list[str])
    first: int = 0
    last: int = 0
    named: bool = True

    def join(self) -> str:
        """The text written after `content`; its pieces become one."""
        if len(self.text) > 1:
            self.text = ["".join(self.text)]
        return self.text[0] if self.text else ""

    def view(self) -> Message:
        """The message as a snapshot shows it: the text is one more part after what was given."""
        text, content = self.join(), self.content
        if text:
            parts = (bytes(content)[1:-1].strip(), b'{"type":"text","text":%b}' % msgspec.json.encode(text))
            content = Raw(b"[%b]" % b",".join(filter(None, parts)))
        return Message(message_id=self.message_id, role=self.role, status=self.status, content=content)


def _is_array(content: Raw) -> bool:
    return bytes(content)[:1] == b"["


class Transcript:
    """The messages of one run, and which of its deltas they still need."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """Continue from stored entries."""
        self._named: dict[str, Entry] = {}
        self._loose: dict[str, Entry] = {}
        for entry in entries:
            (self._named if entry.named else self._loose)[entry.message_id] = entry

    def entries(self) -> list[Entry]:
        """All messages in their order, to be stored."""
        for entry in self._named.values():
            entry.join()
        for entry in self._loose.values():
            entry.join()
        return [*self._named.values(), *self._loose.values()]

    def view(self) -> tuple[Message, ...]:
        """All messages in their order, as a snapshot shows them."""
        return tuple(entry.view() for entry in (*self._named.values(), *self._loose.values()))

    def _name(self, message_id: str) -> Entry:
        entry = self._named.get(message_id)
        if entry is None:
            entry = self._named[message_id] = self._loose.pop(message_id, None) or Entry(message_id=message_id)
            entry.named = True
        return entry

    def start(self, p: MessageStarted) -> None:
        """Begin a message, or begin it anew. Earlier deltas are not covered by that: they stay what the contract says they are."""
        if p.content != ABSENT and not _is_array(p.content):
            return
        entry = self._name(p.message_id)
        entry.role = p.role or "assistant"
        entry.status = "streaming"
        entry.content = _NOTHING if p.content == ABSENT else p.content
        entry.text = []

    def write(self, p: MessageText, sequence: int) -> None:
        """Add a delta's text."""
        entry = self._named.get(p.message_id) or self._loose.get(p.message_id)
        if entry is None:
            entry = self._loose[p.message_id] = Entry(message_id=p.message_id, named=False)
        elif entry.status == "completed":
            return
        entry.status = "streaming"
        entry.text.append(p.text)
        entry.first = entry.first or sequence
        entry.last = sequence

    def checkpoint(self, p: MessageText) -> None:
        """Replace the text: deltas up to here are no longer needed."""
        known = self._named.get(p.message_id)
        if known is not None and known.status == "completed":
            return
        entry = self._name(p.message_id)
        entry.status = "streaming"
        entry.text = [p.text]
        entry.first = entry.last = 0

    def complete(self, p: MessageCompleted) -> None:
        """Replace everything: deltas up to here are no longer needed."""
        if not _is_array(p.content):
            return
        entry = self._name(p.message_id)
        entry.role = p.role or entry.role
        entry.status = "interrupted" if p.status == "interrupted" else "completed"
        entry.content = p.content
        entry.text = []
        entry.first = entry.last = 0

    def interrupt(self) -> None:
        """Nobody goes on with the open messages."""
        for entry in (*self._named.values(), *self._loose.values()):
            if entry.status == "streaming":
                entry.status = "interrupted"

    @property
    def first_needed(self) -> int | None:
        """The lowest delta that no later event carries; None when there is none."""
        return min((e.first for e in (*self._named.values(), *self._loose.values()) if e.first), default=None)

    @property
    def last_needed(self) -> int:
        """The highest such delta; 0 when there is none."""
        return max((e.last for e in (*self._named.values(), *self._loose.values())), default=0)
