"""Which events would let older deltas go: they say again, in one piece, what a message's deltas said, and change nothing else."""

from typing import Any, Final

import msgspec

from .event import MESSAGE_CHECKPOINT, MESSAGE_COMPLETED, Draft, Event
from .fold import Fold
from .transcript import Entry

_OVERHEAD: Final = 100
"""About what a delta takes in a log besides its text: saying all of a text again is worth while when it takes less than that."""


def covering(fold: Fold, *, through: int, max_bytes: int) -> list[Draft]:
    """Events to append right after the fold's last one, so that deltas up to a sequence are covered.

    A streaming message gets a ``message.checkpoint``; one that nobody goes on with its ``message.completed`` with status ``interrupted``.
    A text is said again only when that takes less room than its deltas do, so that a log never grows by it on the whole. What had a scope
    of its own is said under that scope; what had several is left alone, since one event cannot be about all of them.

    Args:
        fold: The run so far.
        through: Deltas behind this sequence may stay uncovered.
        max_bytes: Largest payload; a longer text stays with its deltas.
    """
    drafts: list[Draft] = []
    after = Fold.load(fold.dump())
    for entry in fold.uncovered(through):
        scopes = fold.scopes_of(entry.message_id)
        draft = _draft(entry, scopes[0] if scopes else None)
        if len(scopes) > 1 or len(draft.payload) > min(max_bytes, _OVERHEAD * (fold.sequence - entry.first + 1)):
            continue
        trial = Fold.load(after.dump())
        trial.apply(Event(after.sequence + 1, draft.type, 0, draft.payload))
        # A message of parts that the fold shows otherwise once they are said anew is left as it is.
        if trial.messages() == after.messages():
            drafts.append(draft)
            after = trial
    return drafts


def _draft(entry: Entry, scope: str | None) -> Draft:
    shown = entry.view()
    if shown.status == "streaming":
        text: dict[str, Any] = {"message_id": shown.message_id, "text": entry.last_text()}
        return Draft(MESSAGE_CHECKPOINT, msgspec.json.encode(text), scope)
    about = {"message_id": shown.message_id, "role": shown.role, "content": shown.content, "status": shown.status}
    return Draft(MESSAGE_COMPLETED, msgspec.json.encode(about), scope)
