"""What a page meets that was away too long, or whose token has run out."""

import time
from pathlib import Path

import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.admin import Admin
from ..support.drive import start
from ..support.factories import Proxies, Replicas
from ..support.issuer import SECRET, hs256
from ..support.service import Service
from .conftest import Profiles
from .watching import Watching, check, one_stream, say, sequence_of, text_of

pytestmark = pytest.mark.provokes_network_errors

ISSUER = hs256()


async def test_the_token_expires_and_is_renewed(replicas: Replicas, tmp_path: Path, profiles: Profiles) -> None:
    """Two tabs over one connection, whose token ends: the next one is asked for, and both go on without a gap."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    service = await replicas(jwt_keys=str(path), keepalive=0.5, jwt_leeway=0)
    hand = await start(service.store, initiator="ann")
    browser = await profiles(service.base_url)
    pages = [
        await Watching.open(browser, hand.run_id, tokens=[ISSUER.token(exp=time.time() + 4), ISSUER.token(exp=time.time() + 300)])
        for _ in range(2)
    ]
    for page in pages:
        await page.until_state("live")
    await say(hand, 10)
    leader = pages[[(await page.view())["connection"]["leader"] for page in pages].index(True)]
    await leader.until("view.counters.resumes === 1")
    for page in pages:
        await page.until_sequence(await say(hand, 10))
    await one_stream(service.client)
    headers = {"authorization": f"Bearer {ISSUER.token()}"}
    await check(service.client, *pages, duplicates=500, headers=headers)
    await hand.finish()
    for page in pages:
        await page.until_state("ended")


async def cut_off(admin: Admin, settings: Settings, store: Store, run_id: str) -> int:
    """Take away every event of a run but the last; its sequence."""
    record, sequence = f"{settings.prefix}:{{{run_id[4:6]}}}:run:{run_id}", await sequence_of(store, run_id)
    for stream in ("log", "audit"):
        admin.xtrim(f"{record}:{stream}", minid=f"{sequence}-0", approximate=False)
    return sequence


@pytest.mark.leaves_wreckage("its log is cut off by force")
async def test_the_cursor_expires_while_the_laptop_sleeps(
    service: Service, settings: Settings, store: Store, admin: Admin, proxies: Proxies, profiles: Profiles
) -> None:
    """The events it missed are gone when it wakes: it takes the snapshot, and shows the truth."""
    hand, proxy = await start(store), await proxies(service.base_url)
    profile = await profiles(proxy.http)
    page = await Watching.open(profile, hand.run_id)
    await page.until_sequence(await say(hand, 10))
    await page.until_state("live")
    with profile.stopped():
        proxy.cut()
        await say(hand, 200)
        await hand.emit(("message.checkpoint", {"message_id": "m", "text": "so far"}))
        await cut_off(admin, settings, store, hand.run_id)
    await page.until("view.run.messages[0].content[0].text === 'so far'")
    await page.until_state("live")
    await page.until_sequence(await say(hand, 5))
    snapshot = (await service.client.get(f"/agent-runs/{hand.run_id}")).json()
    view = await page.view()
    assert view["text"] == text_of(snapshot) == "so far0 1 2 3 4 "
    assert (view["counters"]["gaps"], set(view["applied"].values())) == (0, {1})
    await one_stream(service.client)
    await hand.finish()
    await page.until_state("ended")


@pytest.mark.leaves_wreckage("its log is cut off by force")
async def test_o09_an_old_cursor_is_never_answered_with_a_part(
    service: Service, settings: Settings, store: Store, admin: Admin, profiles: Profiles
) -> None:
    """A plain EventSource with a cursor that is gone gets an error and no event, with one that is kept exactly what follows.

    A page whose own stored place is gone, or in the future, shows the truth all the same.
    """
    hand = await start(store)
    page = await Watching.open(await profiles(service.base_url), hand.run_id)
    await page.until_sequence(await say(hand, 200))
    last = await cut_off(admin, settings, store, hand.run_id)
    ask = """([run, after]) => new Promise(resolve => {
        const source = new EventSource(`/agent-runs/${run}/events?after=${after}`), got = []
        source.addEventListener('message.delta', ({ lastEventId }) => (got.push(lastEventId), resolve(got), source.close()))
        source.addEventListener('error', () => source.readyState === EventSource.CLOSED && resolve([...got, 'closed']))
    })"""
    for after in (0, 10, last - 2):
        assert await page.tab.run(ask, [hand.run_id, after]) == ["closed"]
    assert await page.tab.run(ask, [hand.run_id, last - 1]) == [f"{hand.run_id}:{last}"]
    for stored in (3, last - 1, last + 1000):
        key = f"reattach:{service.base_url}/agent-runs/{hand.run_id}"
        keep = "([key, place]) => addEventListener('pagehide', () => sessionStorage.setItem(key, `${place} ${Date.now()}`))"
        await page.tab.run(keep, [key, stored])
        await page.refresh()
        await page.until_state("live")
        await page.until_sequence(last)
        assert (await page.view())["text"] == text_of((await service.client.get(f"/agent-runs/{hand.run_id}")).json())
    await hand.finish()
    await page.until_state("ended")
