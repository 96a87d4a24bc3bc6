"""A session on the console: one conversation over all its runs, over one connection."""

import pytest

from reattach.store import Store

from ..support import drive
from ..support.agents import agents
from ..support.factories import Workers
from ..support.service import Service
from .conftest import Profiles
from .test_console_run import TEXTS, said


async def test_a_session_is_one_conversation(service: Service, store: Store, profiles: Profiles) -> None:
    """Earlier runs, the one that goes on, and one that begins meanwhile; it asks for one stream only."""
    first = await drive.start(store, session_id="conversation-17")
    await said(first, 1, "from the first")
    await first.finish()
    second = await drive.start(store, session_id="conversation-17")
    tab = await (await profiles(service.base_url)).tab("/#/sessions/conversation-17")
    await tab.until(f"{TEXTS}.join('|') === 'from the first '")
    await tab.says(".link-state", "Live")
    await said(second, 1, "from the second", done=False)
    await tab.until(f"{TEXTS}.join('|') === 'from the first |from the second '")
    third = await drive.start(store, session_id="conversation-17")
    await said(third, 1, "from the third")
    await tab.until(f"{TEXTS}.join('|') === 'from the first |from the second |from the third '")
    await tab.see("2 active", within=".meta")
    await third.finish()
    await second.finish()
    await tab.until("[...document.querySelectorAll('.session-runs .state')].every(e => e.dataset.state === 'succeeded')")
    streams = [line for line in tab.asked if "/events" in line]
    assert len(streams) == 1, streams
    assert await tab.run("document.querySelector('.numbers dd').textContent") == str(
        (await service.client.get("/sessions/conversation-17")).json()["sequence"]
    )


async def test_a_question_is_answered_in_the_conversation(service: Service, workers: Workers, profiles: Profiles) -> None:
    """Without going to the run's own page; and the next run is started below it."""
    await workers(agents)
    steps = {"steps": [["wait", "approval"], ["text", "thank you"]]}
    run = (await service.client.post("/agent-runs", json={"agent": "script", "input": steps, "session_id": "talk"})).json()
    tab = await (await profiles(service.base_url)).tab("/#/sessions/talk")
    await tab.see("approval?", within=".wait")
    await tab.click("button", "Yes")
    await tab.see("thank you", within=".message")
    assert await tab.run("document.querySelector('.wait')") is None
    await tab.do(tab.page.get_by_text("Start the next run").click())
    await tab.do(tab.page.get_by_label("Agent").fill("script"))
    await tab.do(tab.page.get_by_label("Input").fill('{"steps": [["text", "you are welcome"]]}'))
    await tab.click("button", "Start")
    await tab.see("you are welcome", within=".message")
    runs = (await service.client.get("/sessions/talk")).json()["runs"]
    assert runs[0]["run_id"] == run["run_id"]
    assert len(runs) == 2


async def test_a_cut_in_a_session_is_made_good(service: Service, store: Store, profiles: Profiles) -> None:
    """Two runs go on while the page is cut off; after it nothing is missing of either."""
    one, two = [await drive.start(store, session_id="talk") for _ in range(2)]
    tab = await (await profiles(service.base_url)).tab("/#/sessions/talk")
    await said(one, 1, "one", done=False)
    await tab.until(f"{TEXTS}.join() === 'one '")
    await tab.click("button", "Cut the network")
    await tab.see("Network cut", within=".link-state")
    for n in range(20):
        await one.emit(("message.delta", {"message_id": "m1", "text": f"{n} "}))
        await two.emit(("message.delta", {"message_id": "m2", "text": f"{n} "}))
    await tab.click("button", "Mend it now")
    numbers = "".join(f"{n} " for n in range(20))
    await tab.until(f"texts => {TEXTS}.join('|') === texts", f"one {numbers}|{numbers}")
    assert (await tab.run("[...document.querySelectorAll('.numbers dd')].map(e => e.textContent)"))[1:] == ["1", "0", "0"]
    await one.finish()
    await two.finish()


async def test_sessions_are_listed(service: Service, store: Store, profiles: Profiles) -> None:
    """With what goes on in each, by state and by name, and something that helps where there are none."""
    profile = await profiles(service.base_url)
    await (await profile.tab("/#/sessions")).see("No sessions yet")
    await service.client.post("/sessions", json={"session_id": "a/strange_name?", "policy": "queue"})
    hand = await drive.start(store, session_id="busy")
    tab = await profile.tab("/#/sessions")
    await tab.see("runs go one after the other", within=".row")
    await tab.see("idle", within=".row")
    await tab.click("link", "Active")
    await tab.until("[...document.querySelectorAll('.row-name')].map(e => e.textContent).join() === 'busy'")
    await tab.see("running", within=".row")
    await hand.finish()
    await tab.see("No such sessions")
    await tab.click("link", "All")
    await tab.do(tab.page.get_by_role("searchbox", name="Name").fill("STRANGE"))
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('.row').length === 1")
    await tab.click("link", "a/strange_name?")
    await tab.says("h1", "a/strange_name?")
    await tab.see("Start the next run")


@pytest.mark.provokes_network_errors
async def test_a_session_that_is_not_there(service: Service, profiles: Profiles) -> None:
    """Is said not to be, with a way out."""
    tab = await (await profiles(service.base_url)).tab("/#/sessions/nobody")
    await tab.see("There is no such session")
    await tab.click("link", "To the sessions")
    await tab.says("h1", "Sessions")
