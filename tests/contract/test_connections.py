"""A connection is one delivery of a run to one client: whatever becomes of it, the run and what the client gets do not change."""

import asyncio
from typing import Any

from reattach import Agents, Run

from ..support.calls import ended, new_run_id, snapshot
from ..support.client import Follower, make_client
from ..support.drive import claim, start
from ..support.factories import Proxies, Replicas, Workers
from ..support.filters import buffer_like_nginx
from ..support.launch import Launcher
from ..support.service import Service
from ..support.waiting import wait_until


async def test_01_disconnect_before_the_first_event(service: Service, proxies: Proxies) -> None:
    """The client goes before it saw anything: the run starts as if nothing had happened, and the client, back, sees all of it."""
    proxy = await proxies(service.base_url)
    run_id = await new_run_id(service.client)
    proxy.replies.clear()
    follower = service.follow(run_id)
    follower.connect(on=proxy.http)
    await wait_until(lambda: proxy.open_links == 1, "the request to be on its way")
    await follower.cut()
    assert follower.last_event_id == "" and (await snapshot(service.client, run_id))["state"] == "queued"
    hand = await claim(service.store)
    await follower.open()
    await hand.emit(("step.done", {"n": 1}))
    await hand.finish(outcome="fine")
    assert await follower.until_end() == "clean"
    follower.check(1, 4)
    assert (await ended(service.client, run_id))["outcome"] == "fine"


async def test_02_disconnect_during_a_tool_call(service: Service, workers: Workers) -> None:
    """The only viewer is lost while a tool runs: the tool is called once, to its end, and the resume has its receipt."""
    calls: list[str] = []
    running, go_on = asyncio.Event(), asyncio.Event()
    agents = Agents()

    async def add_note(**_: Any) -> dict[str, Any]:
        calls.append("add_note")
        running.set()
        await go_on.wait()
        return {"receipt_id": "receipt_1", "result_version": "ticket_981:v19"}

    @agents.agent("noting")
    async def noting(run: Run) -> str | None:
        return (await run.effect("tickets.add_note", add_note, {"ticket": 981})).receipt_id

    await workers(agents)
    run_id = await new_run_id(service.client, "noting")
    follower = await service.follow(run_id).open()
    await asyncio.wait_for(running.wait(), 5)
    await follower.until("tool.requested")
    await follower.cut()
    shown = await snapshot(service.client, run_id)
    assert (shown["state"], shown["tools"][0]["status"], shown["cancel"]["version"]) == ("running", "requested", 0)
    go_on.set()
    assert (await ended(service.client, run_id))["state"] == "succeeded"
    await follower.open()
    assert await follower.until_end() == "clean"
    follower.check(1, 5)
    assert follower.types == ["run.created", "run.started", "tool.requested", "tool.completed", "run.succeeded"]
    assert follower.events[3]["payload"]["receipt_id"] == "receipt_1"
    assert calls == ["add_note"]


async def test_03_reconnect_after_50_gives_51_onward(service: Service) -> None:
    """By header or query, as number or event id: the first event is 51, the last one the run's last."""
    hand = await start(service.store)
    await hand.emit_many(98)
    for cursor, after in (("50", None), (f"{hand.run_id}:50", None), (None, "50"), (None, f"{hand.run_id}:50"), ("50", "7")):
        follower = await service.follow(hand.run_id).open(cursor, after=after)
        await follower.until(100)
        follower.check(51, 100)
        await follower.close()
    follower = await service.follow(hand.run_id).open(f"{hand.run_id}:50")
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(51, 101)


async def test_04_overlap_of_replay_and_live_is_applied_once(service: Service) -> None:
    """Streams opened all the while events are appended, each with its own cursor: no event is missing, doubled or out of order."""
    hand = await start(service.store)
    followers: list[tuple[int, Follower]] = []
    for n in range(40):
        appending = asyncio.create_task(hand.emit(*(("step.done", {"n": n, "m": m}) for m in range(5))))
        cursor = (n * 5) // 2
        follower = service.follow(hand.run_id)
        follower.connect(cursor)
        followers.append((cursor, follower))
        await appending
    await hand.finish()
    for cursor, follower in followers:
        await follower.stream.head()
        assert await follower.until_end() == "clean"
        follower.check(cursor + 1, 203)


async def test_07_two_devices_one_run(replicas: Replicas) -> None:
    """A phone and a laptop on different replicas see the same bytes; one leaving, however it leaves, does not touch the other."""
    api1, api2 = await replicas(), await replicas()
    run_id = await new_run_id(api1.client)
    phone, laptop = await api1.follow(run_id).open(), await api2.follow(run_id).open()
    hand = await claim(api1.store)
    await hand.emit(("step.done", {"n": 1}))
    await phone.until(3)
    await phone.cut()
    await hand.emit(("step.done", {"n": 2}))
    await laptop.until(4, timeout=2)
    await phone.open(on=api2.base_url)
    await hand.finish()
    for device in (phone, laptop):
        assert await device.until_end() == "clean"
        device.check(1, 5)
    assert [f.data for f in phone.frames] == [f.data for f in laptop.frames]
    assert await snapshot(api1.client, run_id) == await snapshot(api2.client, run_id)


async def test_12_proxies_timeouts_and_suspension_change_nothing(replicas: Replicas, proxies: Proxies, launch: Launcher) -> None:
    """Buffering, an idle limit, a network that swallows packets, a frozen API: the client ends up with the same events."""
    service = await replicas(keepalive=0.3, lease=30.0)
    frozen = launch.api()
    hand = await start(service.store)
    buffered, idle, hole = [await proxies(service.base_url, **o) for o in ({"filter": buffer_like_nginx}, {}, {})]
    idle.idle_timeout = 1.0
    async with make_client(frozen.base_url) as client:
        followers = [await service.follow(hand.run_id).open(on=proxy.http) for proxy in (buffered, idle, hole)]
        followers.append(await Follower(client, hand.run_id).open())
        for follower in followers:
            await follower.until(2)
        hole.gate.clear()
        frozen.freeze()
        await hand.emit_many(5)
        await followers[0].until(7, timeout=2)
        await followers[1].until(7, timeout=2)
        assert followers[2].sequences == followers[3].sequences == [1, 2]
        await asyncio.sleep(1.3)
        await hand.renew()
        frozen.thaw()
        hole.gate.set()
        await hand.finish()
        for follower in followers:
            if await follower.until_end() != "clean":
                await follower.open()
                assert await follower.until_end() == "clean"
            follower.check(1, 8)
    assert idle.idle_cuts == 0
    assert (await snapshot(service.client, hand.run_id))["state"] == "succeeded"
