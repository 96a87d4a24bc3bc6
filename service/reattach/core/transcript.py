"""The messages of a run, folded from its ``message.*`` events.

Two things are asked of these rules. A delta may be forgotten once a later ``message.checkpoint`` or ``message.completed`` of the same
message was folded, without a difference to anyone who folds what is left: so both replace the text, whether a message takes text does
not depend on a delta, and where a message's place does, that delta stays needed. And a snapshot is all the state there is: whoever has
one continues from what it shows.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from .projections import ABSENT, MessageCompleted, MessageStarted, MessageText
from .snapshot import Message

_NOTHING: Final = Raw(b"[]")


class _TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


_parts: Final = msgspec.json.Decoder(list[Raw])
_text_part: Final = msgspec.json.Decoder(_TextPart)


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message as it is folded and stored.

    Attributes:
        message_id: Chosen by the handler.
        role: ``assistant`` unless an event says otherwise.
        status: streaming, completed or interrupted.
        content: The parts before `text`, as they were given.
        text: The last part where that is plain text and has been written to, in pieces.
        named: Whether any event but a delta has named the message.
        born: The delta that decided the message's place among the others; 0 when none did.
        first: Lowest sequence of a delta that no later event carries; 0 for none.
        last: Highest such sequence.
    """

    message_id: str
    role: str = "assistant"
    status: str = "streaming"
    content: Raw = _NOTHING
    text: list[str] = msgspec.field(default_factory=list[str])
    named: bool = True
    born: int = 0
    first: int = 0
    last: int = 0

    def join(self) -> str:
        """The written text; its pieces become one."""
        if len(self.text) > 1:
            self.text = ["".join(self.text)]
        return self.text[0] if self.text else ""

    def view(self) -> Message:
        """The message as a snapshot shows it."""
        text, content = self.join(), self.content
        if text:
            parts = (bytes(content)[1:-1].strip(), b'{"type":"text","text":%b}' % msgspec.json.encode(text))
            content = Raw(b"[%b]" % b",".join(filter(None, parts)))
        return Message(message_id=self.message_id, role=self.role, status=self.status, content=content)

    def last_text(self) -> str:
        """The text that a delta would be added to."""
        copy = msgspec.structs.replace(self, text=list(self.text))
        copy.open_text()
        return copy.join()

    def open_text(self) -> None:
        """Make the last part writable where it is plain text; any other part stays as it was given, and text comes after it."""
        if self.text or self.content == _NOTHING:
            return
        try:
            parts = _parts.decode(self.content)
            self.text = [_text_part.decode(parts.pop()).text]
        except (IndexError, RecursionError, msgspec.DecodeError):
            return
        self.content = Raw(b"[%b]" % b",".join(map(bytes, parts)))


def _is_array(content: Raw) -> bool:
    return bytes(content)[:1] == b"["


class Transcript:
    """The messages of one run in the order in which they were first named, and which of its deltas they still need."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """Continue from stored entries."""
        self._entries = {entry.message_id: entry for entry in entries}

    def entries(self) -> list[Entry]:
        """All messages, to be stored."""
        for entry in self._entries.values():
            entry.join()
        return list(self._entries.values())

    def view(self) -> tuple[Message, ...]:
        """All messages as a snapshot shows them."""
        return tuple(entry.view() for entry in self._entries.values())

    def start(self, p: MessageStarted) -> None:
        """Begin a message, or begin it anew. What was written before is gone from sight but not covered: the contract names who covers."""
        if p.content != ABSENT and not _is_array(p.content):
            return
        entry = self._name(p.message_id)
        entry.role = p.role or "assistant"
        entry.status = "streaming"
        entry.content, entry.text = _NOTHING if p.content == ABSENT else p.content, []

    def write(self, p: MessageText, sequence: int) -> None:
        """Add a delta's text; a completed message takes none."""
        entry = self._entries.get(p.message_id)
        if entry is None:
            entry = self._entries[p.message_id] = Entry(message_id=p.message_id, named=False, born=sequence)
        elif entry.status == "completed":
            return
        entry.status = "streaming"
        if p.text:
            entry.open_text()
            entry.text.append(p.text)
        entry.first = entry.first or sequence
        entry.last = sequence

    def checkpoint(self, p: MessageText) -> None:
        """Replace the text; a completed message takes none."""
        entry = self._entries.get(p.message_id)
        if entry is not None and entry.status == "completed":
            return
        entry = self._name(p.message_id)
        entry.open_text()
        entry.status = "streaming"
        entry.text = [p.text] if p.text else []
        entry.first = entry.last = 0

    def complete(self, p: MessageCompleted) -> None:
        """Replace everything."""
        if not _is_array(p.content):
            return
        entry = self._name(p.message_id)
        entry.role = p.role or entry.role
        entry.status = "interrupted" if p.status == "interrupted" else "completed"
        entry.content, entry.text = p.content, []
        entry.first = entry.last = 0

    def _name(self, message_id: str) -> Entry:
        entry = self._entries.get(message_id)
        if entry is None:
            entry = self._entries[message_id] = Entry(message_id=message_id)
        elif not entry.named:
            entry.named = True
            if entry is next(reversed(self._entries.values())):
                # Nothing came in between: without the delta the message would get the same place now.
                entry.born = 0
        return entry

    def interrupt(self) -> None:
        """Nobody goes on with the open messages."""
        for entry in self._entries.values():
            if entry.status == "streaming":
                entry.status = "interrupted"

    def uncovered(self, through: int) -> list[Entry]:
        """Messages with a delta up to a sequence that no later event carries."""
        return [entry for entry in self._entries.values() if 0 < entry.first <= through]

    @property
    def first_needed(self) -> int | None:
        """The lowest delta that a replay cannot do without; None when there is none."""
        return min((s for e in self._entries.values() for s in (e.born, e.first) if s), default=None)

    @property
    def last_needed(self) -> int:
        """The highest such delta; 0 when there is none."""
        return max((max(e.born, e.last) for e in self._entries.values()), default=0)
