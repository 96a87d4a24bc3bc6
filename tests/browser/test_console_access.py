"""The console for everybody: by keyboard, by screen reader, on a phone, in the dark."""

from importlib.resources import files
from typing import Any, Final, Literal

import pytest

from reattach.store import Store

from ..support import drive
from ..support.service import Service
from .chromium import Tab
from .conftest import Profiles

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
FOCUSED: Final = "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"


async def sound(tab: Tab) -> None:
    """Axe finds nothing that matters, in light and in dark.

    Raises:
        AssertionError: It does; with the rules and the elements.
    """
    # By the debugger, which the page's policy does not bind.
    await tab.run(AXE)
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        await tab.do(tab.page.emulate_media(color_scheme=scheme))
        found: dict[str, Any] = await tab.run("axe.run(document, {resultTypes: ['violations']})")
        serious = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in found["violations"] if v["impact"] != "minor"]
        assert serious == [], scheme


async def eventful(store: Store) -> drive.Hand:
    """A run with some of everything."""
    hand = await drive.start(store, session_id="conversation-17")
    tool = {"tool": "tickets.add_note", "tool_call_id": "1"}
    await hand.emit(
        ("message.started", {"message_id": "m1", "role": "assistant"}),
        ("message.delta", {"message_id": "m1", "text": "Looking at the ticket."}),
        ("tool.requested", {**tool, "arguments": {"ticket": 981}}),
        ("tool.completed", {**tool, "receipt_id": "receipt_558", "result_version": "ticket_981:v19"}),
        ("tool.failed", {"tool": "mail.send", "tool_call_id": "2", "error": {"code": "x", "message": "no such address"}}),
        ("tool.requested", {"tool": "a_tool_with_a_very_long_name.that_has_no_place_to_break_at_all_" + "x" * 80, "tool_call_id": "3"}),
        ("message.delta", {"message_id": "m2", "text": "averylongwordwithoutanyplacetobreak" * 12}),
    )
    return hand


async def test_nothing_keeps_anybody_out(service: Service, store: Store, profiles: Profiles) -> None:
    """Names, roles, contrast, landmarks: every kind of page is checked by axe."""
    hand = await eventful(store)
    await drive.create(store, "refund")
    profile = await profiles(service.base_url, reduced_motion="reduce")
    tab = await profile.tab("/")
    await tab.see("running", within=".row")
    await sound(tab)
    await tab.goto(f"/#/runs/{hand.run_id}")
    await tab.says(".link-state", "Live")
    await sound(tab)
    await tab.click("tab", "Log", exact=False)
    await tab.do(tab.page.locator(".log-row").nth(3).click())
    await tab.see("payload", within=".log-detail")
    await sound(tab)
    await tab.click("button", "Stop …")
    await sound(tab)
    await tab.press("Escape")
    await store.work.park(hand.lease, wait_id="w", reason="approval", prompt="Refund 40 EUR?", timeout_ms=60_000)
    await tab.see("Refund 40 EUR?")
    await tab.click("button", "Another answer")
    await sound(tab)
    await tab.goto("/#/start")
    await tab.until("document.querySelector('#input').value !== ''")
    await sound(tab)
    await tab.goto("/#/sessions")
    await tab.see("conversation-17", within=".row")
    await sound(tab)
    await tab.goto("/#/sessions/conversation-17")
    await tab.see("Looking at the ticket.")
    await sound(tab)


async def test_everything_by_keyboard(service: Service, store: Store, profiles: Profiles) -> None:
    """From the list into a run, to its log, to its question, and back; the focus is always somewhere that makes sense."""
    hand = await drive.start(store)
    await hand.emit(("message.delta", {"message_id": "m", "text": "Hello."}))
    tab = await (await profiles(service.base_url)).tab("/")
    await tab.see("support", within=".row")
    await tab.press("Tab")
    assert await tab.run(FOCUSED) == "Skip to the content"
    await tab.press("Enter")
    assert await tab.run(FOCUSED) == "Runs"
    await tab.do(tab.page.get_by_role("link", name="support").focus())
    await tab.press("Enter")
    await tab.says("h1", "support")
    assert await tab.run(FOCUSED) == "support"
    await tab.press("Tab")
    assert await tab.run(FOCUSED) == "Stop …"
    await tab.press("Enter")
    assert await tab.run("document.querySelector('dialog').open") is True
    await tab.press("Escape")
    assert await tab.run(FOCUSED) == "Stop …"
    await tab.press("Tab", "Tab")
    assert await tab.run(FOCUSED) == "Conversation"
    await tab.press("ArrowRight")
    assert (await tab.run(FOCUSED)).startswith("Log")
    await tab.press("Tab", "Tab", "End")
    assert await tab.run("document.activeElement.getAttribute('aria-activedescendant')") == "event-3"
    await tab.see("Hello.", within=".log-detail")
    await store.work.park(hand.lease, wait_id="w", reason="approval", prompt="Refund?", timeout_ms=60_000)
    await tab.see("Refund?")
    await tab.do(tab.page.get_by_role("button", name="Yes", exact=True).focus())
    await tab.press("Space")
    await tab.until("document.querySelector('.wait') === null")
    assert await tab.run(FOCUSED) == "support"
    await tab.do(tab.page.go_back())
    await tab.says("h1", "Runs")


@pytest.mark.parametrize("width", [320, 390])
async def test_on_a_phone_nothing_runs_off_the_side(service: Service, store: Store, profiles: Profiles, width: int) -> None:
    """Every kind of page fits, also with names that cannot be broken; what is pressed with a finger is large enough."""
    hand = await eventful(store)
    profile = await profiles(service.base_url, viewport={"width": width, "height": 700}, has_touch=True, is_mobile=True)
    tab = await profile.tab("/")
    await tab.see("running", within=".row")
    pages = {
        "/": "support",
        f"/#/runs/{hand.run_id}": "Looking at the ticket.",
        "/#/sessions": "conversation-17",
        "/#/sessions/conversation-17": "Looking at the ticket.",
        "/#/start": "Agent",
    }
    for address, sight in pages.items():
        await tab.goto(address)
        await tab.see(sight)
        assert await tab.run("document.documentElement.scrollWidth") <= width, address
    await tab.goto(f"/#/runs/{hand.run_id}")
    await tab.click("tab", "Log", exact=False)
    await tab.see("tool.requested")
    assert await tab.run("document.documentElement.scrollWidth") <= width
    small = "[...document.querySelectorAll('main .button')].filter(b => b.offsetParent && b.offsetHeight < 44).map(b => b.textContent)"
    assert await tab.run(small) == []
    await hand.finish()


async def test_light_and_dark_follow_the_system(service: Service, profiles: Profiles) -> None:
    """And change with it, without loading the page again."""
    tab = await (await profiles(service.base_url, color_scheme="light")).tab("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert await tab.run(ground) == "rgb(247, 246, 243)"
    await tab.do(tab.page.emulate_media(color_scheme="dark"))
    assert await tab.run(ground) == "rgb(17, 19, 21)"


async def test_nothing_moves_for_those_who_do_not_want_it(service: Service, store: Store, profiles: Profiles) -> None:
    """No animation runs when the system asks for less motion."""
    hand = await eventful(store)
    for reduced, moves in (("reduce", False), ("no-preference", True)):
        tab = await (await profiles(service.base_url, reduced_motion=reduced)).tab(f"/#/runs/{hand.run_id}")
        await tab.says(".link-state", "Live")
        assert bool(await tab.run("document.getAnimations().length")) is moves
    await hand.finish()
