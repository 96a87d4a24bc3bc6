"""A page in a real browser against the real service, whatever happens to the way between them, to the service, or to the page."""

import random
import time

import pytest

from reattach.store import Store

from ..support.drive import start
from ..support.factories import Proxies
from ..support.launch import Launcher
from ..support.scale import seconds
from ..support.service import Service
from .conftest import Profiles
from .watching import Watching, check, one_stream, say, sequence_of

pytestmark = pytest.mark.provokes_network_errors


async def test_refresh_in_the_middle_of_a_message(service: Service, store: Store, profiles: Profiles) -> None:
    """F5 while words come in: the page shows the whole message again, goes on live, and the old connection is gone."""
    hand = await start(store)
    page = await Watching.open(await profiles(service.base_url), hand.run_id)
    await page.until_sequence(await say(hand, 20))
    for _ in range(3):
        await page.refresh()
        await page.until_sequence(await say(hand, 10))
        await page.until_state("live")
        await one_stream(service.client)
    await check(service.client, page)
    await hand.finish(outcome=None)
    await page.until_state("ended")
    snapshot = await check(service.client, page)
    assert (snapshot["state"], snapshot["cancel"]["version"]) == ("succeeded", 0)
    await one_stream(service.client, 0)


async def test_the_service_is_killed_and_started_again(launch: Launcher, store: Store, profiles: Profiles, service: Service) -> None:
    """The page says that it is trying, and goes on behind its last event when the service is back."""
    api, hand = launch.api(), await start(store)
    page = await Watching.open(await profiles(api.base_url), hand.run_id)
    await page.until_state("live")
    await page.until_sequence(await say(hand, 10))
    api.kill9()
    await say(hand, 10)
    view = await page.until("view.connection.failures > 1")
    assert view["connection"]["state"] in ("retrying", "connecting") and view["run"]["state"] == "running"
    api.start()
    await page.until_sequence(await say(hand, 10))
    await hand.finish()
    await page.until_state("ended")
    await check(service.client, page)


async def test_twenty_cuts_during_five_hundred_events(service: Service, store: Store, proxies: Proxies, profiles: Profiles) -> None:
    """Cut off at any moment, in the middle of a frame too: 500 events, each once."""
    chance, hand, proxy = random.Random(20), await start(store), await proxies(service.base_url)
    page = await Watching.open(await profiles(proxy.http), hand.run_id)
    await page.until_state("live")
    cuts = sorted(chance.sample(range(500), 20))
    proxy.segment = 64
    for part in range(50):
        await say(hand, 10)
        if cuts and cuts[0] < 10 * part + 10:
            cuts.pop(0)
            proxy.cut()
            await page.until("view.connection.state === 'live'")
    await hand.finish(outcome={"done": True})
    await page.until_state("ended")
    await check(service.client, page)
    view = await page.view()
    assert len(view["applied"]) == view["counters"]["events"] == 501
    assert view["counters"]["resumes"] >= 10


@pytest.mark.parametrize("network", ["cut", "same"])
async def test_a_laptop_sleeps(service: Service, store: Store, proxies: Proxies, profiles: Profiles, network: str) -> None:
    """The whole browser is stopped; meanwhile the run goes on, and the network is another one afterwards, or the same."""
    hand, proxy = await start(store), await proxies(service.base_url)
    profile = await profiles(proxy.http)
    page = await Watching.open(profile, hand.run_id, stall=1500)
    await page.until_state("live")
    await page.until_sequence(await say(hand, 10))
    with profile.stopped():
        asleep = time.monotonic()
        if network == "cut":
            proxy.cut()
        await say(hand, 50)
        while time.monotonic() - asleep < seconds(2):
            await sequence_of(store, hand.run_id)
    await page.until_sequence(await say(hand, 10))
    await page.until_state("live")
    await one_stream(service.client)
    await hand.finish()
    await page.until_state("ended")
    await check(service.client, page)


async def test_a_run_that_finished_while_the_page_was_away(service: Service, store: Store, profiles: Profiles) -> None:
    """Away on another page, back with the browser's button: it shows the end, and no stream is left or needed."""
    hand = await start(store)
    page = await Watching.open(await profiles(service.base_url), hand.run_id)
    await page.until_sequence(await say(hand, 10))
    await page.tab.goto("/client/reattach.js")
    await one_stream(service.client, 0)
    await say(hand, 10)
    await hand.finish(outcome="while you were away")
    await page.tab.do(page.tab.page.go_back(wait_until="commit"))
    await page.ready()
    view = await page.until_state("ended")
    assert view["run"]["outcome"] == "while you were away"
    await check(service.client, page)


async def test_a_page_that_is_put_aside_whole(service: Service, store: Store, profiles: Profiles) -> None:
    """Away and back by the browser's own buttons, which keep the page as it was: it let its connection go, and catches up."""
    hand = await start(store)
    page = await Watching.open(await profiles(service.base_url), hand.run_id)
    await page.until_sequence(await say(hand, 10))
    await page.until_state("live")
    await page.tab.run("window.kept = true")
    await page.tab.goto("/client/reattach.js")
    await one_stream(service.client, 0)
    missed = await say(hand, 10)
    await page.tab.do(page.tab.page.go_back(wait_until="commit"))
    await page.ready()
    assert await page.tab.run("window.kept"), "the browser made the page anew"
    await page.until_sequence(missed)
    await page.until_sequence(await say(hand, 10))
    await page.until_state("live")
    await one_stream(service.client)
    await check(service.client, page)
    assert (await page.view())["counters"]["resumes"] == 1
    await hand.finish()
    await page.until_state("ended")
