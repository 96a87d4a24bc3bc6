"""O22: scripts vanish after a restart, a failover or a flush: no caller may notice."""

import asyncio

import msgspec

from reattach import Agents, Run
from reattach.core.receipt import Effect, EffectCall
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.admin import Admin
from ..support.calls import ended, new_run_id
from ..support.drive import claim, new_run
from ..support.factories import OwnRedis, Replicas, Workers
from ..support.scale import rounds
from ..support.service import Service
from ..support.waiting import wait_until


async def test_a_flush_before_every_command(store: Store, admin: Admin) -> None:
    """The script cache is emptied right before each command of a run's life: every one works, and leaves its event once."""

    def flush() -> None:
        admin.script_flush()

    flush()
    created = await store.runs.create(new_run(), key="k", fingerprint="f")
    flush()
    hand = await claim(store)
    flush()
    await hand.emit(("step.done", {"n": 1}))
    flush()
    await hand.renew()
    flush()
    assert (await store.work.intend(hand.lease, EffectCall(call_id="c", tool="t", arguments=b"{}", mutating=True))).kind == "go"
    flush()
    await store.work.commit(hand.lease, Effect(call_id="c", tool="t", status="receipt", mutating=True, result=b"1"))
    flush()
    await store.work.release(hand.lease, cause="drain")
    flush()
    await store.sweep.once()
    hand = await claim(store)
    flush()
    reply = await store.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
    assert reply.disposition == "cancellation_pending"
    flush()
    assert (await hand.finish("cancelled")).disposition == "cancelled_after_effect"
    flush()
    await store.sweep.once()
    flush()
    assert (await store.runs.snapshot(created.record.run_id)).state == "cancelled"
    kinds = [event.type for event in await store.events.after(hand.run_id, 0, 100)]
    assert kinds == [
        "run.created", "run.started", "step.done", "tool.requested", "tool.completed", "run.retrying", "run.started",
        "run.cancel_requested", "run.cancelled",
    ]  # fmt: skip


agents = Agents()


@agents.agent("flushed")
async def flushed(run: Run) -> int:
    """Half a second of events."""
    for n in range(25):
        await run.emit("step.done", {"n": n})
        await asyncio.sleep(0.02)
    return 25


async def test_flushes_all_the_time(service: Service, workers: Workers, admin: Admin) -> None:
    """Every 20 ms under 20 live runs: no event is lost or doubled."""
    await workers(agents, concurrency=20, lease=15.0)

    async def flush() -> None:
        while True:
            admin.script_flush()
            await asyncio.sleep(0.02)

    flushing = asyncio.create_task(flush())
    for _ in range(rounds(1)):
        runs = [await new_run_id(service.client, "flushed") for _ in range(20)]
        followers = [await service.follow(run_id).open() for run_id in runs]
        for follower in followers:
            assert await follower.until_end() == "clean"
            follower.check(1, 28)
            assert [e["payload"]["n"] for e in follower.events if e["type"] == "step.done"] == list(range(25))
    flushing.cancel()


async def test_a_restart_of_redis(own_redis: OwnRedis, replicas: Replicas, settings: Settings) -> None:
    """Redis is killed and comes back with its data: the same processes go on, and an open stream misses nothing."""
    server = own_redis(persist=True)
    service = await replicas(msgspec.structs.replace(settings, redis=server.url, lease=30.0))
    run_id = await new_run_id(service.client)
    hand = await claim(service.store)
    follower = await service.follow(run_id).open()
    await hand.emit(("step.done", {"n": 1}))
    await follower.until(3)
    server.kill9()
    during = await service.client.get(f"/agent-runs/{run_id}")
    assert (during.status_code, during.json()["code"]) == (503, "store_unavailable")
    server.start()

    async def back() -> bool:
        return (await service.client.get("/readyz")).status_code == 200

    await wait_until(back, "the API to be ready again")
    await hand.emit(("step.done", {"n": 2}))
    await hand.finish()
    if await follower.until_end() != "clean":
        assert follower.control[-1].event == "stream.closing"
        await follower.open()
        assert await follower.until_end() == "clean"
    follower.check(1, 5)
    assert (await ended(service.client, run_id))["state"] == "succeeded"
