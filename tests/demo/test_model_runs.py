"""The support agent with a model, on a real worker and a real endpoint: the model's turns and tool calls become one log."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reattach.demo.agents import agents
from reattach.demo.tickets import Tickets
from reattach.store import Store

from ..support.waiting import wait_until
from ..worker.seen import error, events, outcome, payloads, says, submit, texts, types
from .provider import Provider, Reply, at_random, sse
from .said import ARGUMENTS, SAID, TEXT, chat

Start = Callable[..., Any]
EVERY = pytest.mark.parametrize("api", sorted(SAID))
NOTE = ['{"ticket": 981, ', '"body": "Checked — void."}']
LAST = ["You", " paid", " once."]

IMPOSSIBLE: list[tuple[tuple[str, str, list[str]], str]] = [
    (("c", "launch_rocket", ["{}"]), "there is no tool of this name; there are: tickets_read"),
    (("c", "tickets_read", ["{", '"ticket"']), "the arguments are not a JSON object"),
    (("c", "tickets_read", ["[1]"]), "the arguments are not a JSON object"),
    (("c", "tickets_read", ['{"ticket": "many"}']), "Expected `int`"),
    (("c", "tickets_read", ['{"ticket": 981, "idempotency_key": "mine"}']), "unknown field `idempotency_key`"),
    (("c", "tickets_read", ['{"ticket": 5}']), "there is no ticket 5"),
    (("c", "Ω böse!", ["{}"]), "there is no tool of this name"),
    (("", "", []), "there is no tool of this name"),
]
"""Calls that nobody can carry out, and what is said of them."""


def script(api: str) -> list[Reply]:
    """Three turns: read the ticket, note something, answer."""
    said = SAID[api]
    turns = [
        said(TEXT, ("call_a", "tickets_read", ARGUMENTS), thoughts=("Let me", " see.")),
        said([], ("call_a", "tickets_add_note", NOTE)),
        said(LAST),
    ]
    return [Reply(sse(turn, noise=True), split=at_random(number)) for number, turn in enumerate(turns)]


@EVERY
async def test_a_model_answers_a_ticket(api: str, store: Store, workers: Start, tickets: Tickets, use_model: Start) -> None:
    """Text, reasoning and two tool calls of the same id in different turns become messages, reasoning and two receipts."""
    async with Provider(*script(api)) as provider:
        use_model(provider, api)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        result = await outcome(store, run_id)
    assert result == {"ticket": 981, "note": "receipt_558", "version": "ticket_981:v19", "answer": "".join(LAST)}
    assert tickets.read(981).notes[-1].body == "Checked — void."
    snapshot = await store.runs.snapshot(run_id)
    assert texts(snapshot) == [("completed", "".join(TEXT)), ("completed", "".join(LAST))]
    assert [(tool.tool_call_id, tool.tool, tool.status) for tool in snapshot.tools if tool.requested_at] == [
        ("turn_1/call_a", "tickets.read", "completed"),
        ("turn_2/call_a", "tickets.add_note", "completed"),
    ]
    assert [delta["text"] for delta in await payloads(store, run_id, "message.delta")] == [*TEXT, *LAST]
    assert [delta["text"] for delta in await payloads(store, run_id, "reasoning.delta")] == ["Let me", " see."]
    assert [asked["arguments"] for asked in await payloads(store, run_id, "tool.requested")] == [{"ticket": 981}, json.loads("".join(NOTE))]
    log = await events(store, run_id)
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))


@EVERY
async def test_the_model_is_told_what_its_calls_brought(api: str, store: Store, workers: Start, use_model: Start) -> None:
    """Every further request repeats what the model said and adds the results under the model's own ids."""
    async with Provider(*script(api)) as provider:
        use_model(provider, api, REATTACH_DEMO_MODEL="tiny")
        await workers(agents)
        await outcome(store, await submit(store, "support", {"ticket": 981, "question": "Was it twice?"}))
    bodies = [request.body for request in provider.requests]
    assert len(bodies) == 3 and all(body["model"] == "tiny" for body in bodies)
    said = [json.dumps(body, ensure_ascii=False) for body in bodies]
    assert "Was it twice?" in said[0] and "call_a" not in said[0]
    assert json.dumps("".join(TEXT), ensure_ascii=False)[1:-1] in said[1]
    assert "Tomás Herrera" in said[1] and "receipt_558" not in said[1]
    assert "receipt_558" in said[2] and "ticket_981:v19" in said[2]


async def test_a_turn_is_never_asked_for_twice(store: Store, workers: Start, tickets: Tickets, use_model: Start) -> None:
    """The worker dies while the model writes its last turn: the next one takes the earlier turns from the log, and there is one note."""
    replies = script("chat")
    replies.insert(2, Reply(sse(chat(["You"])[:2]), ending="stall"))
    async with Provider(*replies) as provider:
        use_model(provider)
        first = await workers(agents, name="first", lease=1.0)
        run_id = await submit(store, "support", {"ticket": 981})
        await wait_until(lambda: len(provider.requests) == 3, "the third turn to be under way")
        await says(store, run_id, "message.started", 2)
        await first.crash()
        await workers(agents, name="second", lease=1.0)
        result = await outcome(store, run_id)
    assert result["note"] == "receipt_558" and tickets.read(981).version == "v19"
    assert len(provider.requests) == 4
    assert provider.requests[3].body == provider.requests[2].body
    snapshot = await store.runs.snapshot(run_id)
    assert texts(snapshot) == [("completed", "".join(TEXT)), ("interrupted", "You"), ("completed", "".join(LAST))]
    assert (await types(store, run_id)).count("model.turn") == 3


