"""What people do to runs on the console: start, stop, answer. Each time the page says what really happened."""

from pathlib import Path
from typing import Any

import pytest

from reattach.store import Store

from ..support import drive
from ..support.agents import agents, count
from ..support.factories import Workers
from ..support.service import Service
from ..support.waiting import wait_until
from .chromium import Tab
from .conftest import Profiles


async def scripted(service: Service, *steps: list[Any]) -> str:
    """A run of the scripted agent; its id."""
    answer = await service.client.post("/agent-runs", json={"agent": "script", "input": {"steps": steps}})
    return answer.json()["run_id"]


async def snapshot(service: Service, run_id: str) -> dict[str, Any]:
    """A run as the service has it."""
    return (await service.client.get(f"/agent-runs/{run_id}")).json()


async def stop(tab: Tab, why: str = "") -> None:
    """Press Stop and mean it."""
    await tab.click("button", "Stop …")
    if why:
        await tab.do(tab.page.get_by_label("Why").fill(why))
    await tab.click("button", "Stop the run")


async def test_a_run_is_started_here(service: Service, workers: Workers, profiles: Profiles) -> None:
    """What is no JSON object is refused beside the field; the demo's input is suggested; one click is one run."""
    await workers(agents)
    tab = await (await profiles(service.base_url)).tab("/#/start")
    await tab.until("document.querySelector('#input').value !== ''")
    assert await tab.run("[document.querySelector('#agent').value, document.querySelector('#input').value]") == [
        "support",
        '{"ticket": 981}',
    ]
    await tab.do(tab.page.get_by_label("Agent").fill("script"))
    await tab.do(tab.page.get_by_label("Input").fill("[1, 2"))
    await tab.click("button", "Start")
    await tab.see("This is not JSON", within="#input-error")
    await tab.do(tab.page.get_by_label("Input").fill('{"steps": [["text", "as you say"]]}'))
    await tab.click("button", "Start")
    await tab.see("as you say", within=".message")
    await tab.says(".run-title .state", "succeeded")
    assert len((await service.client.get("/agent-runs")).json()["runs"]) == 1


@pytest.mark.provokes_network_errors
async def test_what_the_service_refuses_is_said(service: Service, profiles: Profiles) -> None:
    """In its words, with the code; nothing is lost of what was typed."""
    tab = await (await profiles(service.base_url)).tab('/#/start?agent=support&input={"a": 1}&session_id=no+spaces+please')
    await tab.click("button", "Start")
    await tab.see("The run was not started", within=".note")
    await tab.see("invalid_request", within=".note")
    assert await tab.run("document.querySelector('#input').value") == '{"a": 1}'


