"""A page that follows a session: all its runs over one connection, and what it shows is the session's snapshot."""

from typing import Any

from reattach.store import Store

from ..support.drive import Hand, claim
from ..support.factories import Proxies
from ..support.service import Service
from .conftest import Pages
from .page import Page


async def new_run(service: Service, store: Store, session: str) -> Hand:
    """Another run of a session, with somebody at work on it."""
    made = await service.client.post("/agent-runs", json={"agent": "support", "input": {}, "session_id": session})
    assert made.status_code == 201
    return await claim(store)


async def write(hand: Hand, words: int, message: str = "m") -> None:
    """Words of one message, each an event."""
    await hand.emit(*(("message.delta", {"message_id": message, "text": f"{n} "}) for n in range(words)))


async def snapshot(service: Service, session: str) -> dict[str, Any]:
    """The session as the service has it."""
    return (await service.client.get(f"/sessions/{session}")).json()


LATER = ("expires_at",)
"""What only the server can tell of an ended run."""


async def check(page: Page, service: Service, session: str) -> dict[str, Any]:
    """What the page shows is what the server says, and every event was applied once."""
    wanted = await snapshot(service, session)
    await page.until_sequence(wanted["sequence"])
    await page.until(lambda v: not v["loading"], "it to have all facts")
    view = await page.view()
    shown = view["session"]
    for run in (*wanted["runs"], *shown["runs"]):
        for name in LATER:
            run.pop(name)
    assert shown == wanted
    assert set(view["applied"].values()) <= {1}
    # Not the duplicates: a session's sequence is read before its runs, so what happened in between is in them already, and dropped.
    assert view["counters"]["gaps"] == 0
    return view


async def test_runs_come_and_go_over_one_connection(service: Service, store: Store, pages: Pages) -> None:
    """Two runs at the same time, one that ends, and one that begins while the page looks."""
    first = await new_run(service, store, "talk")
    await write(first, 5)
    page = await pages("talk", service.base_url, kind="session")
    await page.until_state("live")
    await write(first, 5)
    second = await new_run(service, store, "talk")
    await write(second, 5)
    await write(first, 5, "other")
    await check(page, service, "talk")
    await first.finish(outcome={"a": 1})
    await second.emit(("message.completed", {"message_id": "m", "content": [{"type": "text", "text": "whole"}]}))
    view = await check(page, service, "talk")
    assert [m["content"][0]["text"] for m in view["session"]["messages"]][-1] == "whole"
    assert view["session"]["active"] == [second.run_id]
    assert view["counters"]["resumes"] == 0


async def test_through_cuts(service: Service, store: Store, proxies: Proxies, pages: Pages) -> None:
    """Cut off while two runs write: the session's own cursor goes on where it was."""
    hands = [await new_run(service, store, "talk") for _ in range(2)]
    proxy = await proxies(service.base_url)
    page = await pages("talk", proxy.http, kind="session")
    await page.until_state("live")
    for number in range(1, 4):
        for hand in hands:
            await write(hand, 5)
        proxy.cut()
        for hand in hands:
            await write(hand, 5)
        await page.until(lambda v, number=number: v["counters"]["resumes"] >= number, f"resume {number}")
    for hand in hands:
        await hand.finish()
    view = await check(page, service, "talk")
    assert view["session"]["active"] == []


async def test_earlier_events_can_be_had(service: Service, store: Store, pages: Pages) -> None:
    """By their places in the session."""
    hands = [await new_run(service, store, "talk") for _ in range(2)]
    for hand in hands:
        await write(hand, 5)
    page = await pages("talk", service.base_url, kind="session")
    await page.until_state("live")
    assert await page.act("earlier", 8) == 8
    assert await page.act("earlier", 100) == 6
    assert [event["session_sequence"] for event in (await page.view())["events"]] == list(range(1, 15))
