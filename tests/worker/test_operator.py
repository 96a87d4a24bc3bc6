"""A tool call that only a person can settle: the run waits for the verdict, and goes on from it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach import Agents, EffectUnresolved, Run
from reattach.core.errors import WaitNotOpen
from reattach.core.verdict import asks_about, question_id
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count, lines
from .seen import ends, events, outcome, payloads, reaches, says, submit, submit_script, texts, value

agents = Agents()
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    """Count anew in every test."""
    CALLS.clear()


async def slow(name: str) -> str:
    """Takes too long."""
    CALLS.append(name)
    await asyncio.sleep(30)
    return name


async def quick(name: str) -> str:
    """Takes a moment."""
    await asyncio.sleep(0.4)
    CALLS.append(name)
    return name


@agents.agent("timing")
async def timing(run: Run) -> Any:
    """Talks around tools of which one times out, and another is under way meanwhile."""
    async with run.message() as message:
        await message.write("Before. ")
        lost, done = await asyncio.gather(
            run.effect("a.lost", slow, {"name": "lost"}, call_id="pay/1", timeout=0.1),
            run.effect("a.done", quick, {"name": "done"}, call_id="done"),
        )
        await message.write("After. ")
        await run.wait_for("go")
    return [lost.receipt_id, lost.result_version, lost.result, lost.tool_call_id, done.result]


@agents.agent("two")
async def two(run: Run) -> Any:
    """Two calls that nobody can tell the fate of."""
    found = await asyncio.gather(*(run.effect("a.lost", slow, {"name": n}, call_id=n, timeout=0.1) for n in ("x", "y")))
    return [receipt.result for receipt in found]


@agents.agent("nested")
async def nested(run: Run) -> str:
    """A tool that uses a tool."""

    async def outer() -> str:
        try:
            await run.effect("a.lost", slow, {"name": "inner"}, timeout=0.1)
        except EffectUnresolved as e:
            return e.code
        return "settled"

    return (await run.effect("a.outer", outer)).result


async def verdict(store: Store, run_id: str, call_id: str, **said: Any) -> str:
    """Wait for the question and answer it; the wait's name."""
    record = await reaches(store, run_id, "waiting")
    assert record.wait_id is not None and asks_about(record.wait_id, call_id)
    await store.runs.answer(run_id, wait_id=record.wait_id, value=json.dumps(said).encode(), by="anna", key=None, fingerprint="")
    return record.wait_id


def test_a_question_has_a_name_of_its_own() -> None:
    """For each call, however it is called, and each time it becomes unresolved."""
    ids = ["call_1", "call_11", "a/b", "a_b", "a.b", "x" * 128, "1"]
    names = {question_id(call_id, sequence, turn) for call_id in ids for sequence in (1, 12, 123) for turn in (1, 2)}
    assert len(names) == 6 * len(ids) and max(map(len, names)) <= 128
    for name in names:
        assert sum(asks_about(name, call_id) for call_id in ids) == 1


async def test_a_person_says_that_it_happened(store: Store, workers: Callable[..., Any]) -> None:
    """The run waits without a worker until then; the verdict becomes the receipt, nothing is called or said again."""
    await workers(agents)
    run_id = await submit(store, "timing")
    record = await reaches(store, run_id, "waiting")
    shown = await store.runs.snapshot(run_id)
    assert shown.waiting is not None and record.wait_id is not None
    assert (shown.waiting.reason, shown.waiting.expires_at) == ("effect_unresolved", None)
    assert "a.lost" in (shown.waiting.prompt or "") and "pay/1" in (shown.waiting.prompt or "")
    assert [u.tool_call_id for u in shown.unresolved] == ["pay/1"] and CALLS == ["lost", "done"]
    await verdict(store, run_id, "pay/1", happened=True, receipt_id="r1", result_version="p:v2", result={"n": 1})
    await says(store, run_id, "run.waiting", 2)
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(run_id, wait_id=record.wait_id, value=b"true", by="anna", key=None, fingerprint="")
    await store.runs.answer(run_id, wait_id="go_1", value=b"1", by="anna", key=None, fingerprint="")
    assert await outcome(store, run_id) == ["r1", "p:v2", {"n": 1}, "pay/1", "done"]
    shown = await store.runs.snapshot(run_id)
    assert (CALLS, shown.unresolved, shown.resources) == (["lost", "done"], (), {"p": "v2"})
    assert texts(shown) == [("completed", "Before. "), ("completed", "After. ")]


async def test_a_person_says_that_it_did_not(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Then the tool runs, under the same key; when its worker dies again that is a new question, which the old answer does not settle."""
    first = await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter, {"after": 1.5}], ["finish", "done"])
    asked: list[str] = []
    for turn in (1, 2):
        await says(store, run_id, "tool.requested", turn)
        await first.crash()
        first = await workers(scripted)
        asked.append(await verdict(store, run_id, "call_1", happened=False))
    assert await outcome(store, run_id) == "done"
    assert len(set(asked)) == 2
    assert 1 <= count(counter) <= 3 and len(set(lines(counter))) == 1
    tools = [e.type for e in await events(store, run_id) if e.type.startswith("tool.")]
    assert tools == ["tool.requested", "tool.unresolved"] * 2 + ["tool.requested", "tool.completed"]


async def test_an_answer_that_is_no_verdict_is_asked_again(store: Store, workers: Callable[..., Any]) -> None:
    """A mistake of a person settles nothing and ends nothing."""
    await workers(agents)
    run_id = await submit(store, "timing")
    asked = [await verdict(store, run_id, "pay/1", yes=True)]
    await says(store, run_id, "run.waiting", 2)
    asked.append(await verdict(store, run_id, "pay/1", happened=True))
    await says(store, run_id, "run.waiting", 3)
    assert asked[1] == f"{asked[0]}.2" and len(CALLS) == 2
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")


async def test_two_questions_come_one_after_the_other(store: Store, workers: Callable[..., Any]) -> None:
    """Each call is asked about by itself."""
    await workers(agents)
    run_id = await submit(store, "two")
    for n in (1, 2):
        await says(store, run_id, "run.waiting", n)
        record = await reaches(store, run_id, "waiting")
        call_id = next(c for c in "xy" if asks_about(record.wait_id or "", c))
        await verdict(store, run_id, call_id, happened=True, result=call_id)
    assert await outcome(store, run_id) == ["x", "y"]
    assert sorted(CALLS) == ["x", "y"]


async def test_a_run_that_waits_for_a_verdict_can_be_cancelled(store: Store, workers: Callable[..., Any]) -> None:
    """At once, and as one whose effect may have happened."""
    await workers(agents)
    run_id = await submit(store, "two")
    await reaches(store, run_id, "waiting")
    await store.runs.cancel(run_id, by="anna", reason=None, key=None, fingerprint="")
    shown = await ends(store, run_id)
    assert (shown.state, shown.cancel.disposition) == ("cancelled", "cancelled_after_effect")


async def test_inside_another_tool_nothing_can_wait(store: Store, workers: Callable[..., Any]) -> None:
    """There it is raised, as with "fail"."""
    await workers(agents)
    run_id = await submit(store, "nested")
    shown = await ends(store, run_id)
    assert (shown.state, value(shown.outcome)) == ("succeeded", "effect_unresolved")
    assert await payloads(store, run_id, "run.waiting") == []
