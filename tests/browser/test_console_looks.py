"""Pictures of the console, made on each run. ``REATTACH_SCREENSHOTS=tests/browser/screenshots`` puts them where the README shows them."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from reattach.demo.agents import agents
from reattach.store import Store

from ..support.processes import ROOT
from ..support.service import Service
from .chromium import Tab
from .conftest import Profiles

KEPT: Final = Path(__file__).parent / "screenshots"
LARGEST: Final = 150_000
DEMO: Final = {"agent": "support", "input": {"ticket": 981}}
REFUND: Final = {"agent": "refund", "input": {"ticket": 981, "amount": 40}}
DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 800}}
PHONE: Final[dict[str, Any]] = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 1.5}

Workers = Callable[..., Awaitable[Any]]
Shots = Callable[[Tab, str], Awaitable[None]]


@pytest.fixture
def shot(tmp_path: Path) -> Shots:
    """Takes a picture of what is in sight, under a name."""
    folder = ROOT / os.environ.get("REATTACH_SCREENSHOTS", str(tmp_path))
    folder.mkdir(exist_ok=True)

    async def take(tab: Tab, name: str) -> None:
        await tab.run("document.fonts.ready.then(() => document.fonts.size)")
        path = folder / f"{name}.png"
        await tab.do(tab.page.screenshot(path=path, animations="disabled", caret="hide"))
        assert 10_000 < path.stat().st_size < LARGEST, f"{name}: {path.stat().st_size} bytes"

    return take


async def start(service: Service, body: dict[str, Any], **more: Any) -> str:
    """Start a run; its id."""
    return (await service.client.post("/agent-runs", json={**body, **more})).json()["run_id"]


async def in_the_middle(tab: Tab) -> None:
    """Wait until the agent's answer is half written."""
    await tab.until("document.querySelectorAll('.message .text')[1]?.textContent.length > 260")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_on_a_desk(
    service: Service, store: Store, workers: Workers, profiles: Profiles, shot: Shots, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The list, a run in the middle of its answer, cut off and back again, its log, and a question."""
    monkeypatch.setenv("REATTACH_DEMO_SPEED", "90")
    await workers(agents)
    profile = await profiles(service.base_url, color_scheme=scheme, **DESKTOP)
    for session in (None, "conversation-17"):
        await start(service, DEMO, session_id=session)
    refund = await start(service, REFUND)
    cancelled = await start(service, {"agent": "nightly.report", "input": {}})
    await service.client.post(f"/agent-runs/{cancelled}/cancel")
    await start(service, {"agent": "support", "input": {"ticket": 1}}, session_id="conversation-17")
    tab = await profile.tab(f"/#/runs/{refund}")
    await tab.see("Refund 40.00 EUR")
    await shot(tab, f"question-{scheme}")
    run_id = await start(service, DEMO)
    await tab.goto(f"/#/runs/{run_id}")
    await in_the_middle(tab)
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    await tab.until("document.querySelector('.curve-gaps rect')?.getAttribute('width') > 12")
    await shot(tab, f"cut-{scheme}")
    await tab.click("button", "Mend it now")
    await tab.says(".run-title .state", "succeeded")
    await tab.click("tab", "Log", exact=False)
    await tab.do(tab.page.locator(".log-row").nth(6).click())
    await tab.see("payload", within=".log-detail")
    await shot(tab, f"log-{scheme}")
    await tab.goto("/")
    await tab.see("failed", within=".row")
    await shot(tab, f"runs-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_on_a_phone(
    service: Service, workers: Workers, profiles: Profiles, shot: Shots, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """A question, and a run under way."""
    monkeypatch.setenv("REATTACH_DEMO_SPEED", "90")
    await workers(agents)
    profile = await profiles(service.base_url, color_scheme=scheme, **PHONE)
    tab = await profile.tab(f"/#/runs/{await start(service, REFUND)}")
    await tab.see("Refund 40.00 EUR")
    await shot(tab, f"phone-question-{scheme}")
    await tab.goto(f"/#/runs/{await start(service, DEMO)}")
    await in_the_middle(tab)
    await shot(tab, f"phone-run-{scheme}")


def test_the_pictures_that_are_shown_are_there() -> None:
    """Those in the README exist, and none is large."""
    shown = {path.name: path.stat().st_size for path in KEPT.glob("*.png")}
    assert {f"{name}-{scheme}.png" for name in ("cut", "question", "runs", "log") for scheme in ("light", "dark")} <= set(shown)
    assert max(shown.values()) < LARGEST
