"""O12: one click, several runs: however often a creation is sent, with one key there is one run."""

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach import Agents, Run
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import check_problem, ended, post_run, snapshot
from ..support.client import make_client
from ..support.factories import Proxies, Replicas, Workers
from ..support.invariants import read_runs
from ..support.launch import environment
from ..support.nursery import Newborn, Nursery
from ..support.processes import free_port
from ..support.scale import rounds
from ..support.service import Service
from ..support.waiting import wait_until

effects: list[str] = []
agents = Agents()


@agents.agent("click")
async def click(run: Run) -> str:
    """A run whose only deed is counted outside."""

    async def deed(**_: Any) -> str:
        effects.append(run.run_id)
        return "done"

    await run.effect("door.open", deed, {})
    return "opened"


@pytest.fixture(autouse=True)
def no_effects() -> None:
    """Count anew in every test."""
    effects.clear()


async def only_run(service: Service) -> str:
    """The one run there is."""
    runs = (await service.client.get("/agent-runs", params={"agent": "click"})).json()["runs"]
    assert len(runs) == 1, runs
    return runs[0]["run_id"]


def check_replayed(answers: list[httpx.Response], run_id: str, created: int = 1) -> None:
    """One answer says created, the others say which run it was; all name the same one."""
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * (len(answers) - created) + [201] * created
    assert {answer.json()["run_id"] for answer in answers} == {run_id}
    for answer in answers:
        assert ("idempotency-replayed" in answer.headers) == (answer.status_code == 200)
        assert answer.headers["location"].endswith(f"/agent-runs/{run_id}")


async def test_many_clicks_at_once_on_two_replicas(replicas: Replicas, workers: Workers) -> None:
    """A: 32 parallel POSTs with one key over two APIs are one run with one effect."""
    apis: list[Service] = [await replicas(), await replicas()]
    await workers(agents)
    answers = await asyncio.gather(*(post_run(apis[n % 2].client, "click", key="a") for n in range(32)))
    run_id = await only_run(apis[0])
    check_replayed(list(answers), run_id)
    await ended(apis[1].client, run_id)
    assert effects == [run_id]


async def test_an_answer_that_got_lost(service: Service, proxies: Proxies, workers: Workers) -> None:
    """B: the POST arrives, its answer is cut; the retry names the run that exists."""
    await workers(agents)
    proxy = await proxies(service.base_url)
    proxy.drop_replies(1)
    with pytest.raises(httpx.TransportError):
        await post_run(service.client, "click", key="b", on=proxy.http)
    again = await post_run(service.client, "click", key="b", on=proxy.http)
    run_id = await only_run(service)
    check_replayed([again], run_id, created=0)
    await ended(service.client, run_id)
    assert effects == [run_id]


async def test_the_same_key_with_another_payload(service: Service) -> None:
    """C: a typed conflict, 422 by the contract; the original is untouched."""
    first = await post_run(service.client, "click", {"amount": 40}, key="c")
    before = await snapshot(service.client, first.json()["run_id"])
    for other in ({"amount": 41}, {"amount": "40"}, {"amount": 40, "x": None}, {}):
        check_problem(await post_run(service.client, "click", other, key="c"), 422, "idempotency_key_reused")
    check_problem(await post_run(service.client, "other", {"amount": 40}, key="c"), 422, "idempotency_key_reused")
    assert await snapshot(service.client, before["run_id"]) == before
    assert await only_run(service) == before["run_id"]


async def test_the_same_json_in_another_spelling(service: Service) -> None:
    """D: bodies are compared as parsed JSON: order, spacing, escapes and number spelling do not count."""
    bodies = [
        b'{"agent":"click","input":{"a":1,"b":[1.5,"\\u00e9"]}}',
        b'{ "input" : { "b":[1.50, "\xc3\xa9"],\n"a":1 }, "agent":"click" }',
    ]
    headers = {"idempotency-key": "d", "content-type": "application/json"}
    answers = [await service.client.post("/agent-runs", content=body, headers=headers) for body in bodies]
    check_replayed(answers, await only_run(service))


async def test_a_retry_long_after(replicas: Replicas, workers: Workers) -> None:
    """E: after the run is terminal and every API was restarted, the key still names it and nothing runs again."""
    first = await replicas()
    await workers(agents)
    created = await post_run(first.client, "click", key="e")
    run_id = created.json()["run_id"]
    await ended(first.client, run_id)
    await first.store.sweep.once()
    await first.close()
    second = await replicas()
    again = await post_run(second.client, "click", key="e")
    check_replayed([again], run_id, created=0)
    assert again.json()["state"] == "succeeded"
    assert effects == [run_id]
    check_problem(await post_run(second.client, "click", {"other": 1}, key="e"), 422, "idempotency_key_reused")


class Mortal:
    """An API process that lives for one request."""

    def __init__(self, nursery: Nursery, settings: Settings, log: Path) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self.process: Newborn = nursery.start("serve", "--port", str(port), env=environment(settings), log=log)
        self.client = make_client(self.url)

    async def ready(self) -> bool:
        """Whether it answers; a connection to it is open then."""
        try:
            return (await self.client.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def killed_while_it_creates(self, key: str) -> httpx.Response | None:
        """Send a POST, kill the process within 15 ms, and give what answer came."""
        await wait_until(self.ready, "the API to be ready")
        request = asyncio.create_task(post_run(self.client, "click", key=key))
        await asyncio.sleep(random.uniform(0, 0.015))
        self.process.kill9()
        try:
            return await request
        except httpx.TransportError:
            return None
        finally:
            await self.client.aclose()
            await asyncio.to_thread(self.process.close)


async def test_an_api_killed_right_after_the_post_arrived(
    service: Service, nursery: Nursery, workers: Workers, settings: Settings, admin: Admin, tmp_path: Path
) -> None:
    """F: kill -9 at 0 to 15 ms after the POST, retry on another API: one run each, which ends. 40 rounds, 200 with REATTACH_TEST_LONG=5."""
    told: dict[str, str] = {}

    async def lane(number: int) -> None:
        for turn in range(rounds(10)):
            key = f"{number}-{turn}"
            answer = await Mortal(nursery, settings, tmp_path / f"api-{key}.log").killed_while_it_creates(key)
            assert answer is None or answer.status_code == 201, answer.text
            again = await post_run(service.client, "click", key=key)
            # A run that was made is the one the key names; one that nobody made is made now.
            assert again.status_code == 200 or (answer is None and again.status_code == 201), again.text
            assert answer is None or answer.json()["run_id"] == again.json()["run_id"]
            told[key] = again.json()["run_id"]

    await asyncio.gather(*(lane(number) for number in range(4)))
    await workers(agents)
    assert {run.run_id for run in read_runs(admin, settings.prefix)} == set(told.values())
    for run_id in told.values():
        assert (await ended(service.client, run_id))["state"] == "succeeded"
    assert sorted(effects) == sorted(told.values()) and len(set(effects)) == len(told) == 4 * rounds(10)
