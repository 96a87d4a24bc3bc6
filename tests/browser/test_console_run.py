"""A run on the console: followed to its end, stopped, cut off."""

import time
from typing import Any

import pytest

from reattach.store import Store

from ..support import drive
from ..support.factories import Proxies
from ..support.service import Service
from .conftest import Profiles

TEXTS = "[...document.querySelectorAll('.message .text')].map(e => e.textContent)"


async def snapshot(service: Service, run_id: str) -> dict[str, Any]:
    """A run as the service has it."""
    return (await service.client.get(f"/agent-runs/{run_id}")).json()


async def said(hand: drive.Hand, number: int, text: str, *, done: bool = True) -> None:
    """A message of a run, word by word."""
    about = {"message_id": f"m{number}"}
    words = [("message.delta", {**about, "text": f"{word} "}) for word in text.split()]
    whole = {**about, "role": "assistant", "content": [{"type": "text", "text": "".join(f"{word} " for word in text.split())}]}
    await hand.emit(("message.started", {**about, "role": "assistant"}), *words, *([("message.completed", whole)] if done else []))


async def test_a_run_is_shown_to_its_end(service: Service, store: Store, profiles: Profiles) -> None:
    """Messages as they are written, tools with receipts, the outcome; in the end the page says what the snapshot says."""
    hand = await drive.start(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.says(".run-title .state", "running")
    await said(hand, 1, "Looking at the ticket", done=False)
    await tab.until(f"{TEXTS}.join() === 'Looking at the ticket '")
    await tab.says(".message-status", "writing")
    await hand.emit(("message.delta", {"message_id": "m1", "text": "now."}))
    await tab.until(f"{TEXTS}.join() === 'Looking at the ticket now.'")
    tool = {"tool_call_id": "call_1", "tool": "tickets.add_note"}
    await hand.emit(("tool.requested", {**tool, "arguments": {"ticket": 981}}))
    await tab.see("running", within=".tool")
    await hand.emit(("tool.completed", {**tool, "receipt_id": "receipt_558", "result_version": "ticket_981:v19", "result": {"ok": True}}))
    await tab.see("receipt_558", within=".tool")
    await tab.see("ticket_981:v19", within=".tool")
    await said(hand, 2, "Done")
    await hand.finish(outcome={"note": "receipt_558"})
    await tab.says(".run-title .state", "succeeded")
    await tab.says(".link-state", "Complete")
    await tab.see("receipt_558", within=".outcome-card")
    run = await snapshot(service, hand.run_id)
    assert await tab.run(TEXTS) == [part["text"] for message in run["messages"] for part in message["content"]]
    assert await tab.run("document.title") == "support, succeeded · Reattach"


async def test_a_cut_is_made_good(service: Service, store: Store, profiles: Profiles) -> None:
    """The button breaks the connection, events go on; after it the page has each of them once, and its counters say so."""
    hand = await drive.start(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await said(hand, 1, "one two three", done=False)
    await tab.until(f"{TEXTS}.join() === 'one two three '")
    await tab.says(".link-state", "Live")
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    await hand.emit(*(("message.delta", {"message_id": "m1", "text": f"{n} "}) for n in range(200)))
    await tab.see("Network cut", within=".link-state")
    assert await tab.run(TEXTS) == ["one two three "]
    await tab.click("button", "Mend it now")
    await tab.says(".link-state", "Live")
    expected = "one two three " + "".join(f"{n} " for n in range(200))
    await tab.until(f"text => {TEXTS}.join() === text", expected)
    assert await tab.run("[...document.querySelectorAll('.numbers dd')].map(e => e.textContent)") == ["206", "1", "0", "0"]
    await hand.finish()
    await tab.says(".link-state", "Complete")
    assert (await snapshot(service, hand.run_id))["cancel"]["version"] == 0


async def test_closing_the_page_stops_nothing(service: Service, store: Store, profiles: Profiles) -> None:
    """A run does not notice that a tab was closed, and the next one shows all of it."""
    hand = await drive.start(store)
    profile = await profiles(service.base_url)
    tab = await profile.tab(f"/#/runs/{hand.run_id}")
    await said(hand, 1, "half of", done=False)
    await tab.see("half of")
    await tab.closed()
    await hand.emit(("message.delta", {"message_id": "m1", "text": "it"}))
    again = await profile.tab(f"/#/runs/{hand.run_id}")
    await again.until(f"{TEXTS}.join() === 'half of it'")
    assert (await snapshot(service, hand.run_id))["cancel"]["version"] == 0
    await hand.finish()


async def test_the_raw_log_stays_small(service: Service, store: Store, profiles: Profiles) -> None:
    """Of 3,000 events only those in sight are in the document; any of them can be gone to by keyboard and read, digit for digit."""
    hand = await drive.start(store)
    await hand.emit_many(2000)
    await hand.emit(("big.number", b'{"n":12345678901234567890.123456789,"m":1e400}'))
    await hand.emit_many(995, start=2001)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.click("tab", "Log", exact=False)
    await tab.see("step.done", within=".log")
    assert await tab.run("document.querySelectorAll('.log-row').length") < 60
    await tab.see("2,998", within=".log")
    await tab.do(tab.page.get_by_role("listbox", name="Events").focus())
    await tab.press("Home")
    await tab.see("run.created", within=".log-row")
    await tab.see('"type": "run.created"', within=".log-detail")
    await tab.run("document.querySelector('.log').scrollTop = 30 * 2000")
    await tab.see("big.number", within=".log")
    await tab.do(tab.page.locator(".log-row[data-sequence='2003']").click())
    await tab.see("12345678901234567890.123456789", within=".log-detail")
    await tab.see("1e400", within=".log-detail")
    assert await tab.run("document.querySelectorAll('.log-row').length") < 60
    await hand.finish()
    await tab.says(".run-title .state", "succeeded")


async def test_what_is_no_longer_kept_is_said(service: Service, store: Store, profiles: Profiles) -> None:
    """The snapshot has the messages; the log says which of its lines are gone, and still has the others."""
    hand = await drive.start(store)
    await said(hand, 1, "one two three")
    folded = await store.checkpoints.fold(hand.run_id)
    await store.checkpoints.store(hand.run_id, folded.fold)
    await store.checkpoints.trim(hand.run_id, folded.fold.covered)
    await said(hand, 2, "four")
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.until(f"{TEXTS}.join('|') === 'one two three |four '")
    await tab.click("tab", "Log", exact=False)
    await tab.see("message.completed", within=".log")
    gone = "[...document.querySelectorAll('.log-row')].filter(e => e.textContent.includes('no longer kept')).map(e => +e.dataset.sequence)"
    page = (await service.client.get(f"/agent-runs/{hand.run_id}/events?limit=100")).json()
    missing = sorted({*range(1, page["latest_sequence"] + 1)} - {event["sequence"] for event in page["events"]})
    assert missing
    await tab.until(f"missing => {gone}.join() === missing.join()", missing)
    await tab.do(tab.page.locator(".log-row", has_text="no longer kept").first.click())
    await tab.see("is no longer kept. What it said is in the snapshot.", within=".log-detail")
    await hand.finish()


async def test_a_list_shows_what_changes(service: Service, store: Store, profiles: Profiles) -> None:
    """New runs, new states, and filters that are addresses of their own; without asking more than every other second."""
    hand = await drive.start(store, session_id="conversation-17")
    began = time.monotonic()
    tab = await (await profiles(service.base_url)).tab("/")
    await tab.see("running", within=".row")
    await drive.create(store, "refund")
    await hand.finish()
    await tab.see("succeeded", within=".row")
    await tab.see("refund", within=".row")
    await tab.click("link", "Queued")
    await tab.until("document.querySelectorAll('.row').length === 1")
    assert await tab.run("location.hash") == "#/?state=queued"
    await tab.click("link", "All")
    await tab.do(tab.page.get_by_role("searchbox", name="Session").fill("conversation-17"))
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.row').length === 1")
    await tab.click("link", "support")
    await tab.says("h1", "support")
    assert await tab.run("location.hash") == f"#/runs/{hand.run_id}"
    # One for each filter that was chosen, and one for every two seconds.
    assert len([line for line in tab.asked if "/agent-runs?" in line]) <= 5 + (time.monotonic() - began) / 1.5


async def test_what_is_empty_or_wrong_helps(service: Service, profiles: Profiles) -> None:
    """No runs, no such runs, and an address that leads nowhere: each says what to do."""
    tab = await (await profiles(service.base_url)).tab("/")
    await tab.see("No runs yet")
    await tab.click("link", "Failed")
    await tab.see("No such runs")
    await tab.goto("/#/nowhere/at/all")
    await tab.see("There is nothing here")
    await tab.click("link", "To the runs")
    await tab.click("link", "Start the first run")
    await tab.says("h1", "Start a run")


@pytest.mark.provokes_network_errors
async def test_a_service_that_is_away_comes_back(service: Service, store: Store, proxies: Proxies, profiles: Profiles) -> None:
    """The list says that it cannot be reached and is there again by itself; what a run said stays in sight, on a small screen too."""
    hand = await drive.start(store)
    await hand.emit(("message.delta", {"message_id": "m0", "text": "line\n" * 40}))
    await said(hand, 1, "one", done=False)
    proxy = await proxies(service.base_url)
    profile = await profiles(proxy.http, viewport={"width": 390, "height": 300})
    lists, run = await profile.tab("/"), await profile.tab(f"/#/runs/{hand.run_id}")
    await lists.see("running", within=".row")
    await run.says(".link-state", "Live")
    proxy.refusing = True
    proxy.cut()
    await lists.see("The service cannot be reached", within=".note")
    await run.see("Reconnecting", within=".link-state")
    await run.see("The run goes on", within=".afloat")
    await run.see("one", within=".message")
    await hand.emit(("message.delta", {"message_id": "m1", "text": "two"}))
    proxy.refusing = False
    await lists.until("document.querySelector('.note') === null")
    await run.until(f"{TEXTS}.at(-1) === 'one two'")
    assert await run.run("document.querySelector('.afloat').hidden") is True
    await hand.finish()
