"""A worker dies; another goes on in the same log, and nothing is done or told twice."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.store import Store

from ..support.agents import agents as scripted
from ..support.agents import count, lines
from .seen import ends, error, events, outcome, payloads, says, submit, submit_script, texts, types

agents = Agents()


@agents.agent("history")
async def history(run: Run) -> Any:
    """Hangs in its first attempt, tells what it knows in the second."""
    before = run.last_sequence
    if run.attempt == 1:
        await run.emit("step.done", {"n": 1})
        await asyncio.sleep(30)
    past = await run.history()
    return {"attempt": run.attempt, "last": before, "types": [e.type for e in past], "step": past[2].payload, "at": past[2].at > 0}


def add_key(path: Path, key: str) -> None:
    """The effect: a line in a file."""
    with path.open("a") as file:
        file.write(f"{key}\n")


@agents.agent("tool")
async def tool(run: Run) -> Any:
    """Dies in the middle of its tool, and goes on by the policy its input names."""
    path = Path(run.input["path"])

    async def add(idempotency_key: str) -> dict[str, str]:
        add_key(path, idempotency_key)
        if run.attempt == 1:
            await asyncio.sleep(30)
        return {"receipt_id": f"r{run.attempt}"}

    def probe(idempotency_key: str) -> Any:
        match run.input["finds"]:
            case "found":
                assert idempotency_key in lines(path)
                return {"receipt_id": "found", "result_version": "r:v1"}
            case "nothing":
                return None
            case _:
                raise ConnectionError("cannot look")

    policy = probe if run.input["policy"] == "probe" else run.input["policy"]
    receipt = await run.effect("a.add", add, read_only=run.input.get("read_only", False), on_unresolved=policy)
    return [receipt.receipt_id, receipt.replayed]


@agents.agent("fatal", attempts=2, backoff=0.1)
async def fatal(run: Run) -> Any:
    """Never ends."""
    await run.emit("attempt.began", {"attempt": run.attempt})
    await asyncio.sleep(30)


async def replace(store: Store, workers: Callable[..., Any], worker: Any, given: Agents) -> Any:
    """Crash a worker and start another."""
    await worker.crash()
    return await workers(given)


async def test_another_worker_goes_on_where_the_log_is(store: Store, workers: Callable[..., Any]) -> None:
    """Same log, next sequence, attempt 2; it sees what the first one wrote."""
    first = await workers(agents)
    run_id = await submit(store, "history")
    await says(store, run_id, "step.done")
    await replace(store, workers, first, agents)
    found = await outcome(store, run_id)
    assert found == {
        "attempt": 2,
        "last": 5,
        "types": ["run.created", "run.started", "step.done", "run.retrying", "run.started"],
        "step": {"n": 1},
        "at": True,
    }
    assert [e.sequence for e in await events(store, run_id)] == [1, 2, 3, 4, 5, 6]
    assert await payloads(store, run_id, "run.retrying") == [{"attempt": 2, "cause": "worker_lost"}]


async def test_nothing_is_done_or_told_twice(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Receipts answer, finished messages and events are recognised, the open message is interrupted and begins anew under another id."""
    first = await workers(scripted)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(
        store,
        ["text", "Looking at it."],
        ["emit", "step.done", {"n": 1}],
        ["effect", counter],
        ["say", "a b c d e f g h", 0.2],
        ["effect", counter],
    )
    await says(store, run_id, "message.delta", 6)
    await replace(store, workers, first, scripted)
    assert (await outcome(store, run_id, timeout=20))["attempt"] == 2
    assert count(counter) == 2 and len(set(lines(counter))) == 2
    snapshot = await store.runs.snapshot(run_id)
    said = texts(snapshot)
    assert said[0] == ("completed", "Looking at it.") and said[2] == ("completed", "a b c d e f g h") and len(said) == 3
    assert said[1][0] == "interrupted" and said[2][1].startswith(said[1][1])
    assert len({m.message_id for m in snapshot.messages}) == 3
    assert len(await payloads(store, run_id, "step.done")) == 1
    log = await events(store, run_id)
    assert [e.sequence for e in log] == list(range(1, len(log) + 1))


@pytest.mark.parametrize(
    ("policy", "finds", "done", "calls"),
    [
        ("retry", "", ["r2", False], 2),
        ("probe", "found", ["found", False], 1),
        ("probe", "nothing", ["r2", False], 2),
    ],
)
async def test_an_effect_without_receipt_is_settled_by_policy(
    store: Store, workers: Callable[..., Any], tmp_path: Path, policy: str, finds: str, done: list[Any], calls: int
) -> None:
    """It is told as unresolved, then retried under the same key, or looked for."""
    first = await workers(agents)
    run_id = await submit(store, "tool", {"path": str(tmp_path / "calls"), "policy": policy, "finds": finds})
    await says(store, run_id, "tool.requested")
    await replace(store, workers, first, agents)
    assert await outcome(store, run_id) == done
    assert lines(tmp_path / "calls") == [f"{run_id}:call_1"] * calls
    assert [p["why"] for p in await payloads(store, run_id, "tool.unresolved")] == ["worker_lost"]
    assert (await store.runs.snapshot(run_id)).unresolved == ()


@pytest.mark.parametrize(("policy", "finds"), [("fail", ""), ("probe", "error")])
async def test_an_effect_nobody_can_settle_stops_the_run(
    store: Store, workers: Callable[..., Any], tmp_path: Path, policy: str, finds: str
) -> None:
    """Typed, listed as unresolved, and never run again silently."""
    first = await workers(agents)
    run_id = await submit(store, "tool", {"path": str(tmp_path / "calls"), "policy": policy, "finds": finds})
    await says(store, run_id, "tool.requested")
    await replace(store, workers, first, agents)
    assert (await error(store, run_id))["code"] == "effect_unresolved"
    assert count(tmp_path / "calls") == 1
    assert [u.tool_call_id for u in (await store.runs.snapshot(run_id)).unresolved] == ["call_1"]


async def test_a_read_only_tool_simply_runs_again(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """Nothing can have happened, so nobody is asked."""
    first = await workers(agents)
    run_id = await submit(store, "tool", {"path": str(tmp_path / "calls"), "policy": "stop", "finds": "", "read_only": True})
    await says(store, run_id, "tool.requested")
    await replace(store, workers, first, agents)
    assert await outcome(store, run_id) == ["r2", False]
    assert "tool.unresolved" not in await types(store, run_id)


async def test_attempts_are_limited(store: Store, workers: Callable[..., Any]) -> None:
    """After the last one the run fails as lost; each attempt told of itself."""
    worker = await workers(agents)
    run_id = await submit(store, "fatal")
    for attempt in (1, 2):
        await says(store, run_id, "attempt.began", attempt)
        worker = await replace(store, workers, worker, agents)
    assert (await error(store, run_id))["code"] == "worker_lost"
    assert [json.loads(e.payload)["attempt"] for e in await events(store, run_id) if e.type == "attempt.began"] == [1, 2]


async def test_a_cancel_after_the_worker_died_ends_the_run(store: Store, workers: Callable[..., Any]) -> None:
    """There is nobody left to interrupt; the next sweep ends it."""
    first = await workers(agents)
    run_id = await submit(store, "fatal")
    await says(store, run_id, "attempt.began")
    await first.crash()
    await store.runs.cancel(run_id, by="anna", reason=None, key=None, fingerprint="")
    await workers(agents)
    assert (await ends(store, run_id)).state == "cancelled"
    assert len(await payloads(store, run_id, "attempt.began")) == 1
