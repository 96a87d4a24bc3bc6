"""Messages: what a handler writes is what the log and the snapshot say."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reattach import Agents, InvalidRequest, Run
from reattach.store import Store

from ..support.agents import agents as scripted
from .seen import ends, error, events, outcome, payloads, submit, submit_script, texts, types

agents = Agents()


@agents.agent("roles")
async def roles(run: Run) -> Any:
    """Two messages at the same time, one of them by the user."""
    async with run.message(role="user") as question, run.message() as answer:
        await question.write("Why?")
        await answer.write("Because.")
        return [question.message_id, answer.message_id]


@agents.agent("interrupted")
async def interrupted(run: Run) -> None:
    """A model that breaks off, and a second try."""
    try:
        async with run.message() as message:
            await message.write("It is ")
            raise ConnectionError
    except ConnectionError:
        async with run.message() as message:
            await message.write("It is done.")


@agents.agent("long")
async def long(run: Run) -> None:
    """A message of many pieces."""
    async with run.message() as message:
        for _ in range(run.input["pieces"]):
            await message.write(run.input["piece"])


@agents.agent("odd")
async def odd(run: Run) -> Any:
    """Everything that is no text."""
    refused: list[str] = []
    async with run.message() as message:
        await message.write("")
        for wrong in (b"bytes", None, 3, "lone \ud83d"):
            try:
                await message.write(wrong)  # pyright: ignore[reportArgumentType]
            except InvalidRequest as e:
                refused.append(e.code)
    try:
        await message.write("late")
    except InvalidRequest as e:
        refused.append(e.detail)
    return refused


async def test_a_message_is_started_streamed_and_completed(store: Store, workers: Callable[..., Any]) -> None:
    """Deltas join to the text that the completed event carries whole; all under one id."""
    await workers(scripted)
    run_id = await submit_script(store, ["text", "Hello big world"], ["finish", None])
    await ends(store, run_id)
    log = [(e.type, json.loads(e.payload)) for e in (await events(store, run_id))[2:-1]]
    ids = {payload.pop("message_id") for _, payload in log}
    assert len(ids) == 1
    assert log == [
        ("message.started", {"role": "assistant"}),
        ("message.delta", {"text": "Hello"}),
        ("message.delta", {"text": " big"}),
        ("message.delta", {"text": " world"}),
        ("message.completed", {"role": "assistant", "content": [{"type": "text", "text": "Hello big world"}]}),
    ]


async def test_roles_and_messages_side_by_side(store: Store, workers: Callable[..., Any]) -> None:
    """Two open messages keep their own ids and texts."""
    await workers(agents)
    run_id = await submit(store, "roles")
    ids = await outcome(store, run_id)
    snapshot = await store.runs.snapshot(run_id)
    assert [(m.message_id, m.role) for m in snapshot.messages] == list(zip(ids, ["user", "assistant"], strict=True))
    assert texts(snapshot) == [("completed", "Why?"), ("completed", "Because.")]


async def test_a_message_left_by_an_exception_is_interrupted(store: Store, workers: Callable[..., Any]) -> None:
    """The text so far stays, marked; the next message has another id."""
    await workers(agents)
    run_id = await submit(store, "interrupted")
    snapshot = await ends(store, run_id)
    assert texts(snapshot) == [("interrupted", "It is "), ("completed", "It is done.")]
    assert len({m.message_id for m in snapshot.messages}) == 2


async def test_reasoning_is_delivered_and_not_part_of_the_text(store: Store, workers: Callable[..., Any]) -> None:
    """A message of nothing but reasoning is completed empty."""
    await workers(scripted)
    run_id = await submit_script(store, ["reason", "hm"])
    assert texts(await ends(store, run_id)) == [("completed", "")]
    (delta,) = await payloads(store, run_id, "reasoning.delta")
    assert delta["text"] == "hm" and delta["message_id"]


async def test_what_is_no_text_is_refused(store: Store, workers: Callable[..., Any]) -> None:
    """Typed, at the place where it is written, without harm to the message; an empty string is nothing."""
    await workers(agents)
    run_id = await submit(store, "odd")
    assert await outcome(store, run_id) == ["invalid_request"] * 4 + ["the message has ended"]
    assert await types(store, run_id) == ["run.created", "run.started", "message.started", "message.completed", "run.succeeded"]


async def test_a_long_message_is_checkpointed(store: Store, workers: Callable[..., Any]) -> None:
    """So that older deltas may go while it is still being written."""
    await workers(agents)
    run_id = await submit(store, "long", {"pieces": 600, "piece": "word "})
    snapshot = await ends(store, run_id)
    assert texts(snapshot) == [("completed", "word " * 600)]
    assert [len(p["text"]) for p in await payloads(store, run_id, "message.checkpoint")] == [256 * 5, 512 * 5]


@pytest.mark.parametrize("piece", ["x" * 1000, "\x01é😀" * 300, "x" * 9000])
async def test_a_huge_message_becomes_several(store: Store, workers: Callable[..., Any], piece: str) -> None:
    """No payload outgrows its limit, no character is lost, whatever JSON needs to write it."""
    worker = await workers(agents, max_payload=4096)
    run_id = await submit(store, "long", {"pieces": 10, "piece": piece})
    snapshot = await ends(store, run_id)
    parts = texts(snapshot)
    assert len(parts) > 1 and {status for status, _ in parts} == {"completed"}
    assert "".join(text for _, text in parts) == piece * 10
    assert max(len(e.payload) for e in await events(store, run_id) if e.type.startswith("message.")) <= worker.store.settings.max_payload


@agents.agent("yielding")
async def yielding(run: Run) -> Any:
    """Ends its own message by an event of the message class."""
    yield "first"
    yield ("message.completed", {"message_id": "mine", "role": "tool", "content": []})
    yield "second"


@agents.agent("misyielding")
async def misyielding(run: Run) -> Any:
    """Yields what is neither text nor event."""
    yield "text"
    yield 42


async def test_a_generator_can_end_its_message(store: Store, workers: Callable[..., Any]) -> None:
    """An event of the message class ends the implicit message; the next string opens another."""
    await workers(agents)
    snapshot = await ends(store, await submit(store, "yielding"))
    assert texts(snapshot) == [("completed", "first"), ("completed", ""), ("completed", "second")]


async def test_a_generator_that_yields_something_else_fails_typed(store: Store, workers: Callable[..., Any]) -> None:
    """And its message is not left open."""
    await workers(agents)
    run_id = await submit(store, "misyielding")
    assert (await error(store, run_id))["code"] == "invalid_request"
    assert texts(await store.runs.snapshot(run_id)) == [("interrupted", "text")]


@agents.agent("unopened")
async def unopened(run: Run) -> Any:
    """Writes to a message that is not open, and opens one twice."""
    message = run.message()
    refused: list[str] = []
    try:
        await message.write("x")
    except InvalidRequest as e:
        refused.append(e.detail)
    async with message:
        await message.write("y")
    try:
        async with message:
            pass
    except InvalidRequest as e:
        refused.append(e.detail)
    return refused


async def test_a_message_is_open_once(store: Store, workers: Callable[..., Any]) -> None:
    """A forgotten ``async with`` is an error, not a message that never ends."""
    await workers(agents)
    run_id = await submit(store, "unopened")
    assert await outcome(store, run_id) == ["the message is not open: use async with run.message()", "a message can be opened once"]
    assert texts(await store.runs.snapshot(run_id)) == [("completed", "y")]


@agents.agent("nameless")
async def nameless(run: Run) -> None:
    """A role that is none."""
    run.message(role="")


async def test_a_role_has_a_name(store: Store, workers: Callable[..., Any]) -> None:
    """Empty and endless roles are refused."""
    await workers(agents)
    assert (await error(store, await submit(store, "nameless")))["code"] == "invalid_request"
