"""Sessions over HTTP: made, listed, shown, and what a second run does to a first."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from ..support.calls import check_problem, new_run_id, post_run
from ..support.drive import claim, create
from ..support.service import Service
from ..support.waiting import wait_until


async def shown(service: Service, session_id: str, **params: str) -> dict[str, Any]:
    """``GET /sessions/{id}``, which must work."""
    response = await service.client.get(f"/sessions/{quote(session_id, safe='')}", params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_session_is_made_once(service: Service) -> None:
    """The same facts find the same session, other facts are refused, and a name is made up where none is given."""
    body = {"session_id": "talk", "policy": "queue", "metadata": {"n": 9007199254740993}}
    first = await service.client.post("/sessions", json=body)
    assert first.status_code == 201 and first.headers["location"] == "/sessions/talk" and first.headers["etag"] == '"0"'
    assert b'"metadata":{"n":9007199254740993}' in first.content
    again = await service.client.post("/sessions", json=body)
    assert again.status_code == 200 and again.headers["idempotency-replayed"] == "true" and again.content == first.content
    check_problem(await service.client.post("/sessions", json=body | {"policy": "reject"}), 409, "session_exists")
    made_up = (await service.client.post("/sessions")).json()
    assert made_up["session_id"].startswith("session_") and len(made_up["session_id"]) == 34
    assert made_up["policy"] == "parallel" and made_up["runs"] == [] and made_up["sequence"] == 0 and made_up["earliest_sequence"] == 1


async def test_an_idempotency_key_makes_one_session(service: Service) -> None:
    """Also where no name was given; with another body it is refused."""
    headers = {"idempotency-key": "k"}
    first = await service.client.post("/sessions", json={"policy": "queue"}, headers=headers)
    again = await service.client.post("/sessions", json={"policy": "queue"}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    check_problem(await service.client.post("/sessions", json={"policy": "reject"}, headers=headers), 422, "idempotency_key_reused")
    check_problem(
        await service.client.post("/sessions", json={"session_id": "x", "policy": "queue"}, headers=headers), 422, "idempotency_key_reused"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"policy": "sometimes"}, "policy"),
        ({"session_id": ""}, "session_id"),
        ({"session_id": "a b"}, "session_id"),
        ({"session_id": ".."}, "session_id"),
        ({"x": 1}, "x"),
        ({"metadata": []}, "metadata"),
    ],
)
async def test_what_cannot_be_a_session(service: Service, body: dict[str, Any], field: str) -> None:
    """Refused with the field's name."""
    problem = check_problem(await service.client.post("/sessions", json=body), 422, "invalid_request")
    assert problem["field"].startswith(field)


async def test_what_is_shown(service: Service) -> None:
    """Runs in their order, which of them go on, their messages, and a tag that changes with the sequence."""
    first = await new_run_id(service.client, session_id="talk")
    hand = await claim(service.store)
    await hand.emit(("message.completed", {"message_id": "m1", "role": "assistant", "content": [{"type": "text", "text": "Hi"}]}))
    await hand.finish(outcome={"done": True})
    second = await new_run_id(service.client, session_id="talk", parent_run_id=first)
    session = await shown(service, "talk")
    assert [run["run_id"] for run in session["runs"]] == [first, second]
    assert [(run["state"], run["sequence"], run["held"]) for run in session["runs"]] == [("succeeded", 4, False), ("queued", 1, False)]
    assert session["active"] == [second] and session["sequence"] == 5 and session["next_before"] is None
    assert session["messages"] == [
        {"run_id": first, "message_id": "m1", "role": "assistant", "status": "completed", "content": [{"type": "text", "text": "Hi"}]}
    ]
    assert session["links"] == {"self": "/sessions/talk", "events": "/sessions/talk/events"}
    known = await service.client.get("/sessions/talk", headers={"if-none-match": '"5"'})
    assert known.status_code == 304 and known.headers["etag"] == '"5"' and known.content == b""
    one = await shown(service, "talk", limit="1")
    assert [run["run_id"] for run in one["runs"]] == [second] and one["next_before"] == second and one["active"] == [second]
    older = await shown(service, "talk", limit="1", before=second)
    assert [run["run_id"] for run in older["runs"]] == [first] and older["next_before"] is None and older["active"] == [second]
    assert older["messages"] == session["messages"]


