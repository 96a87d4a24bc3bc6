"""Pictures of the console, made on each run. ``REATTACH_SCREENSHOTS=tests/browser/screenshots`` puts them where the README shows them."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from reattach.core.settings import Settings
from reattach.demo.agents import agents

from ..support.processes import ROOT
from ..support.service import Service
from ..support.working import RunningWorker
from .chromium import Tab
from .conftest import Profiles

KEPT: Final = Path(__file__).parent / "screenshots"
NAMES: Final = ("cut", "question", "runs", "log", "session", "phone-question", "phone-run")
LARGEST: Final = 150_000
SCHEMES: Final = ("light", "dark")
DEMO: Final = {"agent": "support", "input": {"ticket": 981}}
REFUND: Final = {"agent": "refund", "input": {"ticket": 981, "amount": 40}}
DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 760}}
PHONE: Final[dict[str, Any]] = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 1.5}

Shots = Callable[[Tab, str], Awaitable[None]]


@pytest.fixture
def shot(tmp_path: Path) -> Shots:
    """Takes a picture of what is in sight, in light and in dark."""
    folder = ROOT / os.environ.get("REATTACH_SCREENSHOTS", str(tmp_path))
    folder.mkdir(exist_ok=True)

    async def take(tab: Tab, name: str) -> None:
        await tab.run("document.fonts.ready.then(() => document.fonts.size)")
        for scheme in SCHEMES:
            await tab.do(tab.page.emulate_media(color_scheme=scheme))
            picture = await tab.do(tab.page.screenshot(animations="disabled", caret="hide"))
            assert 10_000 < len(picture) < LARGEST, f"{name}-{scheme}: {len(picture)} bytes"
            (folder / f"{name}-{scheme}.png").write_bytes(picture)

    return take


async def start(service: Service, body: dict[str, Any], **more: Any) -> str:
    """Start a run; its id."""
    return (await service.client.post("/agent-runs", json={**body, **more})).json()["run_id"]


async def in_the_middle(tab: Tab) -> None:
    """Wait until the agent's answer is half written."""
    await tab.until("document.querySelectorAll('.message .text')[1]?.textContent.length > 260")


@pytest.fixture
async def demo(settings: Settings, monkeypatch: pytest.MonkeyPatch, task_guard: None) -> AsyncIterator[None]:
    """A worker with the demo's agents."""
    monkeypatch.setenv("REATTACH_DEMO_SPEED", "120")
    worker = await RunningWorker(settings, agents, None).start()
    yield
    await worker.close()
    # The demo's tools work on threads.
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_on_a_desk(service: Service, demo: None, profiles: Profiles, shot: Shots) -> None:
    """A question, a run in the middle of its answer and cut off, its log when it is back, a session, the list."""
    profile = await profiles(service.base_url, **DESKTOP)
    await start(service, DEMO, session_id="conversation-17")
    refund = await start(service, REFUND)
    report = await start(service, {"agent": "nightly.report", "input": {}})
    await service.client.post(f"/agent-runs/{report}/cancel")
    await start(service, {"agent": "support", "input": {"ticket": 1}})
    tab = await profile.tab(f"/#/runs/{refund}")
    await tab.see("Refund 40.00 EUR")
    await shot(tab, "question")
    await tab.goto(f"/#/runs/{await start(service, DEMO, session_id='conversation-17')}")
    await in_the_middle(tab)
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    await tab.until("document.querySelector('.curve-gaps rect')?.getAttribute('width') > 12")
    await shot(tab, "cut")
    await tab.click("button", "Mend it now")
    await tab.says(".run-title .state", "succeeded")
    await tab.click("tab", "Log", exact=False)
    await tab.do(tab.page.get_by_role("listbox", name="Events").focus())
    await tab.press("Home", "ArrowDown")
    await tab.see('"attempt": 1', within=".log-detail")
    await shot(tab, "log")
    await tab.goto("/#/sessions/conversation-17")
    await tab.until("document.querySelectorAll('.session-part .message').length === 4")
    await shot(tab, "session")
    await tab.goto("/")
    await tab.see("failed", within=".row")
    await shot(tab, "runs")


async def test_on_a_phone(service: Service, demo: None, profiles: Profiles, shot: Shots) -> None:
    """A question, and a run under way."""
    profile = await profiles(service.base_url, **PHONE)
    tab = await profile.tab(f"/#/runs/{await start(service, REFUND)}")
    await tab.see("Refund 40.00 EUR")
    await shot(tab, "phone-question")
    await tab.goto(f"/#/runs/{await start(service, DEMO)}")
    await in_the_middle(tab)
    await shot(tab, "phone-run")


def test_the_pictures_that_are_shown_are_there() -> None:
    """Those in the README exist, and none is large."""
    shown = {path.name: path.stat().st_size for path in KEPT.glob("*.png")}
    assert set(shown) == {f"{name}-{scheme}.png" for name in NAMES for scheme in SCHEMES}
    assert max(shown.values()) < LARGEST
    assert set(re.findall(r"tests/browser/screenshots/([\w-]+\.png)", (ROOT / "README.md").read_text("utf-8"))) <= set(shown)
