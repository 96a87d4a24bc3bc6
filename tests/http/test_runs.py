"""Creating, listing and showing runs."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reattach.store import Store

from ..support import drive
from ..support.service import Service


async def post(service: Service, body: Any = None, **headers: str) -> httpx.Response:
    """Create a run over HTTP."""
    body = {"agent": "support", "input": {}} if body is None else body
    return await service.client.post("/agent-runs", json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_creating_answers_with_the_snapshot_and_where_it_is(service: Service) -> None:
    """201, Location, ETag and the whole snapshot of a queued run."""
    answer = await post(service, {"agent": "support", "input": {"ticket": 981}, "session_id": "s1", "metadata": {"a": []}})
    run = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/agent-runs/{run['run_id']}" == run["links"]["self"]
    assert answer.headers["etag"] == '"1"'
    assert answer.headers["content-type"] == "application/json"
    assert (run["state"], run["sequence"], run["tenant"], run["initiator"]) == ("queued", 1, "dev", "developer")
    assert (run["input"], run["metadata"], run["session_id"]) == ({"ticket": 981}, {"a": []}, "s1")


async def test_the_same_key_and_body_find_the_same_run(service: Service) -> None:
    """200 with Idempotency-Replayed, also for another spelling of the same JSON."""
    first = await post(service, {"agent": "support", "input": {"a": 1, "b": 2}}, idempotency_key="k 1")
    again = await service.client.post(
        "/agent-runs",
        content=b'{ "input": {"b": 2.0, "a": 1}, "agent": "support" }',
        headers={"content-type": "application/json", "idempotency-key": "k 1"},
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert first.json()["run_id"] == again.json()["run_id"]
    assert again.headers["location"] == first.headers["location"]


async def test_the_same_key_with_another_body_is_refused(service: Service) -> None:
    """422 idempotency_key_reused, and the first run is untouched."""
    first = await post(service, idempotency_key="k")
    other = await post(service, {"agent": "support", "input": {"x": 1}}, idempotency_key="k")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert (await service.client.get(first.headers["location"])).json()["sequence"] == 1


async def test_many_posts_with_one_key_are_one_run(replicas: Callable[..., Any]) -> None:
    """32 at once over two replicas."""
    one, two = await replicas(), await replicas()
    answers = await asyncio.gather(*(post(s, idempotency_key="k") for s in [one, two] * 16))
    assert len({a.json()["run_id"] for a in answers}) == 1
    assert sorted(a.status_code for a in answers) == [200] * 31 + [201]


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9", "tab\there"])
async def test_a_key_must_be_printable_and_short(service: Service, key: str) -> None:
    """1 to 255 printable ASCII characters, nothing else."""
    answer = await service.client.post(
        "/agent-runs", json={"agent": "support", "input": {}}, headers=[(b"idempotency-key", key.encode("latin-1"))]
    )
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "invalid_request", "Idempotency-Key")


async def test_a_key_of_255_characters_is_allowed(service: Service) -> None:
    """The longest key."""
    assert (await post(service, idempotency_key="~" * 255)).status_code == 201


async def test_two_different_keys_in_one_request_are_refused(service: Service) -> None:
    """Neither would be the one that names the run."""
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    answer = await service.client.post("/agent-runs", json={"agent": "support", "input": {}}, headers=headers)
    assert answer.status_code == 422


async def test_numbers_and_empty_lists_come_back_as_they_were(service: Service) -> None:
    """Input is opaque: byte for byte the same, in the snapshot too (case O24)."""
    text = (
        '{"n":9007199254740993,"m":9223372036854775807,"u":18446744073709551615,"b":100000000000000000000000,"f":0.1,"e":[],"o":{},'
        '"z":null,"x":-0.0,"t":"1e16"}'
    )
    answer = await service.client.post(
        "/agent-runs", content=f'{{"agent":"support","input":{text}}}', headers={"content-type": "application/json"}
    )
    assert f'"input":{text}' in answer.text
    assert f'"input":{text}' in (await service.client.get(answer.headers["location"])).text


async def test_a_run_may_ask_for_less_retention_only(service: Service) -> None:
    """What is left out is the deployment's, never more; more is refused with the limit."""
    run = (await post(service, {"agent": "support", "input": {}, "retention": {"run_ms": 60_000}})).json()
    record = await service.store.runs.load(run["run_id"])
    assert (record.retention.run_ms, record.retention.events_ms, record.retention.deltas_ms) == (60_000, 60_000, 60_000)
    more = await post(service, {"agent": "support", "input": {}, "retention": {"deltas_ms": 600_001}})
    assert (more.status_code, more.json()["field"], more.json()["maximum"]) == (422, "retention.deltas_ms", 600_000)


