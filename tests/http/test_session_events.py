"""A session's events over HTTP: a stream and pages that keep the promises of a run's own, under the session's own sequence."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from reattach.core.run import Retention
from reattach.store import Store

from ..support.calls import check_problem, new_run_id
from ..support.drive import claim, create, start
from ..support.factories import Replicas
from ..support.logs import LogCapture
from ..support.service import Service
from ..support.waiting import wait_until
from .listeners import Listener

Listen = Callable[..., Listener]


@pytest.fixture
async def listen(task_guard: None) -> AsyncIterator[Listen]:
    """A function that makes listeners; they are closed with the test."""
    made: list[Listener] = []

    def listening(service: Service, session_id: str = "talk", **options: Any) -> Listener:
        made.append(Listener(service.client, session_id, **options))
        return made[-1]

    yield listening
    for listener in made:
        await listener.close()


async def page(service: Service, **params: Any) -> dict[str, Any]:
    """A JSON page of the session's events."""
    response = await service.client.get("/sessions/talk/events", params={"limit": "100", **params})
    assert response.status_code == 200, response.text
    return response.json()


async def test_one_stream_over_runs_that_come_and_go(service: Service, store: Store, listen: Listen) -> None:
    """A page needs one connection for a session, also for runs that begin later; it ends with none of them."""
    hand = await start(store, session_id="talk")
    listener = listen(service)
    await listener.open()
    await listener.until(2)
    await hand.emit_many(3)
    await hand.finish()
    later = await start(store, session_id="talk")
    await later.emit_many(2)
    await listener.until(10)
    listener.check(1, 10)
    assert listener.runs() == {hand.run_id: [1, 2, 3, 4, 5, 6], later.run_id: [1, 2, 3, 4]}
    assert listener.stream.ended is None and not listener.control
    await later.finish()
    await listener.until(11)


async def test_two_replicas_and_cuts_anywhere(replicas: Replicas, store: Store, listen: Listen) -> None:
    """Four runs write at once while the client is cut again and again and comes back to the other replica."""
    services = [await replicas(), await replicas()]
    hands = [await start(store, session_id="talk") for _ in range(4)]
    listener = listen(services[0])
    writing = asyncio.gather(*(hand.emit_many(60, size=3) for hand in hands))
    for n in range(8):
        await listener.open(on=services[n % 2].base_url)
        await listener.until(8 + 25 * n)
        await listener.cut()
    await writing
    for hand in hands:
        await hand.finish()
    await listener.open(on=services[0].base_url)
    await listener.until(4 * 63)
    listener.check(1, 4 * 63)
    assert {run_id: len(own) for run_id, own in listener.runs().items()} == {hand.run_id: 63 for hand in hands}


async def test_pages_are_the_same_events(service: Service, store: Store, listen: Listen) -> None:
    """Page by page, with the session's sequence beside the run's; a page that waits comes with the next event of any run."""
    hand = await start(store, session_id="talk")
    await hand.emit_many(7, size=2)
    other = await start(store, session_id="talk")
    listener = await listen(service).open()
    await listener.until(11)
    found: list[dict[str, Any]] = []
    after = "0"
    while len(found) < 11:
        part = await page(service, after=after, limit="3")
        assert part["latest_sequence"] == 11 and part["state"] == "active" and len(part["events"]) <= 3
        found += part["events"]
        after = part["next_cursor"]
    assert [event.pop("session_sequence") for event in found] == list(range(1, 12))
    assert found == listener.events
    waiting = asyncio.create_task(page(service, after=after, wait="20"))
    await wait_until(lambda: service.hub.stats().followers == 2, "the request to wait")
    await other.emit_many(1)
    assert [event["session_sequence"] for event in (await waiting)["events"]] == [12]
    assert (await page(service, after="12", wait="0.05"))["events"] == []
    for each in (hand, other):
        await each.finish()
    assert (await page(service, after="0"))["state"] == "idle"


@pytest.mark.parametrize("cursor", ["x", "-1", "01", "184:", "run_07" + "0" * 24 + ":1", "ses_07:1", "ses_1", "1.0", str(2**53)])
async def test_cursors_of_no_form(service: Service, store: Store, cursor: str) -> None:
    """Neither 184 nor ses_…:184: refused, in the header and in the query, for streams and pages."""
    await create(store, session_id="talk")
    for accept in ("text/event-stream", "application/json"):
        for headers, params in (({"last-event-id": cursor}, {}), ({}, {"after": cursor})):
            answer = await service.client.get("/sessions/talk/events", params=params, headers={"accept": accept, **headers})
            check_problem(answer, 400, "malformed_cursor")


async def test_cursors_on_either_side_of_every_bound(service: Service, store: Store, listen: Listen) -> None:
    """Another session's is told apart; ahead of the latest is refused with what there is; the latest itself waits for news."""
    hand = await start(store, session_id="talk")
    await create(store, session_id="other")
    name = (await page(service))["next_cursor"].partition(":")[0]
    other = (await service.client.get("/sessions/other/events", params={"limit": "1"})).json()["next_cursor"]
    for accept in ("text/event-stream", "application/json"):
        headers = {"accept": accept}
        foreign = await service.client.get("/sessions/talk/events", params={"after": other}, headers=headers)
        check_problem(foreign, 400, "cursor_session_mismatch")
        ahead = await service.client.get("/sessions/talk/events", params={"after": f"{name}:3"}, headers=headers)
        problem = check_problem(ahead, 416, "future_cursor")
        assert (problem["latest_sequence"], problem["state"], problem["snapshot"]) == (2, "active", "/sessions/talk")
    listener = await listen(service).open(cursor=f"{name}:2")
    await hand.emit_many(1)
    await listener.until(3)
    listener.check(3, 3)


