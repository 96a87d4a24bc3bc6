"""O16: two endings: the finisher, the canceller and the shutdown race, and exactly one of them ends the run."""

import asyncio
import random
from typing import Any

from reattach.core.errors import LeaseLost, RunClosed
from reattach.core.settings import Settings
from reattach.store import Finished, Store

from ..support.admin import Admin
from ..support.calls import cancel, snapshot
from ..support.drive import Hand, claim, start
from ..support.factories import Replicas
from ..support.invariants import read_runs
from ..support.scale import rounds
from ..support.service import Service


async def soon(coroutine: Any) -> Any:
    """At some moment of the same five milliseconds."""
    await asyncio.sleep(random.uniform(0, 0.005))
    try:
        return await coroutine
    except (LeaseLost, RunClosed) as refused:
        return refused


async def race(api2: Service, hand: Hand, follower: Any) -> str:
    """Finish, cancel and give back, all at once; then let whoever owns the run bring it to its end. How it ended."""
    finished, cancelled, _ = await asyncio.gather(
        soon(hand.finish(outcome=1)), soon(cancel(api2.client, hand.run_id)), soon(hand.store.work.release(hand.lease, cause="drain"))
    )
    assert cancelled.status_code in (200, 202), cancelled.text
    if (await snapshot(api2.client, hand.run_id))["state"] == "queued":
        await (await claim(hand.store, hand.lease.agent)).finish(outcome=2)
    shown = await snapshot(api2.client, hand.run_id)
    assert await follower.until_end() == "clean"
    follower.check(1, shown["sequence"])
    assert follower.types[-1] == f"run.{shown['state']}"
    if isinstance(finished, Finished):
        assert finished.state == shown["state"]
    if shown["state"] == "cancelled":
        assert follower.events[-1]["payload"]["disposition"] == shown["cancel"]["disposition"] == "cancelled_before_effect"
    elif shown["cancel"]["version"]:
        assert shown["cancel"]["disposition"] == "already_terminal"
    return shown["state"]


async def test_finish_cancel_and_shutdown_at_once(replicas: Replicas) -> None:
    """However the three interleave: one terminal event, and record, snapshot and every answer name the same ending.

    96 rounds by default, more than the case's 300 with REATTACH_TEST_LONG=4.
    """
    api1, api2 = await replicas(), await replicas()
    for number in range(rounds(12)):
        hands = [await start(api1.store, f"race{number}-{n}") for n in range(8)]
        followers = [await api1.follow(hand.run_id).open() for hand in hands]
        await asyncio.gather(*(race(api2, hand, follower) for hand, follower in zip(hands, followers, strict=True)))


async def finished_at_once(store: Store, agent: str) -> tuple[str, set[tuple[str, int]]]:
    """Finish one run four times with different outcomes, all at once; the run, and what the finishers were told."""
    hand = await start(store, agent)
    wanted = [("succeeded", 1), ("failed", 2), ("succeeded", 3), ("failed", 4)]
    random.shuffle(wanted)
    told: list[Finished] = list(await asyncio.gather(*(hand.finish(state, outcome=value) for state, value in wanted)))
    return hand.run_id, {(t.state, t.sequence) for t in told}


async def test_the_first_writer_wins(store: Store, admin: Admin, settings: Settings) -> None:
    """1,000 raw finishes with different outcomes: the first is stored, every other one is told what is stored, all keys expire."""
    told: dict[str, set[tuple[str, int]]] = {}
    for number in range(rounds(10)):
        told |= dict(await asyncio.gather(*(finished_at_once(store, f"first{number}-{n}") for n in range(25))))
    runs = [run for run in read_runs(admin, settings.prefix) if run.run_id in told]
    assert len(runs) == len(told)
    for run in runs:
        assert told[run.run_id] == {(run.record["state"], 3)}
        assert [kind for _, kind, _ in run.log] == ["run.created", "run.started", f"run.{run.record['state']}"]
        ttls: list[Any] = [admin.pttl(key) for key in run.owned() if admin.exists(key)]
        assert len(ttls) >= 3 and min(ttls) > 0
