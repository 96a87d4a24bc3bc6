"""Real providers' streams, replayed by an endpoint of our own: every one of them becomes a correct log."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from reattach import Agents, Run
from reattach.demo.converse import converse
from reattach.demo.desk import Offered
from reattach.demo.model.client import Model
from reattach.demo.model.endpoint import DIALECTS, from_environment
from reattach.store import Store

from ..support.processes import ROOT
from ..worker.seen import events, outcome, payloads, reaches, submit, texts
from .provider import Provider, Reply, at_once, at_random, by_byte, sse
from .recorded import Recording
from .said import SAID

FOLDER: Final = ROOT.parent / "shared" / "data" / "recordings"
NAMES: Final = [
    "anthropic-long-text",
    "anthropic-tool-calling",
    "anthropic-web-search",
    "chat-deepseek-reasoning",
    "chat-deepseek-tool-call",
    "chat-xai-tool-call",
    "openai-chat-text",
    "openai-responses-approval-1",
    "openai-responses-approval-2",
    "openai-responses-code-interpreter",
    "openai-responses-shell-tool",
    "openai-responses-web-search",
]
ASKS: Final = {"openai-responses-approval-1"}
"""Those that end with a request for permission."""

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the recordings are not at {FOLDER}")

Start = Callable[..., Any]


class Weather(msgspec.Struct):
    """Arguments of a recorded tool."""

    location: str


class Roll(msgspec.Struct):
    """Arguments of a recorded tool."""

    player: str


def _weather(location: str) -> dict[str, Any]:
    return {"in": location, "degrees": 21}


def _roll(player: str) -> dict[str, Any]:
    return {"rolled": len(player)}


TOOLS = (
    Offered(name="weather", description="", arguments=Weather, fn=_weather, read_only=True),
    Offered(name="rollDie", description="", arguments=Roll, fn=_roll, read_only=True),
)

agents = Agents()


@agents.agent("recorded")
async def recorded(run: Run) -> dict[str, Any]:
    """Talk to the model with the tools that the recordings call."""
    endpoint = from_environment()
    assert endpoint is not None
    async with Model(endpoint) as model:
        talk = await converse(run, model, instructions="", question="Go on.", tools=TOOLS, most_turns=20)
    return {"answer": talk.answer, "called": len(talk.receipts)}


def load(name: str) -> Recording:
    """One recording."""
    return Recording(name, (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines())


def closing(api: str) -> Reply:
    """The turn after the recorded one, where that ended with a call."""
    return Reply(sse(SAID[api](["That", " is all."])))


async def check_log(store: Store, run_id: str, *recordings: Recording, last: tuple[str, ...] = ()) -> None:
    """What a log must hold of what was recorded, computed from the recordings alone."""
    log = await events(store, run_id)
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))
    assert all(isinstance(json.loads(event.payload), dict) for event in log)
    spoken = [piece for recording in recordings for piece in recording.text] + list(last)
    assert [delta["text"] for delta in await payloads(store, run_id, "message.delta")] == spoken
    snapshot = await store.runs.snapshot(run_id)
    assert "".join(text for _, text in texts(snapshot)) == "".join(spoken)
    assert {status for status, _ in texts(snapshot)} <= {"completed"}
    thought = [piece for recording in recordings for piece in recording.reasoning]
    assert [delta["text"] for delta in await payloads(store, run_id, "reasoning.delta")] == thought
    called = [call for recording in recordings for call in recording.calls]
    asked = await payloads(store, run_id, "tool.requested")
    assert [(tool["tool"], tool["arguments"]) for tool in asked] == [(name, arguments) for _, name, arguments in called]
    assert [tool["tool_call_id"].partition("/")[2] for tool in asked] == [call_id for call_id, _, _ in called]
    assert [tool.status for tool in snapshot.tools if tool.requested_at] == ["completed"] * len(called)
    for turn in await payloads(store, run_id, "model.turn"):
        assert all(isinstance(json.loads(item), dict) for item in turn["echo"])


async def check_provided(store: Store, run_id: str, recording: Recording) -> None:
    """What the provider did by itself is told as progress, with its arguments as JSON."""
    progress = [p for p in await payloads(store, run_id, "tool.progress") if p.get("by") == "provider"]
    assert {p["tool_call_id"] for p in progress if p["status"] == "completed"} == recording.provided
    whole = [p["arguments"] for p in progress if "arguments" in p]
    assert all(isinstance(json.loads(arguments), dict) for arguments in whole)
    pieces = "".join(p["text"] for p in progress if "text" in p)
    assert pieces == "".join(recording.provided_pieces)


@pytest.mark.parametrize("name", NAMES)
async def test_a_recording_becomes_a_correct_log(name: str, store: Store, workers: Start, use_model: Start) -> None:
    """Text, reasoning, tool calls and what the provider did are in the log as they are in the recording; portions do not matter."""
    recording = load(name)
    body = sse([*recording.lines, *(["[DONE]"] if recording.api == "chat" else [])], named=recording.api != "chat", noise=True)
    split = by_byte if len(body) < 20_000 else at_random(len(body), 700)
    async with Provider(Reply(body, split=split), closing(recording.api)) as provider:
        use_model(provider, recording.api)
        await workers(agents)
        run_id = await submit(store, "recorded")
        if name in ASKS:
            await reaches(store, run_id, "waiting")
            assert len(provider.requests) == 1
            await check_log(store, run_id, recording)
            await check_provided(store, run_id, recording)
            await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")
            return
        result = await outcome(store, run_id)
    last = ("That", " is all.") if recording.calls else ()
    assert result["called"] == len(recording.calls)
    await check_log(store, run_id, recording, last=last)
    await check_provided(store, run_id, recording)


async def test_one_request_for_each_recorded_turn(store: Store, workers: Start, use_model: Start) -> None:
    """Fifteen turns, fourteen calls made by code on the provider's side: each result goes back under its own id."""
    recording = load("anthropic-tool-calling")
    turns = recording.turns()
    async with Provider(*(Reply(sse(turn, named=True), split=at_random(7)) for turn in turns)) as provider:
        use_model(provider, "messages")
        await workers(agents)
        run_id = await submit(store, "recorded")
        result = await outcome(store, run_id)
    assert (result["called"], len(provider.requests)) == (14, 15)
    await check_log(store, run_id, recording)
    results = [message["content"][0] for message in provider.requests[-1].body["messages"][2::2]]
    assert [(block["type"], block["tool_use_id"]) for block in results] == [("tool_result", call_id) for call_id, _, _ in recording.calls]


