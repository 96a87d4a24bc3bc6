"""Several tabs of one browser, and another device: one connection for each browser, whoever comes, goes, or hangs."""

import pytest

from reattach.store import Store

from ..support import agents
from ..support.calls import new_script
from ..support.drive import start
from ..support.factories import Workers
from ..support.service import Service
from .conftest import Profiles
from .watching import Watching, check, one_stream, say, text_of

pytestmark = pytest.mark.provokes_network_errors


async def leaders(*pages: Watching) -> list[bool]:
    """Which of them have the connection."""
    return [(await page.view())["connection"]["leader"] for page in pages]


async def test_two_tabs_and_a_third_device(service: Service, store: Store, profiles: Profiles) -> None:
    """Both tabs show everything over one connection; another browser has its own."""
    hand, browser = await start(store), await profiles(service.base_url)
    first = await Watching.open(browser, hand.run_id)
    await first.until_sequence(await say(hand, 10))
    second = await Watching.open(browser, hand.run_id)
    await second.until_sequence(await say(hand, 10))
    await second.until_state("live")
    await one_stream(service.client)
    third = await Watching.open(await profiles(service.base_url), hand.run_id)
    await third.until_state("live")
    await one_stream(service.client, 2)
    await say(hand, 30)
    await check(service.client, first, second, third, duplicates=500)
    assert await leaders(first, second, third) == [True, False, True]
    await hand.finish()
    for page in (first, second, third):
        await page.until_state("ended")
    snapshot = await check(service.client, first, second, third, duplicates=500)
    assert snapshot["cancel"]["version"] == 0
    await one_stream(service.client, 0)


async def test_the_leading_tab_is_closed(service: Service, store: Store, profiles: Profiles) -> None:
    """Another one takes over, exactly, as often as it happens; nothing is cancelled by it."""
    hand, browser = await start(store), await profiles(service.base_url)
    pages = [await Watching.open(browser, hand.run_id) for _ in range(3)]
    for page in pages:
        await page.until_state("live")
    while len(pages) > 1:
        await say(hand, 10)
        closing = pages.pop((await leaders(*pages)).index(True))
        await closing.tab.closed()
        for page in pages:
            await page.until_sequence(await say(hand, 10))
            await page.until_state("live")
        await one_stream(service.client)
    await hand.finish()
    await pages[0].until_state("ended")
    await check(service.client, *pages, duplicates=500)


async def test_the_leading_tab_hangs(service: Service, store: Store, profiles: Profiles) -> None:
    """It is busy with itself and tells nobody anything: another one takes the connection from it. When it comes to itself it follows."""
    hand, browser = await start(store), await profiles(service.base_url)
    # Keep-alives come once a second in tests.
    first = await Watching.open(browser, hand.run_id, stall=1400)
    await first.until_state("live")
    second = await Watching.open(browser, hand.run_id, stall=1400)
    await second.until_state("live")
    await first.tab.run("void setTimeout(() => { const end = Date.now() + 6000; while (Date.now() < end); })")
    missed = await say(hand, 10)
    await second.until_sequence(missed)
    assert (await second.view())["connection"]["leader"]
    await first.until_sequence(await say(hand, 10))
    await first.until("!view.connection.leader && view.connection.state === 'live'")
    await one_stream(service.client)
    await check(service.client, first, second, gaps=1, duplicates=500)
    await hand.finish()
    await first.until_state("ended")


async def test_a_tab_that_comes_late_and_one_that_was_away(service: Service, store: Store, profiles: Profiles) -> None:
    """A tab that was put aside whole while others went on finds out what it missed, though nothing new happens."""
    hand, browser = await start(store), await profiles(service.base_url)
    first = await Watching.open(browser, hand.run_id)
    second = await Watching.open(browser, hand.run_id)
    for page in (first, second):
        await page.until_state("live")
    await second.tab.goto("/client/reattach.js")
    await first.until_sequence(await say(hand, 10))
    await second.tab.do(second.tab.page.go_back(wait_until="commit"))
    await second.ready()
    await second.until_state("live")
    await check(service.client, first, second, gaps=1, duplicates=500)
    await one_stream(service.client)


async def test_answered_in_another_tab(service: Service, workers: Workers, profiles: Profiles) -> None:
    """Both tabs ask; one answers, both go on; a second answer is refused in words that say why."""
    await workers(agents.agents)
    run_id = await new_script(service.client, ["text", "May I?"], ["wait", "approval"], ["text", "Thanks."])
    browser = await profiles(service.base_url)
    pages = [await Watching.open(browser, run_id) for _ in range(2)]
    for page in pages:
        await page.until("view.run?.state === 'waiting'")
    give = "value => reattach.answer(mirror.getSnapshot().run.run_id, { wait_id: 'approval_1', value }, options).catch(e => e.code)"
    assert (await pages[1].tab.run(give, True))["run_id"] == run_id
    for page in pages:
        await page.until_state("ended")
    snapshot = await check(service.client, *pages, duplicates=500)
    assert (snapshot["state"], snapshot["outcome"]["answers"]) == ("succeeded", [True])
    assert await pages[0].tab.run(give, False) == "wait_not_open"


async def test_stopped_in_one_tab(service: Service, workers: Workers, profiles: Profiles) -> None:
    """Stop says what really became of the run, and both tabs show the same."""
    await workers(agents.agents)
    run_id = await new_script(service.client, ["say", " ".join(["word"] * 500), 0.05])
    browser = await profiles(service.base_url)
    pages = [await Watching.open(browser, run_id) for _ in range(2)]
    for page in pages:
        await page.until("view.run?.messages.length > 0")
    told = await pages[1].tab.run("reattach.cancel(mirror.getSnapshot().run.run_id, { reason: 'enough' }, options)")
    assert told["disposition"] == "cancelled_before_effect"
    for page in pages:
        await page.until_state("ended")
    snapshot = await check(service.client, *pages, duplicates=500)
    assert (snapshot["state"], snapshot["cancel"]["reason"], snapshot["cancel"]["version"]) == ("cancelled", "enough", 1)


async def test_a_session_in_two_tabs(service: Service, store: Store, profiles: Profiles) -> None:
    """All its runs, also one that begins while the tabs look, over one connection for both; also when the leading tab closes."""
    hands = [await start(store, session_id="talk")]
    browser = await profiles(service.base_url)
    pages = [await Watching.open(browser, "talk", kind="session") for _ in range(2)]
    for page in pages:
        await page.until_state("live")
    hands.append(await start(store, session_id="talk"))
    for hand in hands:
        await say(hand, 10)
    await one_stream(service.client)
    leader = [(await page.view())["connection"]["leader"] for page in pages].index(True)
    await pages.pop(leader).tab.closed()
    for hand in hands:
        await say(hand, 10)
    wanted = (await service.client.get("/sessions/talk")).json()
    view = await pages[0].until_sequence(wanted["sequence"])
    assert view["text"] == text_of(wanted) and len(wanted["messages"]) == 2
    assert set(view["applied"].values()) == {1} and view["session"]["active"] == [hand.run_id for hand in hands]
    await one_stream(service.client)
    for hand in hands:
        await hand.finish()
    await pages[0].until("view.session.active.length === 0")
