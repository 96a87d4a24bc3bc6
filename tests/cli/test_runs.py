"""``reattach runs``: list, show, cancel and resolve, for people and for programs."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach.core.event import Draft
from reattach.core.receipt import Effect, EffectCall
from reattach.core.settings import Settings
from reattach.core.verdict import REASON, question_id
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count
from ..support.calls import ended as ends
from ..support.calls import new_script, reaches
from ..support.drive import Hand, create, start
from ..support.launch import environment as settings_env
from ..support.service import Service as ApiService
from ..support.waiting import wait_until
from .shell import in_terminal, plain, reattach

Run = Callable[..., Any]


@pytest.fixture
def run(settings: Settings) -> Run:
    """Run a command of the group in a pipe; its JSON lines."""

    def one(*arguments: str) -> list[dict[str, Any]]:
        ended = reattach("runs", *arguments, env=settings_env(settings))
        assert (ended.returncode, ended.stderr) == (0, "")
        return [json.loads(line) for line in ended.stdout.splitlines()]

    return one


async def finished(store: Store, **facts: Any) -> str:
    """A run with a message that has ended."""
    hand = await start(store, **facts)
    await hand.emit(("message.completed", {"message_id": "m", "role": "assistant", "content": [{"type": "text", "text": "Hi\x1b[2J"}]}))
    await hand.finish(outcome={"ok": True})
    return hand.run_id


async def test_runs_are_listed_newest_first(store: Store, run: Run) -> None:
    """As the API lists them; filters narrow it down."""
    first, second = await finished(store), await create(store, agent="other", session_id="s")
    assert [r["run_id"] for r in run("ls")] == [second, first]
    assert [r["run_id"] for r in run("ls", "--state", "succeeded")] == [first]
    assert [r["run_id"] for r in run("ls", "--agent", "other")] == [second]
    assert [r["run_id"] for r in run("ls", "--session", "s")] == [second]
    assert [r["run_id"] for r in run("ls", "--before", second)] == [first]
    assert [r["run_id"] for r in run("ls", "--limit", "1")] == [second]
    assert run("ls", "--tenant", "nobody") == []


async def test_a_person_gets_a_table(store: Store, settings: Settings) -> None:
    """With states in colour, and how to see the next page."""
    run_id = await finished(store)
    await create(store)
    code, shown = in_terminal("runs", "ls", "--limit", "1", env=settings_env(settings))
    lines = plain(shown).splitlines()
    assert code == 0
    assert lines[0].split() == ["RUN", "STATE", "AGENT", "ATTEMPT", "EVENTS", "CREATED", "SESSION"]
    assert lines[1].split()[1:5] == ["queued", "support", "0", "1"]
    assert lines[3].startswith("older ones: --before run_")
    assert run_id in in_terminal("runs", "ls", env=settings_env(settings))[1]


async def test_a_run_is_shown(store: Store, run: Run, settings: Settings) -> None:
    """A program gets the snapshot, a person its facts and messages, which cannot steer the terminal."""
    run_id = await finished(store)
    (snapshot,) = run("show", run_id)
    assert (snapshot["run_id"], snapshot["state"], snapshot["sequence"]) == (run_id, "succeeded", 4)
    _, shown = in_terminal("runs", "show", run_id, env=settings_env(settings))
    assert 'outcome    {"ok": true}' in plain(shown)
    assert "assistant (completed)\nHi\ufffd[2J" in plain(shown)


async def test_a_queued_run_is_cancelled_at_once(store: Store, run: Run) -> None:
    """And asking again is told that it had ended."""
    run_id = await create(store)
    (answer,) = run("cancel", run_id, "--reason", "not needed")
    assert (answer["state"], answer["disposition"]) == ("cancelled", "cancelled_before_effect")
    assert answer["cancel"]["reason"] == "not needed"
    assert answer["cancel"]["by"].startswith("cli:")
    (again,) = run("cancel", run_id)
    assert again["disposition"] == "already_terminal"


async def test_a_running_run_is_pending_until_its_worker_stops(store: Store, run: Run, settings: Settings) -> None:
    """What is not decided is not claimed."""
    hand = await start(store)
    (answer,) = run("cancel", hand.run_id)
    assert (answer["state"], answer["disposition"]) == ("running", "cancellation_pending")
    _, shown = in_terminal("runs", "cancel", hand.run_id, env=settings_env(settings))
    assert "asked to stop; its worker has not come to a boundary yet" in plain(shown)
    await hand.finish("cancelled")


async def test_waiting_tells_what_really_happened(store: Store, settings: Settings) -> None:
    """The worker finishes first: then the answer is its outcome."""
    hand = await start(store)
    command = asyncio.create_task(asyncio.to_thread(reattach, "runs", "cancel", hand.run_id, "--wait", "20", env=settings_env(settings)))

    async def asked() -> bool:
        return (await store.runs.load(hand.run_id)).cancel_version == 1

    await wait_until(asked, "the request to be recorded")
    await _note(hand)
    await hand.finish("cancelled")
    ended = await command
    answer = json.loads(ended.stdout)
    assert (ended.returncode, answer["state"]) == (0, "cancelled")
    assert answer["disposition"] == (await store.runs.snapshot(hand.run_id)).cancel.disposition


async def _note(hand: Hand) -> None:
    hand.batch += 1
    await hand.store.work.append(hand.lease, hand.batch, [Draft("step.done", b"{}")])


async def asks(store: Store, call_id: str = "call_1") -> str:
    """A run that waits for a person's word on a tool call, as its worker leaves it."""
    hand = await start(store)
    call = EffectCall(call_id=call_id, tool="cards.refund", arguments=b"{}", mutating=True)
    await store.work.intend(hand.lease, call)
    effect = Effect(call_id=call_id, tool=call.tool, status="unresolved", mutating=True)
    done = await store.work.commit(hand.lease, effect, why="timeout")
    await store.work.park(hand.lease, wait_id=question_id(call_id, done.sequence), reason=REASON, prompt="Did it?", timeout_ms=None)
    return hand.run_id


