"""O13: a run that is visible is dispatched: nothing lies between the record and the queue, wherever the process or its link dies."""

import asyncio
import random
from typing import Any

import httpx
import pytest

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import ended, post_run
from ..support.factories import Proxies, Replicas, Workers
from ..support.invariants import read_runs
from ..support.launch import Launcher
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
    runs = list(read_runs(admin, settings.prefix))
    shown = await asyncio.gather(*(ended(service.client, run.run_id) for run in runs))
    assert {snapshot["state"] for snapshot in shown} == {"succeeded"}


@pytest.mark.parametrize("outage", [False, True], ids=["one cut", "outage"])
async def test_a_link_cut_at_every_command(
    replicas: Replicas,
    proxies: Proxies,
    workers: Workers,
    admin: Admin,
    settings: Settings,
    redis_url: str,
    outage: bool,
) -> None:
    """The k-th Redis command of a POST, or its answer, is cut: success, or a typed 503 and the same key brings exactly one run."""
    healthy = await replicas()

    async def one(k: int, forward: bool) -> str | None:
        proxy = await proxies(redis_url, counting=True)
        api = await replicas(redis=proxy.redis, redis_timeout=0.5)
        key = f"{k}-{forward}"
        trap = proxy.set_trap(k, forward=forward, match=b"EVAL")
        request = asyncio.create_task(post_run(api.client, "visible", key=key))
        if outage:
            await wait_until(lambda: trap.sprung or request.done(), "the trap")
            proxy.refusing = trap.sprung
            proxy.cut()
        answer = await request
        assert answer.status_code in (201, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["code"] == "store_unavailable" and "retry-after" in answer.headers
        proxy.refusing = False
        again = await post_run(healthy.client, "visible", key=key)
        assert again.status_code in (200, 201), again.text
        if answer.status_code == 201:
            assert again.json()["run_id"] == answer.json()["run_id"]
        await api.close()
        return again.json()["run_id"] if trap.sprung else None

    hit = await asyncio.gather(*(one(k, forward) for k in (1, 2, 3, 4) for forward in (True, False)))
    assert len({run_id for run_id in hit if run_id}) >= 4, "the traps must have sprung"
    check_dispatched(admin, settings)
    assert len(list(read_runs(admin, settings.prefix))) == len(hit)
    await workers(agents, lease=15.0)
    await all_end(healthy, admin, settings)


async def test_an_api_killed_while_it_creates(
    launch: Launcher, service: Service, workers: Workers, admin: Admin, settings: Settings
) -> None:
    """Also O12 F: kill -9 of the API at random moments of many POSTs; each retry elsewhere ends in one run, which becomes terminal."""
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