async def test_waiting_for_news_of_a_session(service: Service) -> None:
    """An answer that is held comes with the next event of any of its runs, also of one that begins meanwhile."""
    await new_run_id(service.client, session_id="talk")

    waiting = asyncio.create_task(service.client.get("/sessions/talk", params={"wait": "20"}, headers={"if-none-match": '"1"'}))
    await wait_until(lambda: service.hub.stats().followers == 1, "the request to wait")
    await new_run_id(service.client, session_id="talk")
    response = await waiting
    assert response.status_code == 200 and response.json()["sequence"] == 2
    quiet = await service.client.get("/sessions/talk", params={"wait": "0.05"}, headers={"if-none-match": '"2"'})
    assert quiet.status_code == 304


async def test_sessions_are_listed_newest_first(service: Service) -> None:
    """Those that were made and those that their first run made, in pages, and nobody else's."""
    names = [f"talk-{n}" for n in range(7)]
    for n, name in enumerate(names):
        if n % 2:
            assert (await service.client.post("/sessions", json={"session_id": name})).status_code == 201
        else:
            await new_run_id(service.client, session_id=name)
    found: list[str] = []
    before: str | None = None
    for _ in range(10):
        params = {"limit": "3"} | ({} if before is None else {"before": before})
        page = (await service.client.get("/sessions", params=params)).json()
        found += [session["session_id"] for session in page["sessions"]]
        before = page["next_before"]
        if before is None:
            break
    assert sorted(found) == names
    assert (await service.client.get("/sessions", params={"before": "nobody"})).json() == {"sessions": [], "next_before": None}


@pytest.mark.parametrize("name", ["a/b", "a/events", "a%2Fb", "?#&=", "%", "...", "a//b", "tenant/../x", "/", "e/"])
async def test_any_name_a_run_can_have(service: Service, name: str) -> None:
    """What a run's session_id may be, a path can say; its links lead there."""
    run_id = await new_run_id(service.client, session_id=name)
    [listed] = (await service.client.get("/sessions")).json()["sessions"]
    raw = listed["links"]["self"]
    session = (await service.client.get(service.base_url + raw)).json()
    assert session["session_id"] == name and [run["run_id"] for run in session["runs"]] == [run_id]
    page = (await service.client.get(service.base_url + listed["links"]["events"], params={"limit": "9"})).json()
    assert [event["run_id"] for event in page["events"]] == [run_id]


async def test_a_session_that_is_not_there(service: Service) -> None:
    """Typed, on every address; a path that nobody serves is told so."""
    for path in ("/sessions/nobody", "/sessions/nobody/events"):
        check_problem(await service.client.get(path), 404, "session_not_found")
    check_problem(await service.client.get("/sessions/a/b/c"), 404, "not_found")
    check_problem(await service.client.post("/sessions/nobody"), 405, "method_not_allowed")


async def test_a_busy_session_refuses(service: Service) -> None:
    """With reject, a second run is refused and told which one goes on; when that ended the same key makes the run."""
    await service.client.post("/sessions", json={"session_id": "talk", "policy": "reject"})
    first = await new_run_id(service.client, session_id="talk")
    refused = await post_run(service.client, key="k", session_id="talk")
    problem = check_problem(refused, 409, "session_busy")
    assert problem["active"] == [first]
    await service.client.post(f"/agent-runs/{first}/cancel")
    made = await post_run(service.client, key="k", session_id="talk")
    assert made.status_code == 201 and (await shown(service, "talk"))["active"] == [made.json()["run_id"]]


async def test_a_parent_is_a_run_of_the_same_tenant(service: Service) -> None:
    """Anything else is refused, and says the same of a run that is somebody else's."""
    foreign = await create(service.store, tenant="elsewhere")
    for parent in ("run_00" + "z" * 24, foreign):
        problem = check_problem(await post_run(service.client, parent_run_id=parent), 422, "invalid_request")
        assert problem["field"] == "parent_run_id"
    await service.store.runs.cancel(foreign, by="x", reason=None, key=None, fingerprint="")
