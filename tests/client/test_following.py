"""A page that follows a run through whatever happens to its connection: every event once, and what it shows is the snapshot."""

import asyncio
import json
from typing import Any

import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.admin import Admin
from ..support.drive import Hand, start
from ..support.factories import Proxies, Replicas
from ..support.service import Service
from ..support.waiting import wait_until
from .conftest import Pages
from .page import Page, Refused

NEVER_LIVE = ("events_expire_at", "expires_at")
"""What only the server can tell of an ended run."""


async def write(hand: Hand, words: int, message: str = "m") -> int:
    """Words of one message, each an event; the sequence after them."""
    await hand.emit(*(("message.delta", {"message_id": message, "text": f"{n} "}) for n in range(words)))
    return (await hand.store.runs.load(hand.run_id)).sequence


async def check(page: Page, service: Service, run_id: str, *, gaps: int = 0, duplicates: int = 0) -> dict[str, Any]:
    """What the page shows is what the server says, every event was applied once, and only so much went wrong on the way."""
    view = await page.view()
    snapshot = (await service.client.get(f"/agent-runs/{run_id}")).json()
    shown = dict(view["run"])
    if shown["events_expire_at"] is None:
        snapshot |= dict.fromkeys(NEVER_LIVE)
    assert shown == snapshot
    assert set(view["applied"].values()) <= {1}
    assert view["counters"]["events"] == len(view["applied"])
    assert (view["counters"]["gaps"], view["counters"]["duplicates"]) == (gaps, duplicates)
    assert snapshot["cancel"]["version"] == 0
    return view


async def test_replay_and_live_are_one(service: Service, store: Store, pages: Pages) -> None:
    """It takes the snapshot, follows from there, shows the same as the server at any moment, and stops when the run has ended."""
    hand = await start(store)
    await write(hand, 20)
    page = await pages(hand.run_id, service.base_url)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 20))
    await check(page, service, hand.run_id)
    await hand.emit(("tool.requested", {"tool_call_id": "c", "tool": "t", "arguments": {"a": []}}))
    await hand.finish(outcome={"a": [1, {}]})
    await page.until_state("ended")
    view = await check(page, service, hand.run_id)
    assert (view["counters"]["events"], view["counters"]["resumes"]) == (22, 0)
    assert view["run"]["messages"][0]["status"] == "interrupted"


async def test_a_run_that_has_ended_needs_no_stream(service: Service, store: Store, pages: Pages) -> None:
    """The snapshot is all there is to show: no stream is opened."""
    hand = await start(store)
    await hand.finish(outcome=1)
    page = await pages(hand.run_id, service.base_url)
    await page.until_state("ended")
    view = await check(page, service, hand.run_id)
    assert view["counters"]["events"] == 0 and view["run"]["expires_at"]
    assert [change["connection"]["state"] for change in page.changes if change["connection"]["state"] == "live"] == []


async def test_through_cuts(service: Service, store: Store, proxies: Proxies, pages: Pages) -> None:
    """Cut in the middle of its words, again and again, with the network gone for a moment each time."""
    hand, proxy = await start(store), await proxies(service.base_url)
    page = await pages(hand.run_id, proxy.http)
    await page.until_state("live")
    for number in range(1, 6):
        await page.until_sequence(await write(hand, 10))
        proxy.refusing = True
        proxy.cut()
        await write(hand, 10)
        failed = await page.until(lambda v: v["connection"]["failures"] > 1, "it to fail")
        assert failed["connection"]["state"] in ("retrying", "connecting")
        proxy.refusing = False
        await page.until(lambda v, number=number: v["counters"]["resumes"] >= number, f"resume {number}")
    await hand.finish(outcome=None)
    await page.until_state("ended")
    view = await check(page, service, hand.run_id)
    assert view["counters"]["events"] == 101 and view["counters"]["resumes"] == 5


async def test_bytes_arrive_one_by_one(service: Service, store: Store, proxies: Proxies, pages: Pages) -> None:
    """Characters torn apart on the way come out whole."""
    hand, proxy = await start(store), await proxies(service.base_url)
    proxy.segment = 1
    page = await pages(hand.run_id, proxy.http)
    await page.until_state("live")
    await hand.emit(("message.delta", {"message_id": "m", "text": "Grüße 🌍\r\n\u2028data: x\n\n"}))
    await hand.finish()
    await page.until_state("ended")
    view = await check(page, service, hand.run_id)
    assert view["run"]["messages"][0]["content"][0]["text"] == "Grüße 🌍\r\n\u2028data: x\n\n"


