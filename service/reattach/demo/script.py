"""The support agent without a model: what it says is in the data, what it does is real."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from reattach import Run

from .ask import Ask, speed_of
from .desk import Desk
from .tickets import Answer


def pieces(text: str) -> Iterator[str]:
    """Cut a text as a model streams it: a word or the start of one, with the space before it. Joined, they are the text."""
    return (match[0] for match in re.finditer(r"\s*\S{1,9}|\s+", text))


async def answer_from_data(run: Run, ask: Ask, desk: Desk, told: Answer) -> dict[str, Any]:
    """Look at the ticket, think, leave a note, answer; the run's outcome.

    When it runs again after a worker was lost, both effects are answered from their receipts, and what was said is not said again.
    """
    speed = speed_of(ask)

    async def say(write: Callable[[str], Awaitable[None]], text: str) -> None:
        for piece in pieces(text):
            await write(piece)
            if speed:
                await run.sleep(1 / speed)

    async with run.message() as message:
        await say(message.write, told.opening)
    await run.effect("tickets.read", desk.read, {"ticket": ask.ticket}, read_only=True)
    async with run.message() as message:
        await say(message.reasoning, told.thinking)
        note = await run.effect("tickets.add_note", desk.add_note, {"ticket": ask.ticket, "body": told.note}, on_unresolved=desk.find_note)
        answer = _asked(ask) + told.answer
        await say(message.write, answer)
    return {"ticket": ask.ticket, "note": note.receipt_id, "version": note.result_version, "answer": answer}


def _asked(ask: Ask) -> str:
    if not ask.question:
        return ""
    return f"You asked: “{ask.question}” No model is set, so I can only say what the ticket itself calls for.\n\n"
