"""O19: a blocking read that is longer than the client's socket timeout: idle systems must be as alive as busy ones."""

import asyncio
import time

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import cancel, ended, new_run_id
from ..support.drive import start
from ..support.factories import Replicas, Workers
from ..support.leaks import OWN_CONNECTIONS, client_count
from ..support.logs import LogCapture
from ..support.scale import seconds

RTIMEOUT = 0.5
SILENCE = 6.0
"""Longer than 3 × RTIMEOUT, and than the 5 s after which redis-py gives up by default."""

agents = Agents()


@agents.agent("sleeper")
async def sleeper(run: Run) -> str:
    """Long idle."""
    await run.sleep(60, park=False)
    return "not stopped"


@agents.agent("fresh")
async def fresh(run: Run) -> str:
    """Ends at once."""
    return "done"


async def test_nothing_dies_of_silence(replicas: Replicas, workers: Workers, admin: Admin, settings: Settings, logs: LogCapture) -> None:
    """After a long silence an event arrives within a second on the same stream; cancel and claim work as if fresh."""
    before = client_count(admin)
    service = await replicas(redis_timeout=RTIMEOUT)
    await workers(agents, redis_timeout=RTIMEOUT)
    hand = await start(service.store, "silent")
    follower = await service.follow(hand.run_id).open()
    await follower.until(2)
    sleeping = await new_run_id(service.client, "sleeper")
    watching = await service.follow(sleeping).open()
    await watching.until("run.started")

    async def keep() -> None:
        while True:
            await hand.renew()
            await asyncio.sleep(0.5)

    renewal = asyncio.create_task(keep())
    await asyncio.sleep(seconds(SILENCE))
    renewal.cancel()
    assert client_count(admin) <= before + 2 * OWN_CONNECTIONS, "connections must not pile up"
    appended = time.monotonic()
    await hand.emit(("step.done", {"n": 1}))
    await follower.until("step.done", timeout=1.0)
    assert follower.frames[-1].at - appended < 1.0 and len(follower.streams) == 1
    asked = time.monotonic()
    await cancel(service.client, sleeping)
    assert await watching.until_end(timeout=3) == "clean"
    assert watching.types[-1] == "run.cancelled" and time.monotonic() - asked < 2.0
    assert (await ended(service.client, await new_run_id(service.client, "fresh")))["outcome"] == "done"
    await hand.finish()
    await follower.until_end()
    follower.check()
    assert [entry for entry in logs.at_least("warning") if entry["event"] != "auth.development"] == []
