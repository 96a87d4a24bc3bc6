"""Lost hints, lost connections, a store that is away: latency, never a gap; and an honest end where waiting would be a lie."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reattach.core.errors import StoreUnavailable
from reattach.core.event import Event
from reattach.core.settings import Settings
from reattach.store import Ring, Store
from reattach.tail import Hub, StreamEnded, changed

from ..support.drive import Hand, start
from ..support.proxy import Proxy
from ..support.servers import RedisServer
from ..support.waiting import wait_until
from .viewers import Gate, Viewer, kill_clients, ring_often

if TYPE_CHECKING:
    import redis

Proxies = Callable[..., Any]


async def _through(proxy: Proxy, settings: Settings, *, timeout: float = 0.5, **options: Any) -> tuple[Store, Hub]:
    """A second process's store and hub, behind a proxy."""
    mine = msgspec.structs.replace(settings, redis=proxy.redis, redis_timeout=timeout)
    store = await Store.open(mine)
    hub = Hub(store, mine, **options)
    await hub.start()
    return store, hub


async def _finish(hand: Hand, *viewers: Viewer) -> None:
    last = (await hand.finish()).sequence
    for viewer in viewers:
        (await viewer.ends()).check(last)


async def test_bells_that_are_deleted_cost_time_only(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """Where hints are removed before anybody heard them, the re-read at each keep-alive interval delivers all the same."""
    busy, hand = await start(store, "busy"), await start(store, "calm")
    viewers = [await Viewer(hub, each.run_id).reaches(2) for each in (busy, hand)]
    tail = Gate(store, "tail")
    for _ in range(2):
        tail.shut()
        await busy.emit_many(1)
        await tail.holds()
        # The hub is busy with that read and takes no hints until it is through: these are gone by then.
        await hand.emit_many(2)
        admin.delete(*map(store.keys.bell, store.keys.tags))
        tail.open()
        await viewers[1].reaches(viewers[1].position + 2)
    await _finish(hand, viewers[1])
    await _finish(busy, viewers[0])


async def test_bells_that_were_trimmed_past_us(store: Store, settings: Settings, admin: "redis.Redis") -> None:
    """More hints at once than the bell keeps: the one that was pushed out unheard is made up for at once, not at the next interval."""
    hub = Hub(store, msgspec.structs.replace(settings, keepalive=300.0))
    await hub.start()
    busy, pushed_out = await start(store, "busy"), await start(store, "calm")
    viewers = [await Viewer(hub, hand.run_id).reaches(2) for hand in (busy, pushed_out)]
    tail = Gate(store, "tail")
    tail.shut()
    await busy.emit_many(1)
    await tail.holds()
    # The hub is busy with that read and takes no hints until it is through.
    await pushed_out.emit_many(3)
    await asyncio.to_thread(ring_often, admin, store.keys.bell(pushed_out.run_id[4:6]), busy.run_id, 12_000)
    tail.open()
    await viewers[1].reaches(5)
    await _finish(pushed_out, viewers[1])
    await _finish(busy, viewers[0])
    await hub.close()


async def test_every_connection_is_killed_while_events_fly(store: Store, hub: Hub, settings: Settings, proxies: Proxies) -> None:
    """Cut connections are made anew; what happened meanwhile is read; nobody notices but by the clock."""
    proxy: Proxy = await proxies(settings.redis)
    other, far = await _through(proxy, settings)
    hand = await start(store)
    viewers = [Viewer(far, hand.run_id), Viewer(hub, hand.run_id)]
    for _ in range(8):
        await hand.emit_many(10, size=3)
        proxy.cut()
        await viewers[1].reaches(2)
    await _finish(hand, *viewers)
    await far.close()
    await other.close()


async def test_the_server_kills_its_clients(store: Store, hub: Hub, admin: "redis.Redis") -> None:
    """`CLIENT KILL` of every connection, the bell's included, while viewers follow."""
    hand = await start(store)
    viewer = Viewer(hub, hand.run_id)
    for _ in range(5):
        await hand.emit_many(4)
        await asyncio.to_thread(kill_clients, admin)
    await _finish(hand, viewer)


async def test_a_short_outage_is_waited_out(store: Store, settings: Settings, proxies: Proxies) -> None:
    """Viewers in the middle of live, of a replay and of a long poll wait, and go on where they were."""
    proxy: Proxy = await proxies(settings.redis)
    other, far = await _through(proxy, settings)
    hand = await start(store)
    await hand.emit_many(300)
    live = await Viewer(far, hand.run_id).reaches(302)
    pages = Gate(other, "after")
    pages.shut()
    replay = Viewer(far, hand.run_id, 100)
    poll = asyncio.create_task(changed(far, hand.run_id, 302, 20))
    await wait_until(lambda: far.stats().followers == 3, "all of them to follow")
    proxy.refusing = True
    proxy.cut()
    pages.open()
    await hand.emit_many(5)
    await wait_until(lambda: proxy.accepted > 6, "the hub to try again")
    assert not live.done
    assert not poll.done()
    proxy.refusing = False
    assert await poll >= 303
    await _finish(hand, live, replay)
    await far.close()
    await other.close()


async def test_what_piled_up_is_read_in_bounded_pieces(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large events of many runs, of which the hub learns all at once: no read brings more than its bound, and nobody misses anything."""
    monkeypatch.setattr("reattach.tail.fetch.READ_BYTES", 64_000)
    monkeypatch.setattr("reattach.tail.fetch._LEAST_MEAN", 10)
    mine = await Store.open(msgspec.structs.replace(settings, max_payload=16_000))
    hub = Hub(mine, mine.settings)
    await hub.start()
    hands = [await start(store, f"agent{n}") for n in range(12)]
    viewers = [await Viewer(hub, hand.run_id).reaches(2) for hand in hands]
    await hands[0].emit_many(30, size=1)
    await viewers[0].reaches(32)
    gate, real, sizes = Gate(mine, "tail"), mine.events.tail, list[int]()

    async def measured(positions: Mapping[str, int], **how: int) -> dict[str, list[Event]]:
        found = await real(positions, **how)
        sizes.append(sum(len(e.payload) for events in found.values() for e in events))
        return found

    gate.shut()
    await hands[0].emit_many(1)
    await gate.holds()
    for hand in hands:
        await hand.emit(*(("step.done", {"pad": "x" * 15_000}) for _ in range(10)))
    gate.open()
    mine.events.tail = measured
    hub._fetch.rang(Ring(frozenset(), everything=True))  # pyright: ignore[reportPrivateUsage]
    for n, (hand, viewer) in enumerate(zip(hands, viewers, strict=True)):
        await viewer.reaches(43 if n == 0 else 12)
        await _finish(hand, viewer)
    assert sum(sizes) > 12 * 10 * 15_000 and max(sizes) <= 64_000
    await hub.close()
    await mine.close()


async def test_an_outage_that_lasts_ends_the_streams(store: Store, settings: Settings, proxies: Proxies) -> None:
    """A store that stays away longer than the hub is patient: the reason is said, new viewers are refused, and afterwards all is well."""
    proxy: Proxy = await proxies(settings.redis)
    other, far = await _through(proxy, settings, patience=0.4, linger=30)
    hand = await start(store)
    live = await Viewer(far, hand.run_id).reaches(2)
    poll = asyncio.create_task(changed(far, hand.run_id, 2, 20))
    proxy.refusing = True
    proxy.cut()
    await live.ends()
    assert isinstance(live.error, StreamEnded)
    assert live.error.reason == "unavailable"
    assert await poll == 2
    assert far.closing is None
    late = await Viewer(far, hand.run_id, 2).ends()
    assert isinstance(late.error, StreamEnded), "the ring is there, but nothing will come"
    unknown = await start(store, "other")
    assert isinstance((await Viewer(far, unknown.run_id).ends()).error, StoreUnavailable)
    proxy.refusing = False
    await hand.emit_many(3)
    await wait_until(lambda: not far.patience.over, "the hub to hear hints again")
    await _finish(hand, Viewer(far, hand.run_id, live.position), Viewer(far, hand.run_id))
    await far.close()
    await other.close()


async def test_a_replay_through_a_lasting_outage(store: Store, settings: Settings, proxies: Proxies) -> None:
    """A viewer that needs pages gives up after the same time, with the same reason."""
    proxy: Proxy = await proxies(settings.redis)
    other, far = await _through(proxy, settings, patience=0.3)
    hand = await start(store)
    await hand.emit_many(100)
    async with far.joined(hand.run_id):
        proxy.refusing = True
        proxy.cut()
        viewer = await Viewer(far, hand.run_id).ends()
        assert isinstance(viewer.error, StreamEnded)
        assert viewer.error.reason == "unavailable"
    await far.close()
    await other.close()


async def test_a_store_that_swallows_everything(store: Store, settings: Settings, proxies: Proxies) -> None:
    """A network that drops packets without a word is noticed by time limits, and waited out like any other outage."""
    proxy: Proxy = await proxies(settings.redis)
    other, far = await _through(proxy, settings, timeout=0.1)
    hand = await start(store)
    viewer = await Viewer(far, hand.run_id).reaches(2)
    proxy.gate.clear()
    await hand.emit_many(3)
    await wait_until(lambda: far.patience.troubled, "the hub to notice")
    assert not viewer.done
    proxy.gate.set()
    await _finish(hand, viewer)
    await far.close()
    await other.close()


@pytest.mark.leaves_wreckage("the server is emptied behind the run's back")
async def test_a_store_that_comes_back_empty(own_redis: Callable[..., RedisServer], settings: Settings) -> None:
    """A restart without persistence: the run is gone, and nobody is left waiting for it."""
    server = own_redis()
    mine = msgspec.structs.replace(settings, redis=server.url)
    store = await Store.open(mine)
    hub = Hub(store, mine)
    await hub.start()
    hand = await start(store)
    viewer = await Viewer(hub, hand.run_id).reaches(2)
    server.kill9()
    server.start()
    await viewer.ends()
    assert isinstance(viewer.error, StreamEnded)
    assert hub.stats().runs == 0
    await hub.close()
    await store.close()


@pytest.mark.leaves_wreckage("events are taken out of the log and replaced")
@pytest.mark.parametrize("history", ["shorter", "other"])
async def test_a_store_that_comes_back_with_another_history(store: Store, hub: Hub, admin: "redis.Redis", history: str) -> None:
    """A failover that lost the last writes: who saw them is ended instead of being handed a future that does not follow."""
    hand = await start(store)
    await hand.emit_many(3)
    viewer = await Viewer(hub, hand.run_id).reaches(5)
    log, run = store.keys.log(hand.run_id), store.keys.run(hand.run_id)
    calm = await start(store, "calm")
    unharmed = await Viewer(hub, calm.run_id).reaches(2)
    # Stream ids cannot go back, so the log is written again as the older primary would have it.
    entries: Any = admin.xrange(log)
    admin.delete(log)
    for entry, fields in entries[:4]:
        admin.xadd(log, fields, id=entry)
    admin.hset(run, "sequence", 4)
    if history == "other":
        admin.xadd(log, {"type": "step.done", "at": "1788430471000", "payload": '{"n":"other"}'}, id="5-0")
        admin.hset(run, "sequence", 5)
    await asyncio.to_thread(kill_clients, admin)
    await viewer.ends()
    assert isinstance(viewer.error, StreamEnded)
    assert viewer.error.reason == "unavailable"
    assert not unharmed.done
    fresh = await Viewer(hub, hand.run_id).reaches(4)
    assert len(set(fresh.sequences)) == len(fresh.sequences)
    await fresh.leave()
    await unharmed.leave()
