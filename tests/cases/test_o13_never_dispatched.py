"""O13: a run that is visible is dispatched: nothing lies between the record and the queue, wherever the process or its link dies."""

import asyncio
import random
from typing import Any

import httpx
import pytest

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import post_run, snapshot
from ..support.factories import Proxies, Replicas, Workers
from ..support.invariants import read_runs
from ..support.launch import Launcher
from ..support.proxy import Proxy
from ..support.scale import rounds
from ..support.service import Service
from ..support.waiting import wait_until

agents = Agents()


@agents.agent("visible")
async def visible(run: Run) -> str:
    """Ends at once."""
    return run.run_id


def queued_runs(admin: Admin, settings: Settings) -> set[str]:
    """Every run that some queue entry names."""
    found: set[str] = set()
    for key in admin.scan_iter(match=f"{settings.prefix}:*:queue:*"):
        entries: Any = admin.xrange(key)
        found |= {fields[b"run"].decode() for _, fields in entries}
    return found


def check_dispatched(admin: Admin, settings: Settings) -> None:
    """Before anybody works: the queued runs and the queue's entries are the same set."""
    assert queued_runs(admin, settings) == {run.run_id for run in read_runs(admin, settings.prefix) if run.record["state"] == "queued"}


async def all_end(service: Service, admin: Admin, settings: Settings) -> None:
    """Every run that a GET can see becomes terminal."""

    def open_runs() -> list[str]:
        return [run.run_id for run in read_runs(admin, settings.prefix) if not run.ended]

    await wait_until(lambda: not open_runs(), "every run to end", timeout=20 + 3 * settings.lease)
    for run in read_runs(admin, settings.prefix):
        assert (await snapshot(service.client, run.run_id))["state"] == "succeeded"


class Lane:
    """An API behind a link that is cut during every POST.

    Attributes:
        lost: Keys whose POST failed.
        made: Key → run.
        hits: How often the cut came before the POST was answered.
    """

    def __init__(self, number: int, proxy: Proxy, api: Service, healthy: Service) -> None:
        self.number, self._proxy, self._api, self._healthy = number, proxy, api, healthy
        self.lost: list[str] = []
        self.made: dict[str, str] = {}
        self.hits = 0

    async def post(self, turn: int, *, outage: bool) -> None:
        """Cut after the k-th command, k random, before or after it was carried out; then send the same again elsewhere."""
        key = f"{self.number}-{turn}"
        trap = self._proxy.set_trap(random.randint(1, 4), forward=random.random() < 0.5, match=(b"EVAL", b"HGETALL"))
        request = asyncio.create_task(post_run(self._api.client, "visible", key=key))
        if outage:
            await wait_until(lambda: trap.sprung or request.done(), "the trap")
            self._proxy.refusing = trap.sprung
            self._proxy.cut()
        answer = await request
        self.hits += trap.sprung
        assert answer.status_code in (201, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["code"] == "store_unavailable" and "retry-after" in answer.headers
            self.lost.append(key)
        self._proxy.refusing = False
        again = await post_run(self._healthy.client, "visible", key=key)
        assert again.status_code == 200 or (answer.status_code == 503 and again.status_code == 201), again.text
        if answer.status_code == 201:
            assert again.json()["run_id"] == answer.json()["run_id"]
        self.made[key] = again.json()["run_id"]


@pytest.mark.parametrize(("outage", "posts"), [(False, rounds(72)), (True, rounds(24))], ids=["one cut", "outage"])
async def test_a_link_cut_at_every_command(
    replicas: Replicas,
    proxies: Proxies,
    workers: Workers,
    admin: Admin,
    settings: Settings,
    outage: bool,
    posts: int,
) -> None:
    """POSTs, each cut at a random Redis command or its answer: success, or a typed 503 and the same key brings exactly one run.

    96 in all by default, more than the case's 300 with REATTACH_TEST_LONG=4.
    """
    healthy = await replicas()
    lanes: list[Lane] = []
    for number in range(6):
        proxy = await proxies(settings.redis, counting=True)
        lanes.append(Lane(number, proxy, await replicas(redis=proxy.redis, redis_timeout=0.5), healthy))

    async def drive(lane: Lane) -> None:
        for turn in range(posts // len(lanes)):
            await lane.post(turn, outage=outage)

    await asyncio.gather(*(drive(lane) for lane in lanes))
    assert sum(lane.hits for lane in lanes) > posts / 4, "the traps must have sprung"
    assert not outage or sum(len(lane.lost) for lane in lanes) > posts / 10, "some POSTs must have failed"
    check_dispatched(admin, settings)
    made = {run_id for lane in lanes for run_id in lane.made.values()}
    assert {run.run_id for run in read_runs(admin, settings.prefix)} == made and len(made) == posts
    await workers(agents, concurrency=50)
    await all_end(healthy, admin, settings)
    assert queued_runs(admin, settings) == set(), "an entry without a run that wants it"


async def test_an_api_killed_while_it_creates(
    launch: Launcher, service: Service, workers: Workers, admin: Admin, settings: Settings
) -> None:
    """Kill -9 of the API at random moments of 25 POSTs at once; each retry elsewhere ends in one run, which becomes terminal."""
    api = launch.api()
    keys: list[str] = []
    for turn in range(rounds(2)):
        if turn:
            api.start()
        batch = [f"{turn}-{n}" for n in range(25)]

        async def post(key: str) -> None:
            try:
                answer = await post_run(service.client, "visible", key=key, on=api.base_url)
                assert answer.status_code == 201, answer.text
            except httpx.TransportError:
                pass

        requests = [asyncio.create_task(post(key)) for key in batch]
        await asyncio.sleep(random.uniform(0, 0.06))
        api.kill9()
        await asyncio.gather(*requests)
        keys += batch
    check_dispatched(admin, settings)
    made = [answer.json()["run_id"] for answer in await asyncio.gather(*(post_run(service.client, "visible", key=key) for key in keys))]
    assert len(set(made)) == len(keys) == len(list(read_runs(admin, settings.prefix)))
    await workers(agents, lease=15.0)
    await all_end(service, admin, settings)
