"""The scripted agent: its input says what it does, so that a test of any layer can drive a real worker in any process.

``{"steps": [["emit", "step.done", {"n": 1}], ["text", "some words"], …, ["finish", {"ok": true}]]}``, with these steps:

====================  ========================================================================================================
``emit`` type payload  an event
``text`` text          a message, one delta per word
``say`` text seconds   the same with a pause after each word, in one message that stays open meanwhile
``reason`` text        a message with reasoning and no text
``sleep`` s            idle in place, holding the lease
``pause`` s            ``run.sleep(s, park=True)``
``block`` s            blocks the worker's loop, without ever yielding
``effect`` path {…}    a mutating tool that adds a line to the file at `path`: a counter outside the product. Options: ``before`` and
                       ``after`` (seconds around the line), ``thread`` (a sync tool), ``read_only``, ``timeout``, ``on_unresolved``
                       (``stop``, ``retry``, ``fail``, or ``probe``: look for this call's line), ``call_id``, ``fail`` (raise after
                       the line)
``together`` steps     its steps at the same time
``wait`` reason limit  ``run.wait_for``; the answer becomes part of the outcome
``die``                the process is gone on the next line
``fail`` code          a typed failure
``raise`` text         an exception
``finish`` outcome     the outcome; without it: ``{"attempt": n, "answers": […]}``
====================  ========================================================================================================
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from reattach import Agents, Run, RunFailed

agents = Agents()


class Finished(Exception):
    """The script said how it ends."""


def count(path: str | Path) -> int:
    """How often the tool behind a file took effect."""
    return len(lines(path))


def lines(path: str | Path) -> list[str]:
    """The idempotency keys it took effect under."""
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def _add(path: str, key: str) -> dict[str, Any]:
    # One short O_APPEND write: processes that do it at the same time do not mix their lines.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{key}\n".encode())
    os.close(descriptor)
    return {"lines": count(path)}


async def add_line(path: str, before: float, after: float, fail: bool, idempotency_key: str) -> dict[str, Any]:
    """The tool, async."""
    await asyncio.sleep(before)
    result = _add(path, idempotency_key)
    await asyncio.sleep(after)
    if fail:
        raise OSError("as the script says")
    return result


def add_line_in_thread(path: str, before: float, after: float, fail: bool, idempotency_key: str) -> dict[str, Any]:
    """The tool, blocking."""
    time.sleep(before)
    result = _add(path, idempotency_key)
    time.sleep(after)
    if fail:
        raise OSError("as the script says")
    return result


def find_line(path: str, before: float, after: float, fail: bool, idempotency_key: str) -> dict[str, Any] | None:
    """The probe."""
    return {"lines": count(path), "found": True} if idempotency_key in lines(path) else None


class Script:
    """One pass over the steps."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.answers: list[Any] = []
        self.outcome: Any = None

    async def play(self, steps: list[list[Any]]) -> None:
        """Do them in order."""
        for name, *arguments in steps:
            await _STEPS[name](self, *arguments)

    async def emit(self, kind: str, payload: dict[str, Any]) -> None:
        await self.run.emit(kind, payload)

    async def text(self, text: str, pause: float = 0) -> None:
        async with self.run.message() as message:
            for word in text.split(" "):
                await message.write(word if word == text.split(" ")[0] else f" {word}")
                if pause:
                    await asyncio.sleep(pause)

    async def reason(self, text: str) -> None:
        async with self.run.message() as message:
            await message.reasoning(text)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        await self.run.sleep(seconds, park=True)

    async def block(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - blocking the loop is what it is for

    async def effect(self, path: str, options: dict[str, Any] | None = None) -> None:
        given: dict[str, Any] = dict(options or {})
        tool = add_line_in_thread if given.pop("thread", False) else add_line
        if given.get("on_unresolved") == "probe":
            given["on_unresolved"] = find_line
        arguments = {"path": path, "before": given.pop("before", 0), "after": given.pop("after", 0), "fail": given.pop("fail", False)}
        await self.run.effect("counter.add", tool, arguments, **given)

    async def together(self, *steps: list[Any]) -> None:
        await asyncio.gather(*(self.play([step]) for step in steps))

    async def wait(self, reason: str, limit: float | None = None) -> None:
        self.answers.append(await self.run.wait_for(reason, prompt=f"{reason}?", timeout=limit))

    async def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def fail(self, code: str) -> None:
        raise RunFailed(code, "as the script says")

    async def throw(self, text: str) -> None:
        raise ValueError(text)

    async def finish(self, outcome: Any) -> None:
        self.outcome = outcome
        raise Finished


_STEPS: Final[dict[str, Callable[..., Awaitable[None]]]] = {
    "emit": Script.emit,
    "text": Script.text,
    "say": Script.text,
    "reason": Script.reason,
    "sleep": Script.sleep,
    "pause": Script.pause,
    "block": Script.block,
    "effect": Script.effect,
    "together": Script.together,
    "wait": Script.wait,
    "die": Script.die,
    "fail": Script.fail,
    "raise": Script.throw,
    "finish": Script.finish,
}


@agents.agent("script", attempts=5, backoff=0.1)
async def script(run: Run) -> Any:
    """Does what its input says."""
    playing = Script(run)
    try:
        await playing.play(run.input["steps"])
    except Finished:
        return playing.outcome
    return {"attempt": run.attempt, "answers": playing.answers}
