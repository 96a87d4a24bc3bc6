"""A message of a run, streamed: ``message.started``, ``message.delta`` …, ``message.completed`` with the whole text.

One message becomes several, each with its own id, where it must: when it would outgrow the largest payload (the completed event carries
the whole text), and at a wait (the handler runs again from the top afterwards, and what was said before must not start again).
"""

import asyncio
from types import TracebackType
from typing import Any, Final, Self

from ..core.errors import InvalidRequest
from ..core.event import MESSAGE_CHECKPOINT, MESSAGE_COMPLETED, MESSAGE_DELTA, MESSAGE_STARTED, REASONING_DELTA
from .output import Output

CHECKPOINT_DELTAS: Final = 256
"""After this many deltas, and a quarter more text, a checkpoint carries the text so far, so that older deltas may go."""

_OVERHEAD: Final = 256
_WORST_BYTES: Final = 6
"""JSON bytes one character may need (a control character is written as an escape)."""


class Part:
    """The stretch of a message that is under one id."""

    def __init__(self, message_id: str, *, frame: int, silent: bool) -> None:
        self.message_id, self.frame, self.silent = message_id, frame, silent
        self.texts: list[str] = []
        self.size = 0
        self.pending: list[tuple[str, bytes]] = []
        self.deltas = 0
        self.checkpoint = 0

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(self.texts)


class Message:
    """An open message. Use it in ``async with``; text written to it is visible at once.

    Leaving the block by an exception that the handler goes on from ends the message as ``interrupted``.
    """

    def __init__(self, output: Output, role: str) -> None:
        """Prepare a message; it starts when the block is entered."""
        self._output, self._role = output, role
        self._limit = max(output.max_payload - _OVERHEAD, 64)
        self._part: Part | None = None
        self._entered = self._closed = False
        self._lock = asyncio.Lock()

    @property
    def message_id(self) -> str | None:
        """The id the next text goes under; None before the message starts and after it ended."""
        return self._part.message_id if self._part else None

    async def __aenter__(self) -> Self:
        self._output.hold.check()
        if self._entered:
            raise InvalidRequest("a message can be opened once", field="message")
        self._entered = True
        self._output.open[self] = None
        async with self._lock:
            await self._open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._output.open.pop(self, None)
        self._closed = True
        # A handler that unwinds because it must stop says nothing more: the run's next event tells that the message was interrupted.
        if kind is None or issubclass(kind, Exception):
            async with self._lock:
                await self._end(interrupted=kind is not None)

    async def write(self, text: str) -> None:
        """Append text: one ``message.delta``. Nothing happens for an empty string.

        Raises:
            InvalidRequest: It is not a string, has a lone surrogate, or the message has ended.
        """
        self._check(text)
        longest = self._limit // _WORST_BYTES
        async with self._lock:
            for start in range(0, len(text), longest):
                await self._write(text[start : start + longest])

    async def reasoning(self, text: str) -> None:
        """Append a piece of the model's reasoning: one ``reasoning.delta``. It is delivered, and not part of the text.

        Raises:
            InvalidRequest: As in `write`.
        """
        self._check(text)
        if not text:
            return
        async with self._lock:
            part = self._part or await self._open()
            await self._say(part, REASONING_DELTA, self._output.encode({"message_id": part.message_id, "text": text}))

    async def split(self) -> None:
        """End what was written so far; later text goes under another id."""
        async with self._lock:
            await self._end()

    def _check(self, text: object) -> None:
        if not isinstance(text, str):
            raise InvalidRequest(f"a message is written in strings, not {type(text).__name__}", field="text")
        if self._closed or not self._entered:
            what = "has ended" if self._closed else "is not open: use async with run.message()"
            raise InvalidRequest(f"the message {what}", field="text")
        self._output.hold.check()

    async def _open(self) -> Part:
        message_id = self._output.message_id()
        frame = len(self._output.encode({"message_id": message_id, "text": ""}))
        part = self._part = Part(message_id, frame=frame, silent=self._output.recall.begins(self._role, ""))
        await self._say(part, MESSAGE_STARTED, self._output.encode({"message_id": part.message_id, "role": self._role}))
        return part

    async def _write(self, text: str) -> None:
        part = self._part or await self._open()
        raw = self._output.encode({"message_id": part.message_id, "text": text})
        if part.texts and part.size + len(raw) > self._limit:
            await self._end()
            part = await self._open()
            raw = self._output.encode({"message_id": part.message_id, "text": text})
        part.texts.append(text)
        part.size += len(raw) - part.frame
        if part.silent and not self._output.recall.begins(self._role, part.text):
            await self._speak(part)
        await self._say(part, MESSAGE_DELTA, raw)
        part.deltas += 1
        if not part.silent and part.deltas >= CHECKPOINT_DELTAS and part.size > part.checkpoint * 5 // 4:
            part.deltas, part.checkpoint = 0, part.size
            await self._say(part, MESSAGE_CHECKPOINT, self._output.encode({"message_id": part.message_id, "text": part.text}))

    async def _say(self, part: Part, kind: str, raw: bytes) -> None:
        if part.silent:
            part.pending.append((kind, raw))
        else:
            await self._output.send(kind, raw)

    async def _speak(self, part: Part) -> None:
        """What was held back because the log might have it already is new after all."""
        part.silent = False
        for kind, raw in part.pending:
            await self._output.send(kind, raw)
        part.pending.clear()

    async def _end(self, *, interrupted: bool = False) -> None:
        part, self._part = self._part, None
        if part is None:
            return
        text = part.text
        if part.silent:
            if not interrupted and self._output.recall.said(self._role, text):
                return
            await self._speak(part)
        about: dict[str, Any] = {"message_id": part.message_id, "role": self._role}
        about["content"] = [{"type": "text", "text": text}] if text else []
        if interrupted:
            about["status"] = "interrupted"
        await self._output.send(MESSAGE_COMPLETED, self._output.encode(about))
