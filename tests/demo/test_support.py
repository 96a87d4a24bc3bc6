"""The support agent without a model, on a real worker: what it says is streamed, what it does has a receipt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach.demo.agents import agents
from reattach.demo.tickets import Tickets
from reattach.store import Store

from ..support.waiting import wait_until
from ..worker.seen import ends, error, events, outcome, payloads, says, submit, texts, types

Start = Callable[..., Any]


async def test_a_ticket_is_answered(store: Store, workers: Start, tickets: Tickets) -> None:
    """Opening, reading, thinking, a note with a receipt and a new version, and the answer: all in one log."""
    await workers(agents)
    run_id = await submit(store, "support", {"ticket": 981})
    result = await outcome(store, run_id)
    told = tickets.answer(981)
    assert result == {"ticket": 981, "note": "receipt_558", "version": "ticket_981:v19", "answer": told.answer}
    snapshot = await store.runs.snapshot(run_id)
    assert texts(snapshot) == [("completed", told.opening), ("completed", told.answer)]
    assert snapshot.resources == {"ticket_981": "v19"}
    assert [(tool.tool, tool.status, tool.result_version) for tool in snapshot.tools] == [
        ("tickets.read", "completed", None),
        ("tickets.add_note", "completed", "ticket_981:v19"),
    ]
    assert tickets.read(981).notes[-1].body == told.note
    log = await events(store, run_id)
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))
    deltas = await payloads(store, run_id, "message.delta")
    assert "".join(delta["text"] for delta in deltas) == told.opening + told.answer
    assert len(deltas) > 100
    assert "".join(delta["text"] for delta in await payloads(store, run_id, "reasoning.delta")) == told.thinking


async def test_every_ticket_of_the_data(store: Store, workers: Start, tickets: Tickets) -> None:
    """All twelve are answered at the same time, each with a note of its own."""
    await workers(agents)
    before = {number: tickets.read(number) for number in tickets.numbers()}
    runs = {number: await submit(store, "support", {"ticket": number}) for number in before}
    for number, run_id in runs.items():
        result = await outcome(store, run_id)
        assert result["version"] == f"ticket_{number}:v{int(before[number].version[1:]) + 1}"
        assert len(tickets.read(number).notes) == len(before[number].notes) + 1


async def test_a_question_is_not_pretended_to_be_understood(store: Store, workers: Start, tickets: Tickets) -> None:
    """Without a model the agent says that it can only answer the ticket."""
    await workers(agents)
    result = await outcome(store, await submit(store, "support", {"ticket": 972, "question": "Is it raining?"}))
    assert result["answer"].startswith("You asked: “Is it raining?” No model is set")
    assert result["answer"].endswith(tickets.answer(972).answer)


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({}, "invalid_input", '{"ticket": 981}'),
        ([981], "invalid_input", '{"ticket": 981}'),
        (981, "invalid_input", '{"ticket": 981}'),
        ({"ticket": "981"}, "invalid_input", "$.ticket"),
        ({"ticket": True}, "invalid_input", "$.ticket"),
        ({"ticket": 0}, "invalid_input", "$.ticket"),
        ({"ticket": 10**30}, "invalid_input", '{"ticket": 981}'),
        ({"ticket": 981, "tickets": 1}, "invalid_input", "ticket, question, speed"),
        ({"ticket": 981, "question": 7}, "invalid_input", "$.question"),
        ({"ticket": 981, "speed": -1}, "invalid_input", "$.speed"),
        ({"ticket": 5}, "ticket_not_found", "970, 971"),
    ],
)
async def test_wrong_input_teaches(store: Store, workers: Start, given: Any, code: str, says: str) -> None:
    """A run with an input of no use fails, typed, and tells what would be of use; nothing was said or done."""
    await workers(agents)
    run_id = await submit(store, "support", given)
    failed = await error(store, run_id)
    assert failed["code"] == code and says in failed["message"]
    assert await types(store, run_id) == ["run.created", "run.started", "run.failed"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REATTACH_DEMO_SPEED", "fast"),
        ("REATTACH_DEMO_API", "telepathy"),
    ],
)
async def test_a_wrong_setting_teaches(store: Store, workers: Start, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A variable that cannot be used is named, and so is what can."""
    monkeypatch.setenv(name, value)
    await workers(agents)
    failed = await error(store, await submit(store, "support", {"ticket": 981}))
    assert failed["code"] == "invalid_setting" and name in failed["message"]


async def test_text_flows_at_a_pace(store: Store, workers: Start) -> None:
    """With a speed set, the text is there piece by piece while the run goes on, and a stop in the middle ends it there."""
    await workers(agents)
    run_id = await submit(store, "support", {"ticket": 981, "speed": 20})
    await says(store, run_id, "message.delta", 5)
    assert (await store.runs.load(run_id)).state == "running"
    await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")
    snapshot = await ends(store, run_id)
    assert (snapshot.state, snapshot.cancel.disposition) == ("cancelled", "cancelled_before_effect")
    assert texts(snapshot)[0][0] == "interrupted"


async def test_a_lost_worker_costs_nothing_twice(store: Store, workers: Start, tickets: Tickets) -> None:
    """A worker that dies while it writes the answer is followed by one that goes on: one note, no opening told twice."""
    first = await workers(agents, name="first", lease=1.0)
    run_id = await submit(store, "support", {"ticket": 970, "speed": 400})
    await says(store, run_id, "tool.completed", 2)
    await wait_until(lambda: _answering(store, run_id), "the answer to be under way")
    await first.crash()
    await workers(agents, name="second", lease=1.0)
    result = await outcome(store, run_id)
    told = tickets.answer(970)
    assert result == {"ticket": 970, "note": "receipt_558", "version": "ticket_970:v4", "answer": told.answer}
    assert [note.body for note in tickets.read(970).notes].count(told.note) == 1
    snapshot = await store.runs.snapshot(run_id)
    assert [status for status, text in texts(snapshot) if text == told.opening] == ["completed"]
    assert texts(snapshot)[-1] == ("completed", told.answer)
    assert [kind for kind in await types(store, run_id) if kind == "tool.requested"] == ["tool.requested"] * 2


async def _answering(store: Store, run_id: str) -> bool:
    log = await types(store, run_id)
    return log.count("tool.completed") == 2 and log[::-1].index("tool.completed") > 5


async def test_a_note_whose_receipt_was_lost_is_found(
    store: Store, workers: Start, launch: Any, tickets: Tickets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies right after the note was written leaves one that its successor finds by its key, without adding anything."""
    dying = launch.worker(agents="tests.demo.dying:agents", REATTACH_DATA=str(tmp_path / "demo"), REATTACH_DEMO_SPEED="0")
    run_id = await submit(store, "support", {"ticket": 970})
    await wait_until(lambda: not dying.alive, "the first worker to die")
    assert tickets.read(970).version == "v4"
    monkeypatch.delattr(Tickets, "add_note")
    await workers(agents, name="second")
    result = await outcome(store, run_id)
    assert (result["note"], result["version"]) == ("receipt_558", "ticket_970:v4")
    assert tickets.read(970).version == "v4"
    assert "tool.unresolved" in await types(store, run_id)
    assert not (await store.runs.snapshot(run_id)).unresolved
