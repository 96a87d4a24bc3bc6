"""Pauses: the worker is given back, the answer comes once, the handler goes on from the record."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach import Agents, InvalidRequest, Run
from reattach.core.errors import WaitNotOpen
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count
from ..support.waiting import wait_until
from .seen import ends, error, events, outcome, payloads, reaches, submit, submit_script, texts, types

agents = Agents()


async def answer(store: Store, run_id: str, value: Any) -> str:
    """Answer what a run waits for; the wait's name."""
    record = await reaches(store, run_id, "waiting")
    assert record.wait_id is not None
    await store.runs.answer(run_id, wait_id=record.wait_id, value=json.dumps(value).encode(), by="anna", key=None, fingerprint="")
    return record.wait_id


@agents.agent("talking")
async def talking(run: Run) -> Any:
    """Waits in the middle of a message."""
    async with run.message() as message:
        await message.write("Shall I? ")
        ok = await run.wait_for("approval", prompt="Shall I?")
        await message.write(f"You said {ok}.")


@agents.agent("generating")
async def generating(run: Run) -> Any:
    """The same as a generator."""
    yield "Shall I? "
    ok = await run.wait_for("approval")
    yield f"You said {ok}."


@agents.agent("changing")
async def changing(run: Run) -> Any:
    """Says something else in every pass, and the same."""
    resumed = any(e.type == "run.resumed" for e in await run.history())
    async with run.message() as message:
        await message.write("The same, ")
        await message.write("resumed." if resumed else "first.")
    await run.emit("pass.began", {"resumed": resumed})
    await run.emit("tick.done", {})
    await run.emit("tick.done", {})
    await run.wait_for("go")
    await run.emit("tick.done", {})


@agents.agent("racing")
async def racing(run: Run) -> Any:
    """Waits while a tool runs, twice over."""

    async def tool(n: int) -> int:
        await asyncio.sleep(0.3)
        return n

    one, two, tools = await asyncio.gather(run.wait_for("first"), run.wait_for("second"), run.effect("a.b", tool, {"n": 7}))
    return [one, two, tools.result]


@agents.agent("wrong")
async def wrong(run: Run) -> Any:
    """Limits that are none."""
    refused: list[str] = []
    for limit in (0, -1):
        try:
            await run.wait_for("x", timeout=limit)
        except InvalidRequest as e:
            refused.append(e.code)
    try:
        await run.sleep(-1)
    except InvalidRequest as e:
        refused.append(e.code)
    await run.sleep(0)
    return refused


@agents.agent("catching")
async def catching(run: Run) -> Any:
    """Catches every exception, as careless code does."""
    try:
        return await run.wait_for("approval")
    except Exception as e:
        return f"caught {e!r}"


