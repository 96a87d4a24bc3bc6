"""The same store on a real three-primary cluster, and behind Sentinels whose primary is killed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from reattach import Agents, Run
from reattach.core.settings import Settings
from reattach.store import Ring, Store
from reattach.tail import Hub

from ..support.drive import claim, create, new_run, start
from ..support.topologies import Cluster, Watched, running_cluster, running_sentinels
from ..support.waiting import wait_until
from ..support.working import RunningWorker
from ..tail.viewers import Viewer
from ..worker.seen import outcome

HOSTILE = ["{", "}", "{}", "a}:run:{b", "{07}", "x:y:{z}:", "ключ{1}"]
"""Text of users that would steer a hash slot if it got into a key unhashed."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for this file."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def place(url: str, **changes: object) -> Settings:
    """Settings for another topology."""
    return msgspec.structs.replace(Settings(redis=url, prefix="topo", shards=8, lease=2.0, redis_timeout=2.0), **changes)


@pytest.fixture
async def clustered(cluster: Cluster) -> AsyncIterator[Store]:
    """A store on the cluster."""
    opened = await Store.open(place(cluster.url))
    yield opened
    await opened.close()


def keys_per_node(cluster: Cluster) -> list[int]:
    """How many keys each primary holds."""
    sizes: list[int] = []
    for node in cluster.nodes:
        with node.admin() as admin:
            sizes.append(int(admin.dbsize()))
    return sizes


async def test_a_life_on_a_cluster(clustered: Store, cluster: Cluster) -> None:
    """Create → claim → append → follow → cancel, on runs of every shard at once, with bells over all of them."""
    rung: set[str] = set()

    def on_ring(ring: Ring) -> None:
        rung.update(ring.runs)

    bells = asyncio.create_task(clustered.bells(on_ring).run())
    created = [await clustered.runs.create(new_run("clu", session_id=f"s{n}"), key=f"k{n}", fingerprint="f") for n in range(16)]
    hands = [await claim(clustered, "clu") for _ in created]
    assert {h.run_id for h in hands} == {c.record.run_id for c in created}
    for hand in hands:
        await hand.emit(("message.delta", {"message_id": "m", "text": "x"}), ("step.done", {"n": 1}))
    news = await clustered.events.tail({hand.run_id: 2 for hand in hands})
    assert {run_id: [e.sequence for e in events] for run_id, events in news.items()} == {hand.run_id: [3, 4] for hand in hands}
    for hand in hands[:8]:
        reply = await clustered.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
        assert reply.disposition == "cancellation_pending"
        assert (await hand.finish("cancelled")).disposition == "cancelled_before_effect"
    for hand in hands[8:]:
        assert (await hand.finish()).state == "succeeded"
    await wait_until(lambda: rung >= {hand.run_id for hand in hands}, "bells of every shard")
    page = await clustered.runs.page("dev", agent="clu", limit=100)
    assert len(page.runs) == 16
    assert min(keys_per_node(cluster)) > 0, "the shards are meant to spread over the nodes"
    bells.cancel()
    await asyncio.gather(bells, return_exceptions=True)
    assert (await clustered.sweep.once()).timers >= 16


async def test_viewers_follow_runs_of_every_shard(clustered: Store) -> None:
    """Create → claim → append → follow → cancel, each run with a viewer that begins before and one that comes in the middle."""
    hub = Hub(clustered, clustered.settings)
    await hub.start()
    try:
        for n in range(16):
            await clustered.runs.create(new_run("seen", session_id=f"v{n}"), key=None, fingerprint="")
        hands = [await claim(clustered, "seen") for _ in range(16)]
        assert len({hand.run_id[4:6] for hand in hands}) > 4
        viewers = [await Viewer(hub, hand.run_id).reaches(2) for hand in hands]
        for hand in hands:
            await hand.emit_many(5)
        viewers += [Viewer(hub, hand.run_id, after=3) for hand in hands]
        for hand in hands:
            await clustered.runs.cancel(hand.run_id, by="me", reason=None, key=None, fingerprint="")
            assert (await hand.finish("cancelled")).sequence == 9
        for viewer in viewers:
            await viewer.ends()
            viewer.check(9)
            assert viewer.slices[-1].terminal
    finally:
        await hub.close()