async def test_stopped_before_anything_was_changed(service: Service, store: Store, profiles: Profiles) -> None:
    """A run that nobody has taken yet."""
    run_id = await drive.create(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await stop(tab, "wrong ticket")
    await tab.says(".outcome h2", "Stopped before anything was changed")
    await tab.see("wrong ticket", within=".outcome")
    await tab.says(".run-title .state", "cancelled")


async def test_stopped_after_an_effect(service: Service, workers: Workers, profiles: Profiles, tmp_path: Path) -> None:
    """What took place is listed, with its receipt."""
    await workers(agents)
    run_id = await scripted(service, ["effect", str(tmp_path / "count")], ["sleep", 30])
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await tab.see("receipt", within=".tool")
    await stop(tab)
    await tab.says(".outcome h2", "Stopped, but something had been changed already")
    await tab.see("counter.add", within=".receipts")
    assert count(tmp_path / "count") == 1


async def test_asked_to_stop(service: Service, store: Store, profiles: Profiles) -> None:
    """While the worker has not come to a boundary, that is what is said, at once; and then what became of it."""
    hand = await drive.start(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.says(".run-title .state", "running")
    await stop(tab)
    await tab.says(".outcome h2", "Asked to stop")
    assert await tab.run("document.querySelector('dialog').open") is False
    await hand.finish(outcome={"too": "late"})
    await tab.says(".outcome h2", "It had ended before")
    await tab.says(".run-title .state", "succeeded")


async def test_there_was_nothing_left_to_stop(service: Service, store: Store, profiles: Profiles) -> None:
    """The run ended while this page was cut off."""
    hand = await drive.start(store)
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{hand.run_id}")
    await tab.says(".link-state", "Live")
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    await hand.finish()
    await stop(tab)
    await tab.says(".outcome h2", "It had ended before")


@pytest.mark.parametrize(("press", "answer"), [("Yes", True), ("No", False), ("", {"amount": 40})])
async def test_a_question_is_answered(service: Service, workers: Workers, profiles: Profiles, press: str, answer: Any) -> None:
    """With yes, with no, or with any JSON value."""
    await workers(agents)
    run_id = await scripted(service, ["wait", "approval", 600])
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await tab.see("approval?", within=".wait")
    await tab.until(r"/^\d+:\d\d left$/.test(document.querySelector('.left').textContent)")
    if press:
        await tab.click("button", press)
    else:
        await tab.click("button", "Another answer")
        await tab.press(*"yes", "Enter")
        await tab.click("button", "Send")
        await tab.see("This is not JSON", within=".wait")
        await tab.do(tab.page.get_by_label("Your answer, as JSON").fill('{"amount": 40}'))
        await tab.click("button", "Send")
    await tab.says(".run-title .state", "succeeded")
    assert await tab.run("document.querySelector('.wait')") is None
    assert (await snapshot(service, run_id))["outcome"]["answers"] == [answer]


async def test_an_answer_given_elsewhere_closes_the_question(service: Service, workers: Workers, profiles: Profiles) -> None:
    """The form goes by itself in every other tab."""
    await workers(agents)
    run_id = await scripted(service, ["wait", "approval"], ["sleep", 0.1])
    profile = await profiles(service.base_url)
    here, there = await profile.tab(f"/#/runs/{run_id}"), await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await here.see("approval?", within=".wait")
    await there.click("button", "Yes")
    await here.says(".run-title .state", "succeeded")
    assert await here.run("document.querySelector('.wait')") is None


@pytest.mark.provokes_network_errors
async def test_an_answer_that_comes_too_late_is_told(service: Service, store: Store, workers: Workers, profiles: Profiles) -> None:
    """Somebody else was first, and this page did not know."""
    await workers(agents)
    run_id = await scripted(service, ["wait", "approval"])
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await tab.see("approval?", within=".wait")
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    await service.client.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": "approval_1", "value": False})
    await tab.click("button", "Yes")
    await tab.see("This question is closed")
    assert (await snapshot(service, run_id))["state"] != "failed"


@pytest.mark.parametrize("happened", [True, False])
async def test_a_call_of_unknown_fate_is_settled(
    service: Service, workers: Workers, profiles: Profiles, tmp_path: Path, happened: bool
) -> None:
    """The form shows the call and the key to look for; what the person says is what the run goes on with."""
    await workers(agents)
    run_id = await scripted(service, ["effect", str(tmp_path / "count"), {"after": 0.5, "timeout": 0.2}])
    tab = await (await profiles(service.base_url)).tab(f"/#/runs/{run_id}")
    await tab.see("Did counter.add take effect", within=".wait h2")
    await tab.see("nobody knows whether it took effect", within=".tool")
    run = await snapshot(service, run_id)
    await tab.see(f"{run_id}:{run['unresolved'][0]['tool_call_id']}", within=".wait")
    if not happened:
        await tab.click("button", "It did not happen: call the tool now")
        await wait_until(lambda: count(tmp_path / "count") == 2, "the tool to be called again")
        return
    await tab.click("button", "It happened …")
    await tab.do(tab.page.get_by_label("Receipt").fill("re_17"))
    await tab.do(tab.page.get_by_label("Result, as JSON").fill('{"lines": 1}'))
    await tab.click("button", "It happened: go on with this")
    await tab.says(".run-title .state", "succeeded")
    await tab.see("re_17", within=".tool")
    assert (await snapshot(service, run_id))["tools"][0]["receipt_id"] == "re_17"