async def test_a_silent_connection_is_given_up(replicas: Replicas, store: Store, proxies: Proxies, pages: Pages) -> None:
    """No bytes, not even keep-alives, and no end either: it connects anew by itself, and a late answer of the old one changes nothing."""
    hand, service = await start(store), await replicas(keepalive=0.2)
    proxy = await proxies(service.base_url)
    page = await pages(hand.run_id, proxy.http, stall=600)
    await page.until_state("live")
    proxy.replies.clear()
    await write(hand, 5)
    await page.until(lambda v: v["connection"]["reason"] == "stalled", "it to notice")
    proxy.replies.set()
    await page.until_sequence(await write(hand, 5))
    await hand.finish()
    await page.until_state("ended")
    await check(page, service, hand.run_id)


async def test_keep_alives_keep_a_quiet_connection(replicas: Replicas, store: Store, pages: Pages) -> None:
    """Nothing happens for longer than the patience, but comments come: the connection stays."""
    hand, service = await start(store), await replicas(keepalive=0.2)
    page = await pages(hand.run_id, service.base_url, stall=600)
    await page.until_state("live")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await wait_until(lambda: loop.time() - began > 1.0, "a while")
    await hand.finish()
    await page.until_state("ended")
    assert page.now["counters"]["resumes"] == 0


async def test_a_deploy(replicas: Replicas, settings: Settings, store: Store, proxies: Proxies, pages: Pages) -> None:
    """The server says that it goes, and goes; another one is there: the page goes on after its last event."""
    hand = await start(store)
    old = await replicas()
    proxy = await proxies(old.base_url)
    page = await pages(hand.run_id, proxy.http)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 5))
    new = await replicas()
    proxy.upstream_port = int(new.base_url.rpartition(":")[2])
    await old.stop()
    await page.until(lambda v: v["counters"]["resumes"] == 1, "it to come back")
    assert "drain" in [change["connection"]["reason"] for change in page.changes]
    await hand.finish()
    await page.until_state("ended")
    await check(page, new, hand.run_id)


async def test_a_gap_is_repaired_from_the_snapshot(service: Service, store: Store, proxies: Proxies, pages: Pages) -> None:
    """Somebody on the way swallows a frame: the page sees the hole, takes the snapshot, and goes on; what it shows is right."""
    hand = await start(store)
    hole = f"id: {hand.run_id}:5\n".encode()

    def swallow() -> Any:
        def rewrite(chunk: bytes) -> bytes:
            # The same length, so that the chunk stays one: the frame becomes a comment.
            if hole not in chunk:
                return chunk
            start = chunk.index(hole)
            end = chunk.index(b"\n\n", start)
            return chunk[:start] + b":" + chunk[start:end].replace(b"\n", b" ")[1:] + chunk[end:]

        return rewrite

    proxy = await proxies(service.base_url, filter=swallow)
    page = await pages(hand.run_id, proxy.http)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 10))
    await page.until(lambda v: not v["loading"], "it to be mended")
    await check(page, service, hand.run_id, gaps=1)
    await page.until_sequence(await write(hand, 3))
    await hand.finish()
    await page.until_state("ended")
    await check(page, service, hand.run_id, gaps=1)


@pytest.mark.leaves_wreckage("its log is cut off by force")
async def test_a_cursor_that_expired(
    service: Service, settings: Settings, store: Store, admin: Admin, proxies: Proxies, pages: Pages
) -> None:
    """While it was away, the events after its cursor went: it takes the snapshot (410), and goes on live."""
    hand, proxy = await start(store), await proxies(service.base_url)
    page = await pages(hand.run_id, proxy.http)
    await page.until_sequence(await write(hand, 5))
    await page.until_state("live")
    proxy.refusing = True
    proxy.cut()
    await write(hand, 200)
    await hand.emit(("message.checkpoint", {"message_id": "m", "text": "so far"}))
    record = f"{settings.prefix}:{{{hand.run_id[4:6]}}}:run:{hand.run_id}"
    sequence = (await store.runs.load(hand.run_id)).sequence
    for stream in ("log", "audit"):
        admin.xtrim(f"{record}:{stream}", minid=f"{sequence}-0", approximate=False)
    assert (await service.client.get(f"/agent-runs/{hand.run_id}/events?after=7")).status_code == 410
    proxy.refusing = False
    await page.until_sequence(sequence)
    await page.until_state("live")
    view = await page.view()
    assert view["run"]["messages"][0]["content"] == [{"type": "text", "text": "so far"}]
    assert view["counters"]["gaps"] == 0
    await page.until_sequence(await write(hand, 3))
    await hand.finish()
    await page.until_state("ended")


