"""Agents of the same name in many tenants: workers far away get their own tenant's runs, and learn of no other."""

import asyncio

import msgspec

from reattach.core.settings import Settings

from ...support import drive
from ...support.factories import OwnRedis, Replicas
from ...support.monitor import monitored
from ..test_auth import ByHeader


async def test_a_queue_with_runs_of_many_tenants(own_redis: OwnRedis, settings: Settings, replicas: Replicas) -> None:
    """Each worker gets its own tenant's, however many others stand before it; those stay as they are, and cost nothing while they wait."""
    server = own_redis()
    service = await replicas(msgspec.structs.replace(settings, redis=server.url, shards=1), authenticator=ByHeader())
    store = service.store
    foreign = [await drive.create(store, tenant="other") for _ in range(250)]
    mine = await drive.create(store)

    async def claimed(who: str, wait: float) -> str | None:
        body = {"agents": ["support"], "worker": "far", "wait": wait}
        answer = await service.client.post("/worker/claims", json=body, headers={"x-who": who})
        return answer.json()["run"]["run_id"] if answer.status_code == 200 else None

    assert await claimed("dev/ann", 0) == mine
    waiting = asyncio.create_task(claimed("dev/ann", 20))
    assert await claimed("third/eve", 0) is None
    assert await claimed("other/bob", 0) == foreign[0]
    with monitored(server.port) as feed:
        assert await claimed("third/eve", 0.5) is None
        feed.expect(b"that-was-all")
        await store.door.call("GET", "{00}that-was-all")
        feed.wait_for(b"that-was-all")
    assert len([call for call in feed.calls if call.words[0].upper() == b"XRANGE"]) <= 4
    second = await drive.create(store)
    assert await waiting == second
    # One that any worker takes is the oldest that nobody has.
    assert (await drive.claim(store)).run_id == foreign[1]
    assert [(await store.runs.load(run_id)).attempt for run_id in foreign[2:]] == [0] * 248
