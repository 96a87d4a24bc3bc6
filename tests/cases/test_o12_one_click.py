"""O12: one click, several runs: however often a creation is sent, with one key there is one run."""

import asyncio
from typing import Any

import httpx
import pytest

from reattach import Agents, Run

from ..support.calls import check_problem, ended, post_run, snapshot
from ..support.factories import Proxies, Replicas, Workers
from ..support.service import Service

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