async def test_listing_is_newest_first_and_paged(service: Service) -> None:
    """Every run once over all pages, filtered by state, session and agent."""
    made = [(await post(service, {"agent": "support", "input": {}, "session_id": f"s{n % 2}"})).json()["run_id"] for n in range(5)]
    seen: list[str] = []
    before: dict[str, str] = {}
    while True:
        page = (await service.client.get("/agent-runs", params={"limit": "2", **before})).json()
        seen += [run["run_id"] for run in page["runs"]]
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    assert len(seen) == 5 and set(seen) == set(made)
    stamps = [(await service.store.runs.load(run_id)).created_at for run_id in seen]
    assert stamps == sorted(stamps, reverse=True)

    async def ids(**query: str) -> set[str]:
        return {run["run_id"] for run in (await service.client.get("/agent-runs", params=query)).json()["runs"]}

    assert await ids(session_id="s1") == {made[1], made[3]}
    assert await ids(state="queued", agent="support") == set(made)
    assert await ids(state="running") == await ids(agent="other") == set()


@pytest.mark.parametrize(
    "query",
    ["state=done", "state=null", "limit=0", "limit=201", "limit=x", "before=-5", "colour=red", "limit=1&limit=2", "session_id=a%0A"],
)
async def test_listing_refuses_what_it_does_not_know(service: Service, query: str) -> None:
    """Unknown, doubled and malformed parameters name themselves."""
    answer = await service.client.get(f"/agent-runs?{query}")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "invalid_request", query.partition("=")[0])


async def test_a_known_snapshot_is_not_sent_again(service: Service, store: Store) -> None:
    """304 exactly while nothing is newer; lists, weak tags and * are understood."""
    run_id = await drive.create(store)
    path = f"/agent-runs/{run_id}"
    tag = (await service.client.get(path)).headers["etag"]
    for header in (tag, f"W/{tag}", f'"7", {tag}', "*"):
        answer = await service.client.get(path, headers={"if-none-match": header})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag), header
    assert (await service.client.get(path, headers={"if-none-match": '"7"'})).status_code == 200
    hand = await drive.claim(store)
    await hand.emit(("step.done", {}))
    fresh = await service.client.get(path, headers={"if-none-match": tag})
    assert (fresh.status_code, fresh.headers["etag"], fresh.json()["state"]) == (200, '"3"', "running")


async def test_head_is_get_without_a_body(service: Service, store: Store) -> None:
    """Same status and headers."""
    run_id = await drive.create(store)
    for path in (f"/agent-runs/{run_id}", "/agent-runs", "/limits", "/healthz", "/readyz", "/openapi.json"):
        head, get = await service.client.head(path), await service.client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b"") and get.content, path
        assert head.headers["content-type"] == get.headers["content-type"]


async def test_a_waiting_get_answers_when_something_happens(service: Service, store: Store) -> None:
    """?wait holds the answer, and not longer than needed."""
    run_id = await drive.create(store)
    waiting = asyncio.create_task(service.client.get(f"/agent-runs/{run_id}?wait=20", headers={"if-none-match": '"1"'}))
    hand = await drive.claim(store)
    answer = await asyncio.wait_for(waiting, 5)
    assert answer.status_code == 200 and answer.json()["sequence"] >= 2
    waiting = asyncio.create_task(service.client.get(f"/agent-runs/{run_id}?wait=20"))
    await hand.finish(outcome={"ok": True})
    answer = await asyncio.wait_for(waiting, 5)
    assert (answer.json()["state"], answer.json()["outcome"]) == ("succeeded", {"ok": True})


async def test_a_waiting_get_ends_with_what_there_is(service: Service, store: Store) -> None:
    """After the time: 304 for who has everything, else the snapshot; a finished run is not waited for."""
    run_id = await drive.create(store)
    path = f"/agent-runs/{run_id}?wait=0.2"
    assert (await service.client.get(path, headers={"if-none-match": '"1"'})).status_code == 304
    assert (await service.client.get(path)).json()["sequence"] == 1
    assert (await service.client.get(path, headers={"if-none-match": '"0"'})).status_code == 200
    await (await drive.claim(store)).finish()
    answer = await asyncio.wait_for(service.client.get(f"/agent-runs/{run_id}?wait=60"), 5)
    assert answer.json()["state"] == "succeeded"


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "soon"])
async def test_the_wait_has_a_stated_maximum(service: Service, store: Store, wait: str) -> None:
    """Beyond it the request is refused, not shortened silently."""
    answer = await service.client.get(f"/agent-runs/{await drive.create(store)}?wait={wait}")
    assert (answer.status_code, answer.json()["field"]) == (422, "wait") and "60" in answer.json()["detail"]
