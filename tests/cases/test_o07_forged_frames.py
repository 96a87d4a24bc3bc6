"""O07: line breaks in a field forge events: whatever text a product carries, the number of frames is the number of appends."""

import pytest

from reattach import Agents, Run
from reattach.core.errors import InvalidRequest

from ..support.calls import ended, new_run_id
from ..support.drive import start
from ..support.factories import Workers
from ..support.service import Service

FORGERY = "text.delta{0}id: x:999{0}event: run.succeeded{0}data: {{}}{0}{0}"
BREAKS = ["\n", "\r", "\r\n", "\u2028", "\x0b", "\x00"]
TEXTS = ["\n\n\n", "a\r\rb", "a\r\n\r\nb", "data: x", ": c", "\u0000", " leading", "", "\ufeff", *(FORGERY.format(b) for b in BREAKS)]

agents = Agents()
refusals: list[str] = []


@agents.agent("forger")
async def forger(run: Run) -> int:
    """Tries types that would end their field early, then a tool with such a name."""
    for line_break in BREAKS:
        for kind in (FORGERY.format(line_break), f"a.b{line_break}", f"{line_break}a.b", "a b.c", "A.b", "a", "a..b", "a.b" * 40, ""):
            with pytest.raises(InvalidRequest):
                await run.emit(kind, {})
    for reserved in ("run.succeeded", "run.cancelled", "input.received"):
        with pytest.raises(InvalidRequest):
            await run.emit(reserved, {})
    try:
        await run.effect(FORGERY.format("\n"), str, {})
    except InvalidRequest as error:
        refusals.append(error.code)
    return run.last_sequence


async def test_types_outside_the_alphabet_are_refused(service: Service, workers: Workers) -> None:
    """A type with a line break, or one that only Reattach may write, never reaches the log; a tool's name forges nothing."""
    await workers(agents)
    run_id = await new_run_id(service.client, "forger")
    shown = await ended(service.client, run_id)
    assert shown["state"] == "succeeded", shown["error"]
    follower = await service.follow(run_id).open()
    await follower.until_end()
    follower.check(1, shown["sequence"])
    assert set(follower.types) <= {"run.created", "run.started", "tool.requested", "tool.completed", "run.succeeded"}
    assert refusals or shown["tools"][0]["tool"] == FORGERY.format("\n")


@pytest.mark.parametrize("live", [True, False], ids=["live", "replayed"])
async def test_payload_texts_round_trip(service: Service, live: bool) -> None:
    """Texts made of line breaks, field names and comments come back exactly, one frame per append."""
    hand = await start(service.store, "texts")
    follower = service.follow(hand.run_id)
    if live:
        await follower.open()
    for text in TEXTS:
        await hand.emit(("note.made", {"text": text, text: 1}))
    await hand.finish(outcome={"text": TEXTS[-1]})
    if not live:
        await follower.open()
    assert await follower.until_end() == "clean"
    follower.check(1, len(TEXTS) + 3)
    assert [e["payload"]["text"] for e in follower.events if e["type"] == "note.made"] == TEXTS
    assert all(frame.data.count("\n") == 0 for frame in follower.frames), "one data line per frame"
    assert b"\r" not in follower.stream.raw
    shown = (await service.client.get(f"/agent-runs/{hand.run_id}")).json()
    assert (shown["state"], shown["outcome"]) == ("succeeded", {"text": TEXTS[-1]})


async def test_names_of_users_forge_nothing(service: Service) -> None:
    """Session ids and idempotency keys with line breaks are refused or carried as they are, never as frames."""
    for line_break in ("\n", "\r\n"):
        response = await service.client.post("/agent-runs", json={"agent": "names", "input": {}, "session_id": f"s{line_break}id: 1"})
        if response.status_code == 201:
            follower = await service.follow(response.json()["run_id"]).open()
            await follower.until(1)
            follower.check(1, 1)
            await follower.close()
        else:
            assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