async def answers(store: Store, run_id: str) -> list[Any]:
    """Who answered what."""
    log = await store.events.after(run_id, 0, 100)
    return [json.loads(e.payload)["value"] for e in log if e.type == "input.received"]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["--done"], {"happened": True}),
        (
            ["--done", "--receipt", "re_1", "--version", "t:v2", "--result", '{"n": 1}'],
            {"happened": True, "receipt_id": "re_1", "result_version": "t:v2", "result": {"n": 1}},
        ),
        (["--not-done"], {"happened": False}),
    ],
)
async def test_a_tool_call_is_settled(store: Store, run: Run, arguments: list[str], value: dict[str, Any]) -> None:
    """The verdict is what the run's worker goes on from; it is asked for once."""
    run_id = await asks(store, "pay/1")
    (answer,) = run("resolve", run_id, "pay/1", *arguments)
    assert (answer["run_id"], answer["sequence"]) == (run_id, 6)
    assert await answers(store, run_id) == [value]
    assert (await store.runs.load(run_id)).state == "queued"


@pytest.mark.parametrize("by_http", [False, True], ids=["command", "HTTP"])
async def test_the_run_goes_on_from_the_word(
    service: ApiService, workers: Callable[..., Any], run: Run, tmp_path: Path, by_http: bool
) -> None:
    """From the question of a real worker to the run's end; the tool is not called again."""
    await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await new_script(service.client, ["effect", counter, {"after": 20, "timeout": 0.1}], ["finish", "settled"])
    shown = await reaches(service.client, run_id, "waiting")
    assert [u["tool_call_id"] for u in shown["unresolved"]] == ["call_1"]
    if by_http:
        body = {"wait_id": shown["waiting"]["wait_id"], "value": {"happened": True, "receipt_id": "re_1"}}
        assert (await service.client.post(f"/agent-runs/{run_id}/inputs", json=body)).status_code == 202
    else:
        await asyncio.to_thread(run, "resolve", run_id, "call_1", "--done", "--receipt", "re_1")
    shown = await ends(service.client, run_id)
    assert (shown["outcome"], shown["unresolved"], shown["tools"][0]["receipt_id"]) == ("settled", [], "re_1")
    assert count(counter) == 1


async def test_a_person_is_told_what_their_word_did(store: Store, settings: Settings) -> None:
    """What is asked is shown; what was said is repeated in words."""
    run_id = await asks(store)
    shown = plain(in_terminal("runs", "show", run_id, env=settings_env(settings))[1])
    assert "Did it? (wait_id resolve_call_1.4)" in shown and "unresolved" in shown
    code, shown = in_terminal("runs", "resolve", run_id, "call_1", "--not-done", env=settings_env(settings))
    assert code == 0 and "the tool is called again" in plain(shown)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["call_1"], 2, "--done or --not-done"),
        (["call_1", "--not-done", "--receipt", "r"], 2, "go with --done"),
        (["call_1", "--done", "--version", "v3"], 2, "like order_7:v3"),
        (["call_1", "--done", "--result", "{"], 4, "[invalid_request]"),
        (["call_2", "--done"], 4, "these are: call_1"),
    ],
)
async def test_a_word_that_settles_nothing_is_refused(store: Store, settings: Settings, arguments: list[str], code: int, said: str) -> None:
    """With the reason; the run waits on."""
    run_id = await asks(store)
    ended = reattach("runs", "resolve", run_id, *arguments, env=settings_env(settings))
    assert ended.returncode == code and said in ended.stderr
    assert (await store.runs.load(run_id)).state == "waiting"


async def test_a_second_word_comes_too_late(store: Store, settings: Settings, run: Run) -> None:
    """The first one counts."""
    run_id = await asks(store)
    run("resolve", run_id, "call_1", "--done")
    ended = reattach("runs", "resolve", run_id, "call_1", "--not-done", env=settings_env(settings))
    assert ended.returncode == 4 and "[wait_not_open]" in ended.stderr
    assert await answers(store, run_id) == [{"happened": True}]


@pytest.mark.parametrize("command", [["show"], ["cancel"], ["resolve", "--done"]], ids=str)
def test_a_run_that_does_not_exist(settings: Settings, command: list[str]) -> None:
    """One sentence, code 4."""
    ended = reattach("runs", command[0], "run_nope", *(["call_1", *command[1:]] if command[1:] else []), env=settings_env(settings))
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "[run_not_found]" in ended.stderr
