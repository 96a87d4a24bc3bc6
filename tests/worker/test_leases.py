"""Leases: a handler that blocks keeps its own, a worker that is cut off loses it cleanly."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach import Agents, Run
from reattach.core.errors import LeaseLost, RunClosed, StoreUnavailable
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.worker.hold import Hold, Interrupt, Stop, clock

from ..support.agents import agents as scripted
from ..support.agents import count
from ..support.drive import start
from ..support.logs import captured
from ..support.proxy import Proxy
from ..support.waiting import wait_until
from .apart import ApartWorker
from .seen import ends, events, outcome, payloads, reaches, says, submit, submit_script, types

agents = Agents()
SEEN: list[str] = []


@agents.agent("busy")
async def busy(run: Run) -> int:
    """Computes for a long time without ever yielding."""
    until, rounds = time.monotonic() + 3.2, 0
    while time.monotonic() < until:
        rounds += 1
    await run.emit("step.done", {})
    return run.attempt


@agents.agent("watchful")
async def watchful(run: Run) -> Any:
    """Notices how it ends, and tries to go on nevertheless."""
    await run.emit("attempt.began", {"attempt": run.attempt})
    if run.attempt > 1:
        return "second"
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        SEEN.append("cancelled")
        for step in (run.emit("too.late", {}), run.effect("a.b", lambda: SEEN.append("effect")), run.wait_for("x")):
            try:
                await step
            except BaseException as e:
                SEEN.append(type(e).__name__)
        raise


@pytest.mark.parametrize("what", ["blocks", "computes"])
async def test_a_handler_that_blocks_keeps_its_lease(
    settings: Settings, store: Store, workers: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    """Three lease times and more without yielding: one attempt, although another worker waits for it to fall."""
    short = msgspec.structs.replace(settings, lease=1.0)
    with ApartWorker(short, scripted if what == "blocks" else agents):
        if what == "blocks":
            run_id = await submit_script(store, ["effect", str(tmp_path / "c")], ["block", 3.2], ["effect", str(tmp_path / "c")])
        else:
            run_id = await submit(store, "busy")
        await says(store, run_id, "run.started")
        await workers(scripted if what == "blocks" else agents, lease=1.0)
        assert await outcome(store, run_id) in ({"attempt": 1, "answers": []}, 1)
    assert "run.retrying" not in await types(store, run_id)
    assert count(tmp_path / "c") == (2 if what == "blocks" else 0)


async def test_long_runs_and_a_long_queue_are_one_attempt_each(store: Store, workers: Callable[..., Any], tmp_path: Path) -> None:
    """What waits for a slot does not age, and what runs is renewed."""
    await workers(scripted, concurrency=2, lease=1.0)
    await workers(scripted, concurrency=1, lease=1.0)
    counter = str(tmp_path / "counter")
    runs = [await submit_script(store, ["effect", counter], ["sleep", 1.2], ["effect", counter]) for _ in range(6)]
    for run_id in runs:
        assert await outcome(store, run_id, timeout=20) == {"attempt": 1, "answers": []}
    assert count(counter) == 12


async def test_a_worker_that_is_cut_off_stops_and_is_replaced(
    settings: Settings, store: Store, proxies: Callable[..., Any], workers: Callable[..., Any]
) -> None:
    """Its handler is cancelled when the lease is over; nothing it still tries is written, done or called."""
    SEEN.clear()
    proxy: Proxy = await proxies(settings.redis)
    await workers(agents, lease=1.0, redis=proxy.redis, redis_timeout=0.5)
    run_id = await submit(store, "watchful")
    await says(store, run_id, "attempt.began")
    proxy.gate.clear()
    began = time.monotonic()
    await workers(agents, lease=1.0)
    await wait_until(lambda: len(SEEN) == 4, "the cut off handler to end", timeout=6)
    assert time.monotonic() - began < 3.0
    assert SEEN == ["cancelled", "Interrupt", "Interrupt", "Interrupt"]
    assert await outcome(store, run_id) == "second"
    proxy.gate.set()
    log = await events(store, run_id)
    assert [e.sequence for e in log] == list(range(1, len(log) + 1)) and "too.late" not in [e.type for e in log]
    assert await payloads(store, run_id, "attempt.began") == [{"attempt": 1}, {"attempt": 2}]


async def test_a_stolen_lease_stops_the_handler_at_its_next_renewal(store: Store, workers: Callable[..., Any], admin: Any) -> None:
    """Whoever is told that it lost its lease believes it at once."""
    SEEN.clear()
    await workers(agents, lease=0.6)
    run_id = await submit(store, "watchful")
    await says(store, run_id, "attempt.began")
    admin.hset(store.keys.run(run_id), "fence", "somebody else")
    with captured():
        await wait_until(lambda: len(SEEN) == 4, "the handler to end")
    admin.hset(store.keys.run(run_id), "lease_until", 1)
    assert await outcome(store, run_id) == "second"


async def hold(store: Store, *, seconds: float = 30) -> Hold:
    """A hold on a fresh run."""
    hand = await start(store, "held")
    return Hold(hand.claim, since=clock(), seconds=seconds)


async def test_reasons_to_stop_are_ranked(store: Store) -> None:
    """A lost lease stays lost; a cancel outranks a drain."""
    held = await hold(store)
    held.check()
    for reason, now in ((Stop.DRAIN, Stop.DRAIN), (Stop.CANCEL, Stop.CANCEL), (Stop.DRAIN, Stop.CANCEL), (Stop.LOST, Stop.LOST)):
        held.halt(reason)
        assert held.stop is now
    with pytest.raises(Interrupt):
        held.check()


async def test_a_hold_whose_time_is_over_is_lost(store: Store) -> None:
    """Whatever the store would say: the process may have been suspended since."""
    held = await hold(store, seconds=-1)
    with pytest.raises(asyncio.CancelledError):
        held.check()
    assert held.stop is Stop.LOST and held.lost


@pytest.mark.parametrize("error", [LeaseLost(), RunClosed()])
async def test_a_refusal_is_a_loss(store: Store, error: Exception) -> None:
    """It reaches the handler as something that `except Exception` does not catch."""
    held = await hold(store)

    async def refused() -> None:
        raise error

    with pytest.raises(Interrupt):
        await held.insist(refused)
    assert held.lost


async def test_an_outage_is_waited_for_up_to_the_lease(store: Store) -> None:
    """The command is sent again until it is answered, or nobody can be sure of the lease any more."""
    held = await hold(store)
    calls: list[int] = []

    async def third_time() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise StoreUnavailable
        return "answer"

    assert await held.insist(third_time) == "answer"
    held.until = clock() + 0.2

    async def never() -> None:
        raise StoreUnavailable

    with pytest.raises(Interrupt):
        await held.insist(never)
    assert held.lost


async def test_a_worker_can_be_stopped_before_it_did_anything(store: Store, workers: Callable[..., Any]) -> None:
    """No thread, task or connection stays behind."""
    worker = await workers(scripted)
    await worker.close()
    run_id = await submit_script(store, ["finish", 1])
    assert (await reaches(store, run_id, "queued")).attempt == 0
    await store.runs.cancel(run_id, by="x", reason=None, key=None, fingerprint="")
    assert (await ends(store, run_id)).state == "cancelled"
