"""The way of a handler's events into the log."""

import re
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidRequest
from ..core.event import Draft, check_type
from ..core.payload import to_json
from ..core.run import SCOPE_PATTERN
from .appender import Appender
from .hold import Hold
from .recall import Recall

if TYPE_CHECKING:
    from .message import Message


class Output:
    """What a run says under one hold.

    Attributes:
        recall: What earlier passes said.
        open: Messages that were begun and not ended.
        max_payload: Largest payload, bytes.
    """

    def __init__(self, hold: Hold, appender: Appender, recall: Recall, *, max_payload: int) -> None:
        """Write under a hold."""
        self.hold, self.recall, self.max_payload = hold, recall, max_payload
        self.open: dict[Message, None] = {}
        self._appender = appender
        # The sequence of the claim is new in every pass, also where the attempt's number is not: no pass can reuse another's id.
        self._stem = f"msg_{hold.sequence}"
        self._count = 0

    def message_id(self) -> str:
        """A message id that no other pass of the run has used."""
        self._count += 1
        return f"{self._stem}_{self._count}"

    async def emit(self, kind: str, payload: Any, scope: str | None) -> None:
        """Append a handler's own event, unless an earlier pass did.

        Raises:
            InvalidRequest: Type, payload or scope are not valid.
            PayloadTooLarge: The payload is too large.
            Interrupt: The handler must unwind.
        """
        check_type(kind)
        if scope is not None and re.fullmatch(SCOPE_PATTERN[1:-1], scope) is None:
            raise InvalidRequest(f"a resource_scope matches {SCOPE_PATTERN}", field="resource_scope")
        raw = self.encode(payload)
        self.hold.check()
        if not self.recall.told(kind, raw, scope):
            await self.send(kind, raw, scope)

    def encode(self, payload: Any) -> bytes:
        """A payload's JSON text.

        Raises:
            InvalidRequest: It has no JSON form.
            PayloadTooLarge: It is too large.
        """
        return to_json(payload, max_bytes=self.max_payload, what="payload")

    async def send(self, kind: str, raw: bytes, scope: str | None = None) -> None:
        """Append an event."""
        await self._appender.put(Draft(kind, raw, scope))

    async def split(self) -> None:
        """End the part that every open message has so far: what is said after a pause is said under another id."""
        for message in list(self.open):
            await message.split()