@pytest.mark.leaves_wreckage("the store is put back")
async def test_a_server_that_has_lost_something(
    replicas: Replicas, settings: Settings, store: Store, admin: Admin, proxies: Proxies, pages: Pages
) -> None:
    """The store was put back to an earlier state (416): the server's word counts, and the page shows what there is now."""
    hand, old = await start(store), await replicas()
    proxy = await proxies(old.base_url)
    before = await write(hand, 5)
    keys = [key for key in admin.scan_iter(match=f"{settings.prefix}:*{hand.run_id}*")]
    saved = {key: admin.dump(key) for key in keys}
    page = await pages(hand.run_id, proxy.http)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 20))
    proxy.refusing = True
    proxy.cut()
    for key, value in saved.items():
        admin.delete(key)
        admin.restore(key, 0, value)
    new = await replicas()
    proxy.upstream_port = int(new.base_url.rpartition(":")[2])
    proxy.refusing = False
    await page.until(lambda v: v["sequence"] == before and v["connection"]["state"] == "live", "it to show what there is")
    snapshot = (await new.client.get(f"/agent-runs/{hand.run_id}")).json()
    assert (await page.view())["run"] == snapshot


async def test_too_many_streams_is_waited_out(replicas: Replicas, store: Store, pages: Pages) -> None:
    """503 with Retry-After: not before that."""
    hand = await start(store)
    api = await replicas(max_streams=1)
    blocker = await api.follow(hand.run_id).open()
    page = await pages(hand.run_id, api.base_url)
    now = await page.until(lambda v: v["connection"]["reason"] == "too_many_streams", "it to be sent away")
    assert now["connection"]["state"] == "retrying" and now["connection"]["error"]["status"] == 503
    await page.act("nudge")
    await blocker.close()
    await page.until_state("live")
    view = await page.view()
    retried = [change["connection"]["retryAt"] for change in page.changes if change["connection"]["reason"] == "too_many_streams"]
    assert len(retried) == 1 and view["counters"]["resumes"] == 0


async def test_a_run_that_does_not_exist(service: Service, pages: Pages) -> None:
    """A typed refusal, and no more attempts."""
    page = await pages("run_00000000000000000000000000", service.base_url)
    now = await page.until(lambda v: v["connection"]["state"] == "refused" and not v["loading"], "it to give up")
    assert now["error"]["code"] == now["connection"]["error"]["code"] == "run_not_found"


async def test_earlier_events_can_be_had(service: Service, store: Store, pages: Pages) -> None:
    """The window begins where the page did; earlier events are put before it, as many as asked for and as there are."""
    hand = await start(store)
    await write(hand, 50)
    page = await pages(hand.run_id, service.base_url)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 5))
    assert await page.act("earlier", 20) == 20
    assert [event["sequence"] for event in (await page.view())["events"]] == list(range(33, 58))
    assert await page.act("earlier", 1000) == 32
    assert [event["sequence"] for event in (await page.view())["events"]] == list(range(1, 58))
    assert await page.act("earlier", 1000) == 0


async def test_the_window_is_bounded(service: Service, store: Store, pages: Pages) -> None:
    """It holds the latest events only; the snapshot holds the rest."""
    hand = await start(store)
    page = await pages(hand.run_id, service.base_url, window=10)
    await page.until_state("live")
    await page.until_sequence(await write(hand, 95))
    view = await page.view()
    assert [event["sequence"] for event in view["events"]] == list(range(88, 98))
    assert view["run"]["messages"][0]["content"][0]["text"].startswith("0 1 2 ")


async def test_one_click_is_one_run(service: Service, proxies: Proxies, pages: Pages) -> None:
    """The answer to `start` is lost on the way: it is sent again under the same key, and there is one run. So with cancel and answer."""
    proxy = await proxies(service.base_url)
    page = await pages("run_00000000000000000000000000", proxy.http, tokens=["a"])
    await page.until_state("refused")
    proxy.drop_replies(1)
    run = await page.act("start", [{"agent": "idle", "input": {"n": 1}}, {}])
    listed = (await service.client.get("/agent-runs?agent=idle")).json()["runs"]
    assert [r["run_id"] for r in listed] == [run["run_id"]]
    proxy.drop_replies(1)
    told = await page.act("cancel", [run["run_id"], {"reason": "wrong"}])
    assert (told["disposition"], told["cancel"]["version"], told["cancel"]["reason"]) == ("cancelled_before_effect", 1, "wrong")
    with pytest.raises(Refused) as refused:
        await page.act("answer", [run["run_id"], {"wait_id": "x", "value": 1}])
    assert refused.value.about["code"] == "wait_not_open"


async def test_closing_stops_nothing(service: Service, store: Store, pages: Pages) -> None:
    """A page that closes leaves the run alone, and is told nothing more."""
    hand = await start(store)
    page = await pages(hand.run_id, service.base_url)
    await page.until_state("live")
    await page.act("close")
    await wait_until(lambda: json.dumps(page.now), "the last change")
    seen = len(page.changes)
    await write(hand, 5)
    await page.act("view")
    assert len(page.changes) == seen
    record = await store.runs.load(hand.run_id)
    assert (record.state, record.cancel_version) == ("running", 0)