async def test_a_permission_is_asked_for_and_given(store: Store, workers: Start, use_model: Start) -> None:
    """The turn that stops for an approval parks the run; the answer goes to the provider and the recorded next turn follows."""
    first, second = load("openai-responses-approval-1"), load("openai-responses-approval-2")
    async with Provider(*(Reply(sse(part.lines, named=True), split=at_once) for part in (first, second))) as provider:
        use_model(provider, "responses")
        await workers(agents)
        run_id = await submit(store, "recorded")
        await reaches(store, run_id, "waiting")
        waiting = (await store.runs.snapshot(run_id)).waiting
        assert waiting is not None and "create_short_url" in (waiting.prompt or "")
        await store.runs.answer(run_id, wait_id=waiting.wait_id, value=b"true", by="test", key=None, fingerprint="")
        result = await outcome(store, run_id)
    assert result["answer"] == "".join(second.text)
    await check_log(store, run_id, first, second)
    given = [item for item in provider.requests[1].body["input"] if item.get("type") == "mcp_approval_response"]
    assert [(item["approve"], item["approval_request_id"][:5]) for item in given] == [(True, "mcpr_")]
    assert len(provider.requests) == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_cut_anywhere(name: str) -> None:
    """Cut after any chunk but the last ones, a recorded turn is never taken for a complete one."""
    recording = load(name)
    lines = recording.turns()[-1]
    decoder, ends = DIALECTS[recording.api].decoder, 3 if recording.api == "chat" else 1
    for end in range(0, len(lines) - ends, 7):
        taking = decoder()
        for line in lines[:end]:
            taking.feed(line)
        assert [type(piece).__name__ for piece in taking.end()] == ["ModelFailed"], end


def test_the_recordings_are_the_ones_known() -> None:
    """All of them are replayed, and they have the long lines they are here for."""
    assert sorted(path.stem for path in Path(FOLDER).glob("*.jsonl")) == sorted(NAMES)
    assert max(len(line) for name in NAMES for line in load(name).lines) > 40_000
