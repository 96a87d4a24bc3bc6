"""Events as JSON pages: the stream's contract for clients that cannot hold one."""

import asyncio

import pytest

from reattach.core.errors import NotAcceptable
from reattach.http.accept import prefers_stream
from reattach.store import Store

from ..support import drive
from ..support.service import Service


async def test_pages_carry_every_event_once(service: Service, store: Store) -> None:
    """next_cursor leads from page to page; done says when there is no next one."""
    hand = await drive.start(store)
    await hand.emit_many(20)
    await hand.finish()
    cursor, seen = "0", list[int]()
    while True:
        page = (await service.client.get(f"/agent-runs/{hand.run_id}/events", params={"after": cursor, "limit": "7"})).json()
        seen += [event["sequence"] for event in page["events"]]
        cursor = page["next_cursor"]
        assert page["latest_sequence"] == 23 and page["state"] == "succeeded"
        if page["done"]:
            break
    assert seen == list(range(1, 24))


async def test_an_event_looks_the_same_in_a_page_and_in_a_stream(service: Service, store: Store) -> None:
    """Byte for byte."""
    hand = await drive.start(store)
    await hand.emit(("step.done", b'{"n":9007199254740993,"e":[]}'))
    await hand.finish()
    page = await service.client.get(f"/agent-runs/{hand.run_id}/events?limit=100")
    stream = await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"accept": "text/event-stream"})
    data = [line.removeprefix("data: ") for line in stream.text.splitlines() if line.startswith("data: ")]
    assert page.text.startswith('{"events":[' + ",".join(data) + "],")
    assert page.headers["cache-control"] == "no-store"


async def test_a_long_poll_waits_for_news(service: Service, store: Store) -> None:
    """Only when the caller has everything; then until the next event or the end of the time."""
    hand = await drive.start(store)
    path = f"/agent-runs/{hand.run_id}/events"
    at_once = (await asyncio.wait_for(service.client.get(path, params={"wait": "60"}), 5)).json()
    assert [e["type"] for e in at_once["events"]] == ["run.created", "run.started"]
    polling = asyncio.create_task(service.client.get(path, params={"wait": "20", "after": at_once["next_cursor"]}))
    await hand.emit(("step.done", {"n": 1}))
    page = (await asyncio.wait_for(polling, 5)).json()
    assert [e["type"] for e in page["events"]] == ["step.done"] and not page["done"]
    nothing = (await service.client.get(path, params={"wait": "0.2", "after": page["next_cursor"]})).json()
    assert (nothing["events"], nothing["next_cursor"], nothing["done"]) == ([], page["next_cursor"], False)


async def test_a_page_has_a_size(service: Service, store: Store) -> None:
    """Large payloads end a page before its limit does."""
    hand = await drive.start(store)
    for _ in range(40):
        await hand.emit(("step.done", {"text": "x" * 200_000}))
    page = await service.client.get(f"/agent-runs/{hand.run_id}/events", params={"limit": "1000"})
    assert 4_000_000 < len(page.content) < 8_000_000 and len(page.json()["events"]) < 42
    rest = await service.client.get(f"/agent-runs/{hand.run_id}/events", params={"limit": "1000", "after": page.json()["next_cursor"]})
    assert page.json()["events"][-1]["sequence"] + len(rest.json()["events"]) == 42


@pytest.mark.parametrize(
    ("accept", "stream"),
    [
        ("", None),
        ("*/*", None),
        ("application/json, text/event-stream", None),
        ("text/html, application/xhtml+xml, */*;q=0.8", None),
        ("application/json", False),
        ("application/*", False),
        ("application/json, text/event-stream;q=0.5", False),
        ("text/event-stream;q=0, */*", False),
        ("application/json;q=0.9, text/event-stream", True),
        ("text/event-stream", True),
        ("TEXT/Event-Stream; charset=utf-8", True),
        ("text/*", True),
        ("text/event-stream, */*;q=0.1", True),
        ("application/json;q=0, */*", True),
    ],
)
def test_who_gets_a_stream(accept: str, stream: bool | None) -> None:
    """Who prefers it; None: who accepts both alike gets what the rest of the request asks for."""
    for otherwise in (True, False):
        assert prefers_stream(accept, otherwise=otherwise) is (otherwise if stream is None else stream)


async def test_curl_gets_the_stream_unless_it_asks_for_a_page(service: Service, store: Store) -> None:
    """Without an Accept header the address streams; limit or wait, which only a page has, ask for one."""
    run_id = await drive.create(store)
    await store.runs.cancel(run_id, by="me", reason=None, key=None, fingerprint="")
    kinds = {}
    for query in ("", "?after=1", "?limit=5", "?wait=1"):
        answer = await service.client.get(f"/agent-runs/{run_id}/events{query}", headers={"accept": "*/*"})
        kinds[query] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {
        "": "text/event-stream",
        "?after=1": "text/event-stream",
        "?limit=5": "application/json",
        "?wait=1": "application/json",
    }


@pytest.mark.parametrize("accept", ["text/html", "image/*, video/mp4", "text/event-stream;q=0", "*/*;q=0"])
async def test_who_accepts_neither_is_told(service: Service, store: Store, accept: str) -> None:
    """406, as a problem all the same."""
    with pytest.raises(NotAcceptable):
        prefers_stream(accept, otherwise=True)
    answer = await service.client.get(f"/agent-runs/{await drive.create(store)}/events", headers={"accept": accept})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
    assert answer.headers["content-type"] == "application/problem+json"
