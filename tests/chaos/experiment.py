"""One experiment from the first process to the verdict."""

import asyncio
import time
from pathlib import Path

from reattach.core.run import TERMINAL_STATES
from reattach.store import Store

from ..support.invariants import all_keys, check_redis, read_runs
from .checks import Tally, check_story
from .people import People, Story
from .plan import Plan
from .stage import Say, Stage

_AFTERWARDS = 60.0
"""Seconds after the last trouble within which every run has to end."""


async def experiment(plan: Plan, folder: Path, say: Say) -> Tally:
    """Let it happen, then look at everything.

    Args:
        plan: What happens.
        folder: For logs, Redis's file and the effects' counters.
        say: Gets one line per thing that happens.
    """
    stage, tally = Stage(folder, say), Tally()
    try:
        await stage.open()
        say(f"{len(plan.jobs)} runs, {len(plan.troubles)} troubles in {plan.seconds:.0f} s, then up to {_AFTERWARDS:.0f} s to end")
        stories = await _happen(plan, stage, tally)
        say("all is well again; looking at every log, effect, snapshot and viewer")
        await _look(stage, stories, tally)
        tally.findings += await stage.stop()
        await asyncio.to_thread(_check_store, stage, tally)
    finally:
        await stage.close()
    return tally


async def _happen(plan: Plan, stage: Stage, tally: Tally) -> list[Story]:
    people = People(stage.bases)
    lives = [asyncio.create_task(people.look_after(job, stage.began)) for job in plan.jobs]
    try:
        await stage.play(plan.troubles)
        await asyncio.wait(lives, timeout=_AFTERWARDS)
        for job, life in zip(plan.jobs, lives, strict=True):
            tally.expect(life.done(), f"{job.key} is not over {_AFTERWARDS:.0f} s after the last trouble")
    finally:
        for life in lives:
            life.cancel()
        done = await asyncio.gather(*lives, return_exceptions=True)
        await people.close()
    for result in done:
        if isinstance(result, Exception):
            raise result
    return [story for story in done if isinstance(story, Story)]


async def _look(stage: Stage, stories: list[Story], tally: Tally) -> None:
    people, store = People(stage.bases), await Store.open(stage.settings)
    try:
        for story in stories:
            await check_story(tally, story, store, people.client, stage.bases)
    finally:
        await store.close()
        await people.close()


def _check_store(stage: Stage, tally: Tally) -> None:
    """Nothing is left over: no queue entry, no lease, no timer but the ones that forget, no key that stays, no connection."""
    with stage.redis.admin() as admin:
        try:
            check_redis(admin, stage.settings, patience=10)
        except AssertionError as e:
            tally.findings.append(str(e))
        for run in read_runs(admin, stage.settings.prefix):
            tally.expect(run.record["state"] in TERMINAL_STATES, f"{run.run_id} is {run.record['state']}, and nobody asked for it twice")
        for key in all_keys(admin, stage.settings.prefix):
            if b":queue:" in key:
                tally.expect(admin.xlen(key) == 0, f"{key.decode()} has entries left")
                tally.expect(admin.xpending(key, "workers")["pending"] == 0, f"{key.decode()} has deliveries left")
            elif b":poison:" in key:
                tally.findings.append(f"{key.decode()} has entries: {admin.xrange(key)}")
            elif key.endswith(b":timers"):
                left = [member for member in admin.zrange(key, 0, -1) if not member.startswith(b"forget:")]
                tally.expect(not left, f"{key.decode()} has {left}")
        tally.expect(len(admin.client_list()) == 1, f"connections are left: {admin.client_list()}")


async def within(plan: Plan, folder: Path, say: Say) -> tuple[Tally, str]:
    """An experiment and its verdict in one line."""
    began = time.monotonic()
    tally = await experiment(plan, folder, say)
    ends = ", ".join(f"{count} {end}" for end, count in sorted(tally.ends.items()))
    word = "HOLDS" if not tally.findings else f"BROKEN ({len(tally.findings)} findings)"
    return tally, (
        f"{word}: seed {plan.seed}, {len(plan.jobs)} runs ({ends}) in {tally.attempts} attempts, {len(plan.troubles)} troubles, "
        f"{tally.reconnects} reconnects, {tally.events} events, {tally.effects} effects ({tally.unresolved} named unresolved, "
        f"{tally.repeated} repeated under their key), {time.monotonic() - began:.0f} s"
    )