async def test_a_wait_gives_the_worker_back_and_goes_on_once(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Effects before and after happen once each; the answer is the value of the call; only one answer counts."""
    one = await workers(scripted, concurrency=1)
    counters = [str(tmp_path / n) for n in ("before", "after")]
    run_id = await submit_script(store, ["effect", counters[0]], ["wait", "Some Approval!"], ["effect", counters[1]])
    await reaches(store, run_id, "waiting")
    await wait_until(lambda: one.worker.active == 0, "the worker to be free")
    assert await outcome(store, await submit_script(store, ["finish", 1])) == 1, "the only slot is free meanwhile"
    assert count(counters[1]) == 0
    wait_id = await answer(store, run_id, {"yes": [1]})
    assert wait_id == "some_approval_1"
    assert await outcome(store, run_id) == {"attempt": 1, "answers": [{"yes": [1]}]}
    assert [count(c) for c in counters] == [1, 1]
    with pytest.raises(WaitNotOpen):
        await store.runs.answer(run_id, wait_id=wait_id, value=b"1", by="x", key=None, fingerprint="")
    kinds = await types(store, run_id)
    assert kinds.count("tool.requested") == 2 and kinds.count("run.started") == 1 and "run.retrying" not in kinds


async def test_several_waits_in_a_row(store: Store, workers: Callable[..., Any]) -> None:
    """Each has a name of its own, also for the same reason."""
    await workers(scripted)
    run_id = await submit_script(store, ["wait", "x"], ["wait", "x"], ["wait", "y"])
    assert [await answer(store, run_id, n) for n in range(3)] == ["x_1", "x_2", "y_3"]
    assert (await outcome(store, run_id))["answers"] == [0, 1, 2]


@pytest.mark.parametrize("agent", ["talking", "generating"])
async def test_a_wait_inside_a_message_splits_it(store: Store, workers: Callable[..., Any], agent: str) -> None:
    """What was said before is complete and is not said again; what follows is another message."""
    await workers(agents)
    run_id = await submit(store, agent)
    await reaches(store, run_id, "waiting")
    assert texts(await store.runs.snapshot(run_id)) == [("completed", "Shall I? ")]
    await answer(store, run_id, "yes")
    assert texts(await ends(store, run_id)) == [("completed", "Shall I? "), ("completed", "You said yes.")]


async def test_what_is_repeated_is_told_once_and_what_differs_is_new(store: Store, workers: Callable[..., Any]) -> None:
    """Messages and events of the first pass are recognised, each as often as it was told."""
    await workers(agents)
    run_id = await submit(store, "changing")
    await answer(store, run_id, None)
    assert texts(await ends(store, run_id)) == [("completed", "The same, first."), ("completed", "The same, resumed.")]
    kinds = await types(store, run_id)
    assert kinds.count("tick.done") == 3
    assert await payloads(store, run_id, "pass.began") == [{"resumed": False}, {"resumed": True}]
    ids = [m.message_id for m in (await store.runs.snapshot(run_id)).messages]
    assert len(set(ids)) == 2


async def test_a_limit_fails_the_run(store: Store, workers: Callable[..., Any]) -> None:
    """With a code of its own, not as a lost worker."""
    await workers(scripted)
    run_id = await submit_script(store, ["wait", "approval", 0.2])
    assert (await error(store, run_id))["code"] == "wait_expired"


@pytest.mark.parametrize("sleep", [False, True], ids=["wait", "sleep"])
async def test_a_limit_that_passed_while_nobody_was_there_fires_once(store: Store, workers: Callable[..., Any], sleep: bool) -> None:
    """Every process was down at the time; those that come back, all at once, notice it, and it is told once."""
    first = await workers(scripted)
    run_id = await submit_script(store, ["pause", 0.8] if sleep else ["wait", "approval", 0.8], ["finish", "awake"])
    await reaches(store, run_id, "waiting")
    await first.crash()
    waits = (await events(store, run_id))[-1]

    async def over() -> bool:
        seconds, micros = await store.door.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000 > waits.at + 1000

    await wait_until(over, "the limit to pass")
    assert (await store.runs.load(run_id)).state == "waiting", "somebody was there"
    await asyncio.gather(*(workers(scripted) for _ in range(3)))
    if sleep:
        assert await outcome(store, run_id) == "awake"
    else:
        assert (await error(store, run_id))["code"] == "wait_expired"
    await asyncio.gather(*(store.sweep.once() for _ in range(5)))
    assert (await types(store, run_id))[2:] == [
        "run.waiting",
        *(["input.received", "run.resumed", "run.succeeded"] if sleep else ["run.failed"]),
    ]


async def test_a_long_sleep_gives_the_worker_back(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """And wakes by itself, with what was done before done once."""
    await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter], ["pause", 0.3], ["pause", 0.2], ["finish", "awake"])
    await reaches(store, run_id, "waiting")
    assert await outcome(store, run_id) == "awake"
    assert count(counter) == 1
    assert (await types(store, run_id)).count("run.waiting") == 2


async def test_a_waiting_run_can_be_cancelled(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """At once, with nobody working on it."""
    await workers(scripted)
    run_id = await submit_script(store, ["wait", "approval"], ["effect", str(tmp_path / "counter")])
    await reaches(store, run_id, "waiting")
    reply = await store.runs.cancel(run_id, by="anna", reason=None, key=None, fingerprint="")
    assert reply.disposition == "cancelled_before_effect"
    assert (await ends(store, run_id)).state == "cancelled" and count(tmp_path / "counter") == 0


async def test_any_worker_goes_on(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """All workers are gone while it waits; a new one finishes it."""
    first = await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter], ["wait", "approval"], ["effect", counter])
    await reaches(store, run_id, "waiting")
    await first.crash()
    await answer(store, run_id, True)
    await workers(scripted)
    assert (await outcome(store, run_id))["answers"] == [True]
    assert count(counter) == 2


async def test_waits_and_tools_at_the_same_time(store: Store, workers: Callable[..., Any]) -> None:
    """Parking waits for the tool's receipt; one wait is open at a time."""
    await workers(agents)
    run_id = await submit(store, "racing")
    assert [await answer(store, run_id, n) for n in (1, 2)] == ["first_1", "second_2"]
    assert await outcome(store, run_id) == [1, 2, 7]
    assert (await types(store, run_id)).count("tool.completed") == 1


async def test_limits_that_are_none_are_refused(store: Store, workers: Callable[..., Any]) -> None:
    """Typed, before anything is parked."""
    await workers(agents)
    run_id = await submit(store, "wrong")
    assert await outcome(store, run_id) == ["invalid_request"] * 3


async def test_careless_code_cannot_catch_the_unwinding(store: Store, workers: Callable[..., Any]) -> None:
    """`except Exception` does not see it."""
    await workers(agents)
    run_id = await submit(store, "catching")
    await answer(store, run_id, "fine")
    assert await outcome(store, run_id) == "fine"
