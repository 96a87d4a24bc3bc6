"""What earlier passes of a handler already said.

A handler that goes on after a wait or a lost worker runs again from the top. What it says again must not be told again: a completed
message with the same role and text, and a product event with the same type and payload, are recognised and left as they are, each as
often as it is in the log. What differs is told as new. Messages and events that a handler writes under ids of its own (``message.*`` or
``tool.*`` by `Run.emit`), reasoning and progress are not recognised.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ..core.event import DELTA_TYPES, MESSAGE_COMPLETED, RESERVED_PREFIXES, Event
from .hold import Hold

if TYPE_CHECKING:
    from ..store.events import Events

_OTHERS: Final = (*RESERVED_PREFIXES, "message.", "tool.")
_PAGE: Final = 64


class Recall:
    """Messages and events of earlier passes that this pass has not repeated yet."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._messages: Counter[tuple[str, str]] = Counter()
        self._events: Counter[tuple[str, bytes, str | None]] = Counter()

    def add(self, event: Event) -> None:
        """Remember one event of the log."""
        if event.type == MESSAGE_COMPLETED:
            if (said := _whole(event.payload)) is not None:
                self._messages[said] += 1
        elif event.type not in DELTA_TYPES and not event.type.startswith(_OTHERS):
            self._events[event.type, event.payload, event.scope] += 1

    def told(self, kind: str, payload: bytes, scope: str | None) -> bool:
        """Whether an event is in the log already; counts as its repetition."""
        return _take(self._events, (kind, payload, scope))

    def begins(self, role: str, text: str) -> bool:
        """Whether some message of the log begins like this."""
        return any(count and role == r and known.startswith(text) for (r, known), count in self._messages.items())

    def said(self, role: str, text: str) -> bool:
        """Whether a whole message is in the log already; counts as its repetition."""
        return _take(self._messages, (role, text))


def _take(counter: Counter[Any], key: Any) -> bool:
    if counter[key] < 1:
        return False
    counter[key] -= 1
    return True


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Completed(msgspec.Struct, forbid_unknown_fields=True):
    message_id: str
    role: str
    content: list[_Text]


_completed: Final = msgspec.json.Decoder(_Completed)


def _whole(payload: bytes) -> tuple[str, str] | None:
    """Role and text of a completed message that `Run.message` may have written; None for any other."""
    try:
        message = _completed.decode(payload)
    except msgspec.DecodeError:
        return None
    return (message.role, "".join(t.text for t in message.content)) if len(message.content) < 2 else None


async def history(events: "Events", hold: Hold) -> AsyncGenerator[Event]:
    """Every event of the run up to now that is still kept, however many they are.

    Raises:
        Interrupt: The store was away for longer than the lease lasts.
    """
    cursor = 0
    while page := await hold.insist(lambda: events.after(hold.lease.run_id, cursor, _PAGE)):  # noqa: B023
        for event in page:
            yield event
        cursor = page[-1].sequence