async def test_a_worker_finds_what_waits_in_every_shard(clustered: Store) -> None:
    """Runs that were there before it, whose hints it cannot have heard, and runs that come while it idles."""
    agents = Agents()

    @agents.agent("early")
    async def early(run: Run) -> str:
        return run.run_id

    before = [await create(clustered, "early") for _ in range(16)]
    worker = await RunningWorker(clustered.settings, agents, None).start()
    try:
        assert [await outcome(clustered, run_id) for run_id in before] == before
        late = [await create(clustered, "early") for _ in range(16)]
        assert [await outcome(clustered, run_id) for run_id in late] == late
    finally:
        await worker.close()


async def test_user_text_never_steers_a_slot(clustered: Store, cluster: Cluster) -> None:
    """Tenants, sessions and idempotency keys with braces and colons work, stay apart and are found again (O23)."""
    made: dict[str, str] = {}
    for text in HOSTILE:
        new = new_run("braces", tenant=f"tenant{text}", session_id=f"session{text}")
        first = await clustered.runs.create(new, key=text, fingerprint="f")
        again = await clustered.runs.create(new, key=text, fingerprint="f")
        assert (again.record.run_id, first.replayed, again.replayed) == (first.record.run_id, False, True)
        assert [r.run_id for r in (await clustered.runs.page(f"tenant{text}")).runs] == [first.record.run_id]
        assert [r.run_id for r in (await clustered.runs.page(f"tenant{text}", session_id=f"session{text}")).runs] == [first.record.run_id]
        made[text] = first.record.run_id
    assert len(set(made.values())) == len(HOSTILE)
    for run_id in made.values():
        assert (
            await clustered.runs.cancel(run_id, by="me", reason=None, key="{}", fingerprint="f")
        ).disposition == "cancelled_before_effect"
    for node in cluster.nodes:
        with node.admin() as admin:
            stats = admin.info("errorstats")
        assert "errorstat_CROSSSLOT" not in stats, stats


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Sentinels for one test."""
    with running_sentinels(tmp_path) as running:
        yield running


async def test_a_run_goes_on_after_a_failover(watched: Watched) -> None:
    """The primary is killed in the middle of a run; the same store finds the new one and the run ends there."""
    store = await Store.open(place(watched.url, lease=30.0))
    try:
        hand = await start(store, "sen")
        await hand.emit(("step.done", {"n": 1}))
        with watched.primary.admin() as admin:
            assert admin.wait(1, 5000) == 1
        watched.fail_over()

        async def goes_on() -> bool:
            try:
                await store.ping()
            except Exception as e:
                assert type(e).__name__ in ("StoreUnavailable", "ServerRefused"), e
                return False
            return True

        await wait_until(goes_on, "the store to find the new primary", timeout=20)
        await hand.emit(("step.done", {"n": 2}))
        assert (await hand.finish()).sequence == 5
        assert [e.sequence for e in await store.events.after(hand.run_id, 0, 100)] == [1, 2, 3, 4, 5]
        with redis.Redis(port=watched.replica.port) as there:
            assert there.hget(store.keys.run(hand.run_id), "state") == b"succeeded"
        assert await create(store, "sen")
    finally:
        await store.close()


async def test_sessions_of_every_shard_are_followed(clustered: Store) -> None:
    """Each session with two runs that write at once and a viewer of both; one read per shard brings what is new."""
    hub = Hub(clustered, clustered.settings)
    await hub.start()
    try:
        sessions = [f"both{n}" for n in range(8)]
        for session_id in [*sessions, *sessions]:
            await clustered.runs.create(new_run("both", session_id=session_id), key=None, fingerprint="")
        hands = [await claim(clustered, "both") for _ in range(16)]
        names = [clustered.keys.session_name("dev", session_id) for session_id in sessions]
        assert len({name[4:6] for name in names}) > 2
        viewers = [await Viewer(hub, name).reaches(4) for name in names]
        await asyncio.gather(*(hand.emit_many(10, size=3) for hand in hands))
        for hand in hands:
            await hand.finish()
        for viewer in viewers:
            await viewer.reaches(2 * 13)
            viewer.check(2 * 13)
            await viewer.leave()
    finally:
        await hub.close()
