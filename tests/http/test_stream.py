"""Event streams: what is sent when, and how each ends."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support import drive
from ..support.service import Service
from ..support.waiting import wait_until
from .raw import connection

STREAM = "Accept: text/event-stream"


async def test_status_headers_and_a_comment_come_before_any_event(service: Service, store: Store) -> None:
    """Nothing waits for the first event; every header is there, nothing compresses (case O27)."""
    run_id = await drive.create(store)
    async with connection(service.base_url) as raw:
        raw.ask("GET", f"/agent-runs/{run_id}/events", STREAM, "Accept-Encoding: gzip, br, zstd", "Last-Event-ID: 1")
        began = time.monotonic()
        seen = await raw.until(b"\n\n")
        assert time.monotonic() - began < 1
        head, _, body = seen.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        assert lines[0] == "http/1.1 200 ok"
        assert {"content-type: text/event-stream; charset=utf-8", "cache-control: no-store", "x-accel-buffering: no"} < set(lines)
        assert not [line for line in lines if line.startswith(("content-encoding", "content-length", "etag"))]
        assert body.split(b"\r\n")[1].startswith(b":") and b"retry: " in body


async def test_replay_then_live_then_a_clean_end(service: Service, store: Store) -> None:
    """One stream, every event once; the body is complete only because the run ended."""
    hand = await drive.start(store)
    await hand.emit_many(5)
    follower = await service.follow(hand.run_id).open()
    await follower.until(7)
    await hand.emit_many(5, start=6)
    await follower.until(12)
    await hand.finish(outcome={"ok": True})
    assert await follower.until_end() == "clean"
    follower.check(1, 13)
    assert follower.types[-1] == "run.succeeded" and not follower.control


async def test_frames_are_what_the_contract_says(service: Service, store: Store) -> None:
    """id, event, data in one line; all fields; only stored events carry an id."""
    hand = await drive.start(store, resource_scope="dev/ticket_981", release_id="r1")
    await hand.emit(("step.done", {"n": 1}))
    await hand.finish()
    answer = await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"accept": "text/event-stream"})
    frames = answer.text.split("\n\n")[1:-1]
    assert len(frames) == 4
    ids, kinds, data = zip(*(frame.split("\n") for frame in frames), strict=True)
    assert list(ids) == [f"id: {hand.run_id}:{n}" for n in range(1, 5)]
    assert kinds[2] == "event: step.done"
    event = json.loads(data[2].removeprefix("data: "))
    assert list(event) == ["run_id", "sequence", "event_id", "release_id", "type", "occurred_at", "resource_scope", "payload"]
    assert (event["release_id"], event["resource_scope"], event["payload"]) == ("r1", "dev/ticket_981", {"n": 1})


TEXTS = [
    "\n\n\n",
    "a\r\rb",
    "a\r\n\r\nb",
    "data: x",
    ": c",
    "\u0000",
    " leading",
    "\u2028\u2029",
    "id: 9\nevent: run.succeeded",
    "那个🌍e\u0301👩‍👩‍👧",
]


async def test_text_cannot_break_out_of_a_frame(service: Service, store: Store) -> None:
    """Payloads come back code point for code point, live and on replay; frames are as many as appends (cases O06, O07)."""
    hand = await drive.start(store)
    live = await service.follow(hand.run_id).open()
    texts = [*TEXTS, *("a" * (size - lead) + "🌍" for size in (4096, 8192, 16384, 65536) for lead in (1, 2, 3))]
    for text in texts:
        await hand.emit(("message.delta", {"message_id": "m", "text": text}))
    await hand.finish()
    await live.until_end()
    replay = await service.follow(hand.run_id).open()
    await replay.until_end()
    for follower in (live, replay):
        follower.check(1, len(texts) + 3)
        assert [e["payload"]["text"] for e in follower.events if e["type"] == "message.delta"] == texts


async def test_keep_alives_come_in_time_and_move_no_cursor(replicas: Callable[..., Any], store: Store) -> None:
    """Comments at least every interval while nothing happens, also while nobody works on the run; none right after an event (case O05)."""
    service = await replicas(keepalive=0.5)
    hand = await drive.start(store)
    follower = await service.follow(hand.run_id).open()
    await wait_until(lambda: len(follower.stream.arrivals) >= 6, "a few keep-alives")
    gaps = [b - a for a, b in zip(follower.stream.arrivals, follower.stream.arrivals[1:], strict=False)]
    assert max(gaps) <= 0.55, gaps
    assert min(gaps[1:]) >= 0.2, gaps
    assert follower.last_event_id == f"{hand.run_id}:2"
    assert bytes(follower.stream.raw).endswith(b":\n\n")


async def test_events_postpone_the_next_keep_alive(replicas: Callable[..., Any], store: Store) -> None:
    """A busy stream needs no comments."""
    service = await replicas(keepalive=0.6)
    hand = await drive.start(store)
    follower = await service.follow(hand.run_id).open()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        await hand.emit(("step.done", {}))
        await asyncio.sleep(0.05)
    assert len(follower.stream.parser.comments) == 1  # the one that opens the stream


async def test_a_finished_run_is_replayed_and_ends_at_once(service: Service, store: Store) -> None:
    """No wait, no keep-alive, no control frame (case O11)."""
    hand = await drive.start(store)
    await hand.finish()
    began = time.monotonic()
    follower = await service.follow(hand.run_id).open()
    assert await follower.until_end() == "clean"
    assert time.monotonic() - began < 1
    follower.check(1, 3)
    assert (await service.follow(hand.run_id).open(3)).stream.status == 204


async def test_a_reconnecting_client_sees_each_event_once(service: Service, store: Store) -> None:
    """It comes back after every end until it is told to stop (case O11 d)."""
    hand = await drive.start(store)
    await hand.emit_many(3)
    await hand.finish()
    follower = service.follow(hand.run_id)
    while True:
        await follower.open()
        await follower.until_end()
        if follower.stream.status == 204:
            break
    follower.check(1, 6)
    assert len(follower.streams) == 2


async def test_an_unfinished_stream_is_cut_not_completed(replicas: Callable[..., Any], store: Store) -> None:
    """After stream.closing the last chunk never comes: a client can tell it from success."""
    service = await replicas(stream_lifetime=1.0)
    hand = await drive.start(store)
    async with connection(service.base_url) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", STREAM)
        seen = await raw.until_end()
    assert seen.endswith(b'event: stream.closing\ndata: {"reason":"lifetime"}\n\n\r\n')
    assert b"0\r\n\r\n" not in seen
    with pytest.raises(httpx.RemoteProtocolError):
        await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"accept": "text/event-stream"})
    assert (await service.client.get(f"/agent-runs/{hand.run_id}")).json()["state"] == "running"


async def test_lifetimes_differ(replicas: Callable[..., Any], store: Store) -> None:
    """80 to 100 % of the setting, so that clients do not all come back at once; each resumes without a gap."""
    service = await replicas(stream_lifetime=1.5)
    hand = await drive.start(store)
    followers = [await service.follow(hand.run_id).open() for _ in range(12)]
    for follower in followers:
        assert await follower.until_end() == "cut"
    lives = [f.stream.ended_at - f.stream.opened_at for f in followers]
    assert min(lives) >= 1.1 and max(lives) <= 1.9 and max(lives) - min(lives) > 0.02
    await hand.emit(("step.done", {}))
    await hand.finish()
    for follower in followers:
        await follower.open()
        assert await follower.until_end() == "clean"
        follower.check(1, 4)
        assert [json.loads(f.data) for f in follower.control] == [{"reason": "lifetime"}]


async def test_http_1_0_clients_get_a_plain_body(replicas: Callable[..., Any], store: Store) -> None:
    """No chunks; complete when the run ends, reset when it does not."""
    service = await replicas(stream_lifetime=1.0)
    hand = await drive.start(store)
    async with connection(service.base_url) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", STREAM, version="1.0")
        seen = await raw.until_end()
        assert b"transfer-encoding" not in seen.lower() and b"connection: close" in seen.lower()
        assert seen.partition(b"\r\n\r\n")[2].startswith(b": reattach\nretry: ")
        assert raw.reset and b"stream.closing" in seen
    await hand.finish()
    async with connection(service.base_url) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", STREAM, version="1.0")
        seen = await raw.until_end()
        assert not raw.reset and seen.endswith(b"\n\n") and b"event: run.succeeded" in seen


async def test_a_viewer_that_takes_nothing_is_cut(replicas: Callable[..., Any], store: Store) -> None:
    """Others are not disturbed, and it resumes without a gap (case O25)."""
    service = await replicas(write_timeout=0.5, keepalive=0.5)
    hand = await drive.start(store)
    healthy = await service.follow(hand.run_id).open()
    async with connection(service.base_url, limit=1024) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", STREAM)
        await raw.until(b"run.started")
        for _ in range(60):
            await hand.emit(("step.done", {"text": "x" * 200_000}))
        await healthy.until(62)
        await wait_until(lambda: service.hub.stats().followers == 1, "the stalled viewer to be cut")
        seen = await raw.until_end(timeout=20)
        assert b"\r\n0\r\n\r\n" not in seen
    await hand.finish()
    await healthy.until_end()
    healthy.check(1, 63)


async def test_there_are_only_so_many_streams(replicas: Callable[..., Any], store: Store) -> None:
    """503 with Retry-After beyond the limit; those that are open stay, and room that is left is given again."""
    service = await replicas(max_streams=2)
    run_id = await drive.create(store)
    first, second = await service.follow(run_id).open(), await service.follow(run_id).open()
    refused = await service.follow(run_id).open()
    assert refused.stream.status == 503 and refused.stream.problem()["code"] == "too_many_streams"
    assert 1 <= int(refused.stream.headers["retry-after"]) <= 5
    assert (await service.client.get(f"/agent-runs/{run_id}/events?limit=1")).status_code == 200
    assert first.stream.ended is second.stream.ended is None
    await first.cut()

    async def room() -> bool:
        return (await service.follow(run_id).open()).stream.status == 200

    await wait_until(room, "the room to be given again")


async def test_leaving_changes_nothing_about_the_run(service: Service, store: Store) -> None:
    """Reset or closed: the run goes on, nothing is cancelled, the process lets go (case O02)."""
    hand = await drive.start(store)
    one, two = await service.follow(hand.run_id).open(), await service.follow(hand.run_id).open()
    await one.until(2)
    await one.cut()
    await two.until(2)
    await two.close()
    await wait_until(lambda: service.hub.stats().followers == 0, "both to be let go")
    await hand.emit(("step.done", {}))
    assert (await hand.renew()).cancel_version == 0
    await hand.finish()
    for follower in (one, two):
        await follower.open()
        await follower.until_end()
        follower.check(1, 4)


async def test_head_says_what_get_would(service: Service, store: Store) -> None:
    """Without opening a stream."""
    run_id = await drive.create(store)
    answer = await service.client.head(f"/agent-runs/{run_id}/events", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "content-length" not in answer.headers
    assert service.hub.stats().followers == 0


async def test_requests_that_are_pipelined_behind_a_stream_wait_for_it(service: Service, store: Store) -> None:
    """One connection, a stream of a run that ends, then an ordinary answer."""
    hand = await drive.start(store)
    async with connection(service.base_url) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", STREAM)
        raw.ask("GET", "/healthz", "Connection: close")
        await raw.until(b"run.started")
        await hand.finish()
        seen = await raw.until_end()
    assert seen.index(b"run.succeeded") < seen.index(b"0\r\n\r\n") < seen.index(b'{"status":"ok"}')


async def test_a_store_that_is_away_is_not_an_empty_stream(
    settings: Settings, replicas: Callable[..., Any], proxies: Callable[..., Any], store: Store
) -> None:
    """503 with Retry-After while connecting; an open stream lives through it with keep-alives and loses nothing."""
    proxy = await proxies(settings.redis)
    service = await replicas(redis=proxy.redis, redis_timeout=0.5)
    hand = await drive.start(store)
    follower = await service.follow(hand.run_id).open()
    await follower.until(2)
    proxy.gate.clear()
    refused = await service.follow(hand.run_id).open()
    assert refused.stream.status == 503 and refused.stream.problem()["code"] == "store_unavailable"
    assert int(refused.stream.headers["retry-after"]) >= 1
    await hand.emit(("step.done", {}))
    comments = len(follower.stream.parser.comments)
    await wait_until(lambda: len(follower.stream.parser.comments) > comments, "a keep-alive in the outage")
    proxy.gate.set()
    await follower.until(3)
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 4)