async def test_a_cursor_that_expired(service: Service, store: Store, listen: Listen) -> None:
    """410 with a way on that works; or, on request, the session in place of what is gone, and the events after it."""
    brief = await start(store, session_id="talk", retention=Retention(deltas_ms=100, events_ms=200, run_ms=60_000))
    await brief.finish()
    await store.sweep.once()
    hand = await start(store, session_id="talk")

    async def gone() -> dict[str, Any] | None:
        answer = await service.client.get("/sessions/talk/events", params={"after": "2"}, headers={"accept": "text/event-stream"})
        return answer.json() if answer.status_code == 410 else None

    # Until then it would be a stream: ask where that is cheap.
    async def expired() -> bool:
        return (await store.sessions.find("dev", "talk")).earliest_sequence > 1

    await wait_until(expired, "the first run's events to expire")
    problem = await gone()
    assert problem is not None and problem["code"] == "cursor_expired"
    assert (problem["earliest_sequence"], problem["latest_sequence"], problem["snapshot"]) == (4, 5, "/sessions/talk")
    listener = await listen(service).open(cursor=problem["resume_after"])
    exact = await listen(service).open(cursor="3")
    shown = await service.client.get("/sessions/talk/events", params={"limit": "10", "expired": "snapshot"})
    assert shown.json()["snapshot"]["sequence"] == 5 and shown.json()["events"] == []
    replaced = listen(service)
    replaced.connect(None)
    await replaced.stream.head()
    assert replaced.stream.status == 410
    await hand.emit_many(2)
    for each, first in ((listener, 6), (exact, 4)):
        await each.until(7)
        each.check(first, 7)
    await hand.finish()


async def test_the_snapshot_comes_first_where_it_was_asked_for(service: Service, store: Store) -> None:
    """It carries the session's sequence as its id, so that a client that reconnects goes on behind it."""
    brief = await start(store, session_id="talk", retention=Retention(deltas_ms=1, events_ms=1, run_ms=60_000))
    await brief.finish()
    await store.sweep.once()
    async with service.client.stream(
        "GET", "/sessions/talk/events", params={"expired": "snapshot"}, headers={"accept": "text/event-stream"}
    ) as answer:
        assert answer.status_code == 200
        seen = ""
        async for text in answer.aiter_text():
            seen += text
            if "session.snapshot" in seen and seen.endswith("\n\n"):
                break
    frame = next(part for part in seen.split("\n\n") if "session.snapshot" in part).split("\n")
    name = (await store.sessions.find("dev", "talk")).name
    assert frame[:2] == [f"id: {name}:3", "event: session.snapshot"]
    data = json.loads(frame[2].removeprefix("data: "))
    assert data["sequence"] == 3 and [run["run_id"] for run in data["runs"]] == [brief.run_id]


async def test_keep_alives_a_drain_and_the_trace(replicas: Replicas, store: Store, logs: LogCapture, listen: Listen) -> None:
    """A silent stream gets comments; a stopping server says drain and cuts, never a clean end; one record tells of the connection."""
    service = await replicas(keepalive=0.2)
    hand = await start(store, session_id="talk")
    listener = await listen(service).open()
    await listener.until(2)
    await wait_until(lambda: len(listener.stream.parser.comments) >= 3, "comments")
    await service.stop()
    assert await listener.until_end() == "cut"
    assert [json.loads(frame.data) for frame in listener.control] == [{"reason": "drain"}]
    [record] = [entry for entry in logs.entries if entry["event"] == "connection" and entry["transport"] == "sse"]
    told = {name: record[name] for name in ("session_id", "run_id", "delivered", "close_reason", "state", "accepted_cursor", "policy")}
    assert told == {
        "session_id": "talk", "run_id": None, "delivered": 2, "close_reason": "drain", "state": "active", "accepted_cursor": 0,
        "policy": "allowed",
    }  # fmt: skip
    await hand.finish()


async def test_the_head_of_a_stream(service: Service, store: Store) -> None:
    """HEAD answers as GET would begin."""
    await create(store, session_id="talk")
    answer = await service.client.head("/sessions/talk/events", headers={"accept": "text/event-stream"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_a_run_is_followed_beside_its_session(service: Service, listen: Listen) -> None:
    """Both streams of one run carry the same event, byte for byte but for the id of the frame."""
    run_id = await new_run_id(service.client, session_id="talk")
    run, session = await service.follow(run_id).open(), await listen(service).open()
    hand = await claim(service.store)
    await hand.emit(("note.made", b'{"n":9007199254740993,"empty":[]}'))
    await hand.finish()
    await run.until(4)
    await session.until(4)
    assert [frame.data for frame in run.frames] == [frame.data for frame in session.frames]
    assert await run.until_end() == "clean" and session.stream.ended is None