@pytest.mark.parametrize(("call", "says"), IMPOSSIBLE)
async def test_a_call_that_cannot_be_carried_out(call: Any, says: str, store: Store, workers: Start, use_model: Start) -> None:
    """It fails in the log and is told to the model, which goes on; nothing was done."""
    async with Provider(Reply(sse(chat([], call))), Reply(sse(chat(LAST)))) as provider:
        use_model(provider)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        assert (await outcome(store, run_id))["note"] is None
    failed = await payloads(store, run_id, "tool.failed")
    assert len(failed) == 1 and says in failed[0]["error"]["message"]
    assert says in provider.requests[1].body["messages"][-1]["content"]


async def test_a_note_taken_back_by_the_model(store: Store, workers: Start, tickets: Tickets, use_model: Start) -> None:
    """Adding a note is reversible: two receipts, and the version after the second."""
    turns = [
        chat([], ("a", "tickets_add_note", NOTE)),
        chat([], ("b", "tickets_remove_note", ['{"receipt_id": "receipt_558"}'])),
        chat(LAST),
    ]
    async with Provider(*(Reply(sse(turn)) for turn in turns)) as provider:
        use_model(provider)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        result = await outcome(store, run_id)
    assert (result["note"], result["version"]) == ("receipt_558", "ticket_981:v20")
    assert len(tickets.read(981).notes) == 3
    assert (await store.runs.snapshot(run_id)).resources == {"ticket_981": "v20"}


@EVERY
async def test_a_cut_in_the_middle_of_the_answer(api: str, store: Store, workers: Start, use_model: Start) -> None:
    """What was shown stays, marked as interrupted, and the run fails, typed."""
    async with Provider(Reply(sse(SAID[api](["Half", " an answer"])[:-3]), ending="cut")) as provider:
        use_model(provider, api)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        failed = await error(store, run_id)
    assert failed == {"code": "model_error", "message": "the model's stream ended in the middle of its turn"}
    assert texts(await store.runs.snapshot(run_id))[0][0] == "interrupted"


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(b"secret", status=401), "refused the credentials (HTTP 401)"),
        (Reply(b"secret", status=429, headers={"Retry-After": "900"}), "takes no more requests"),
        (Reply(b"secret", content_type="text/html"), "did not answer with an event stream"),
        (Reply(sse(chat(["Half"], finish="length"))), "stopped before its answer was complete (length)"),
        (Reply(sse(chat([]))), "without an answer"),
        (Reply(sse(chat([], ("c", "tickets_read", ARGUMENTS)))), "within 8 turns"),
        (Reply(sse(["{secret"])), "not what its protocol says"),
    ],
)
async def test_a_model_that_fails(reply: Reply, says: str, store: Store, workers: Start, use_model: Start, logs: Any) -> None:
    """Whatever goes wrong, the run fails as ``model_error`` in words that show neither key nor body, in the event and in the log."""
    async with Provider(reply) as provider:
        use_model(provider)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        failed = await error(store, run_id)
    assert failed["code"] == "model_error" and says in failed["message"]
    everything = repr(failed) + repr(logs.entries) + repr(await events(store, run_id))
    assert "sk-very" not in everything and "{secret" not in everything


async def test_a_stop_reaches_a_model_that_is_silent(store: Store, workers: Start, use_model: Start) -> None:
    """Cancelling does not wait for the model: the request is dropped, and the run ends at once."""
    async with Provider(Reply(sse(chat(["Wait"])[:2]), ending="stall")) as provider:
        use_model(provider)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        await says(store, run_id, "message.delta")
        await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")

        async def cancelled() -> bool:
            return (await store.runs.load(run_id)).state == "cancelled"

        await wait_until(cancelled, "the run to be cancelled", timeout=2)


async def test_a_call_under_a_strange_id(store: Store, workers: Start, use_model: Start) -> None:
    """Ids that the log could not have are changed for it, and the model still gets its own back."""
    strange = "☂ " * 200
    async with Provider(Reply(sse(chat([], (strange, "tickets_read", ARGUMENTS)))), Reply(sse(chat(LAST)))) as provider:
        use_model(provider)
        await workers(agents)
        run_id = await submit(store, "support", {"ticket": 981})
        await outcome(store, run_id)
    asked = (await payloads(store, run_id, "tool.requested"))[0]["tool_call_id"]
    assert asked.startswith("turn_1/") and asked.isascii() and len(asked) <= 128
    assert provider.requests[1].body["messages"][-1]["tool_call_id"] == strange


async def test_settings_decide_who_answers(store: Store, workers: Start, use_model: Start, tickets: Tickets) -> None:
    """``REATTACH_DEMO_API=data`` answers from the data although a model is set, and connects to nothing."""
    async with Provider(Reply(status=500)) as provider:
        use_model(provider, "data")
        await workers(agents)
        result = await outcome(store, await submit(store, "support", {"ticket": 981}))
    assert result["answer"] == tickets.answer(981).answer and not provider.requests
