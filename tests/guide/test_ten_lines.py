"""The ten-line agent, as the README has it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from reattach import Agents, Run
from reattach.store import Store

from ..support.waiting import wait_until
from ..worker.seen import ends, reaches, submit, texts, types, value

NOTES: list[int] = []


def add_note(ticket: int) -> dict[str, str]:
    """A tool that changes something."""
    NOTES.append(ticket)
    return {"receipt_id": "receipt_558", "result_version": f"ticket_{ticket}:v19"}


# fmt: off
agents = Agents()

@agents.agent("support")
async def support(run: Run) -> dict:  # noqa: D103  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    async with run.message() as message:             # message.started … message.completed
        await message.write("Looking at the ticket. ")
    note = await run.effect("tickets.add_note", add_note, {"ticket": 981})   # at most once, receipt kept
    ok = await run.wait_for("approval", prompt="Refund 40 EUR?", timeout=3600)
    return {"note": note.receipt_id, "approved": ok}  # pyright: ignore[reportUnknownVariableType]
# fmt: on


async def test_the_ten_lines_do_what_they_say(store: Store, workers: Callable[..., Any]) -> None:
    """It streams, adds the note once, waits for a person without a worker, and goes on where it was."""
    NOTES.clear()
    first = await workers(agents)
    run_id = await submit(store, "support")
    waiting = await reaches(store, run_id, "waiting")
    await wait_until(lambda: first.worker.active == 0, "the worker to be free")
    await first.close()
    await workers(agents)
    await store.runs.answer(run_id, wait_id=str(waiting.wait_id), value=b"true", by="anna", key=None, fingerprint="")
    snapshot = await ends(store, run_id)
    assert value(snapshot.outcome) == {"note": "receipt_558", "approved": True}
    assert NOTES == [981]
    assert texts(snapshot) == [("completed", "Looking at the ticket. ")]
    assert snapshot.resources == {"ticket_981": "v19"}
    assert await types(store, run_id) == [
        "run.created", "run.started", "message.started", "message.delta", "message.completed", "tool.requested", "tool.completed",
        "run.waiting", "input.received", "run.resumed", "run.succeeded",
    ]  # fmt: skip


@agents.agent("counter")
async def counter(run: Run) -> AsyncIterator[str | tuple[str, dict[str, int]]]:
    """A generator: strings are text, pairs are events."""
    yield "One, "
    yield "two. "
    yield ("count.reached", {"n": 2})
    yield "Three."


async def test_a_generator_is_an_agent_too(store: Store, workers: Callable[..., Any]) -> None:
    """Its strings become one message; an event in between does not end it."""
    await workers(agents)
    run_id = await submit(store, "counter")
    snapshot = await ends(store, run_id)
    assert texts(snapshot) == [("completed", "One, two. Three.")]
    assert (await types(store, run_id))[2:] == [
        "message.started", "message.delta", "message.delta", "count.reached", "message.delta", "message.completed", "run.succeeded",
    ]  # fmt: skip
