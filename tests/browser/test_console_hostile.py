"""Text of strangers on the console: it is shown, whatever it is, and never obeyed."""

from typing import Final

import pytest

from reattach.store import Store

from ..support import drive
from ..support.service import Service
from .chromium import Tab
from .conftest import Profiles

PAYLOADS: Final = (
    "<img src=x onerror=\"window.pwned=1\">",
    "<script>window.pwned=1</script>",
    "\"><svg onload=window.pwned=1>",
    "javascript:window.pwned=1",
    "<a href=javascript:window.pwned=1>click</a>",
    "</pre></main><iframe srcdoc=\"<script>parent.pwned=1</script>\">",
    "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}",
)  # fmt: skip
EVIL: Final = " ".join(PAYLOADS)
OVERRIDE: Final = "abc\u202etxt.exe\u2066\u200b\u0007"


async def harmless(tab: Tab) -> None:
    """Nothing of it became markup, nothing of it ran."""
    assert await tab.run("window.pwned") is None
    assert (
        await tab.run("document.querySelectorAll('main img, main script, main iframe, main object, main a[href^=javascript]').length") == 0
    )


@pytest.mark.provokes_network_errors
async def test_no_text_of_an_agent_is_obeyed(service: Service, store: Store, profiles: Profiles) -> None:
    """In messages, roles, ids, tools, receipts, errors, inputs and outcomes: all of it is text."""
    hand = await drive.start(store, input=drive.raw({EVIL: EVIL}), session_id="<img/src/onerror=pwned=1>")
    tool = {"tool_call_id": EVIL, "tool": EVIL}
    message = {"message_id": EVIL, "role": EVIL, "content": [{"type": "text", "text": EVIL}, {"type": EVIL, EVIL: [EVIL]}, EVIL]}
    await hand.emit(
        ("message.started", {"message_id": EVIL, "role": EVIL}),
        ("message.delta", {"message_id": EVIL, "text": EVIL}),
        ("message.completed", message),
        ("tool.requested", {**tool, "arguments": {EVIL: EVIL}}),
        ("tool.completed", {**tool, "receipt_id": EVIL, "result_version": f"{EVIL}:{EVIL}", "result": EVIL}),
        ("tool.failed", {"tool_call_id": "2", "tool": EVIL, "error": {"code": EVIL, "message": EVIL}}),
        ("note.made", {EVIL: EVIL}),
    )
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.until("text => document.querySelector('.message .text')?.textContent === text", EVIL)
    await tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    await tab.see("window.pwned=1", within=".tool figure")
    await hand.finish(outcome={EVIL: EVIL, "x": OVERRIDE})
    await tab.see("window.pwned=1", within=".outcome-card")
    await harmless(tab)
    await tab.click("tab", "Log", exact=False)
    await tab.see("note.made", within=".log")
    await tab.do(tab.page.get_by_text("note.made").click())
    await tab.see("onerror", within=".log-detail")
    await harmless(tab)
    await tab.goto(f"/#/?agent={PAYLOADS[0]}&session_id={PAYLOADS[1]}")
    await tab.goto("/#/sessions/" + PAYLOADS[0].replace("/", "%2F"))
    await tab.goto("/#/")
    await tab.see("support", within=".row")
    await harmless(tab)


async def test_what_steers_a_display_is_written_out(service: Service, store: Store, profiles: Profiles) -> None:
    """Overrides, zero-width characters and controls: visible in names and in the log, shut in in messages."""
    hand = await drive.start(store)
    await hand.emit(
        ("tool.requested", {"tool_call_id": "1", "tool": OVERRIDE}),
        ("message.completed", {"message_id": "m", "role": "assistant", "content": [{"type": "text", "text": OVERRIDE}]}),
    )
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.says(".tool-name", "abc⟨U+202E⟩txt.exe⟨U+2066⟩⟨U+200B⟩⟨U+0007⟩")
    assert await tab.run("getComputedStyle(document.querySelector('.text')).unicodeBidi") == "isolate"
    await tab.click("tab", "Log", exact=False)
    await tab.see("abc⟨U+202E⟩txt.exe⟨U+2066⟩⟨U+200B⟩", within=".log-preview")
    await hand.finish()


async def test_huge_texts_are_shown_in_parts(service: Service, store: Store, profiles: Profiles) -> None:
    """A message of 600 kB does not become 600 kB of page, until somebody wants it."""
    hand = await drive.start(store)
    for _ in range(3):
        await hand.emit(("message.delta", {"message_id": "m", "text": "word " * 40_000}))
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.until("document.querySelector('.text')?.textContent.length === 40000")
    await tab.click("button", "Show more (560 kB left)")
    await tab.until("document.querySelector('.text').textContent.length === 80000")
    await hand.finish()


async def test_a_question_of_a_stranger_is_text(service: Service, store: Store, profiles: Profiles) -> None:
    """Prompt and reason of a wait."""
    hand = await drive.start(store)
    await store.work.park(hand.lease, wait_id="w", reason="approval", prompt=EVIL, timeout_ms=60_000)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.until("text => document.querySelector('.wait h2')?.textContent === text", EVIL)
    await harmless(tab)
