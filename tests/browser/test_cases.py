"""Field cases that are about browsers, in one: also what the browser's own EventSource makes of the service."""

import time
from pathlib import Path
from typing import Any

import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support import agents
from ..support.calls import new_script
from ..support.drive import claim, create, start
from ..support.factories import Proxies, Replicas, Workers
from ..support.scale import seconds
from ..support.service import Service
from ..support.waiting import wait_until
from .conftest import Profiles
from .watching import Watching, check, one_stream, say, sequence_of

pytestmark = pytest.mark.provokes_network_errors

SOURCE = """([run, after]) => {
    window.got = []
    window.ends = 0
    window.source = new EventSource(`/agent-runs/${run}/events${after ? `?after=${after}` : ''}`)
    for (const type of ['run.created', 'run.started', 'step.done', 'run.succeeded']) {
        source.addEventListener(type, ({ lastEventId }) => got.push(Number(lastEventId.split(':')[1])))
    }
    source.addEventListener('error', () => ends++)
}"""


async def test_o01_first_events_after_a_lost_connection(service: Service, store: Store, proxies: Proxies, profiles: Profiles) -> None:
    """Cut before there was any event but the first, while the run waits for a worker: nothing of its beginning is missed."""
    run_id, proxy = await create(store), await proxies(service.base_url)
    page = await Watching.open(await profiles(proxy.http), run_id)
    await page.until_state("live")
    await page.tab.run(SOURCE, [run_id, 0])
    await page.tab.until("got.length === 1")
    proxy.cut()
    await page.until("view.counters.resumes === 1")
    assert (await page.view())["run"]["state"] == "queued"
    hand = await claim(store)
    await hand.emit_many(3)
    await hand.finish()
    await page.until_state("ended")
    await check(service.client, page)
    await page.tab.until("got.length === 6 && source.readyState === EventSource.CLOSED")
    assert await page.tab.run("got") == [1, 2, 3, 4, 5, 6]
    assert len((await service.client.get("/agent-runs")).json()["runs"]) == 1


async def test_o02_viewers_leave(replicas: Replicas, workers: Workers, tmp_path: Path, profiles: Profiles) -> None:
    """Of three people one closes the tab, one the browser, one stays and misses nothing; the run does its work once, and all can return."""
    await workers(agents.agents)
    service, counter = await replicas(), str(tmp_path / "counter")
    run_id = await new_script(service.client, ["say", "one two three four", 0.15], ["effect", counter], ["say", "five six", 0.1])
    people = [await profiles(service.base_url) for _ in range(3)]
    first, second, third = [await Watching.open(profile, run_id) for profile in people]
    await first.until("view.run?.sequence >= 4")
    await first.tab.closed()
    await people[1].close()
    await third.until_state("ended")
    back = await Watching.open(people[0], run_id)
    await back.until_state("ended")
    snapshot = await check(service.client, third, back)
    assert (snapshot["state"], snapshot["cancel"]["version"], snapshot["attempt"]) == ("succeeded", 0, 1)
    assert agents.count(counter) == 1
    assert second.tab.complaints == []


async def test_o11d_an_event_source_stops_after_the_end(replicas: Replicas, proxies: Proxies, profiles: Profiles, store: Store) -> None:
    """The end of the stream is no end for an EventSource: it comes again, is told that nothing is left (204), and stops. Six frames."""
    hand, service = await start(store), await replicas()
    await hand.emit_many(3)
    await hand.finish()
    tab = await (await profiles(service.base_url)).tab("/client/reattach.js")
    await tab.run(SOURCE, [hand.run_id, 0])
    await tab.until("source.readyState === EventSource.CLOSED")
    assert await tab.run("[got, ends]") == [[1, 2, 3, 4, 5, 6], 2]
    assert len([request for request in tab.asked if "/events" in request]) == 2


async def test_o11e_a_run_that_ends_frees_its_connection(service: Service, store: Store, profiles: Profiles) -> None:
    """Six streams are all that a browser allows over HTTP/1.1: when one run ends, what waited for a connection gets it."""
    hands = [await start(store, f"agent{n}") for n in range(6)]
    tab = await (await profiles(service.base_url)).tab("/client/reattach.js")
    await tab.run(
        "runs => void (window.sources = runs.map(run => new EventSource(`/agent-runs/${run}/events`)))", [h.run_id for h in hands]
    )
    await one_stream(service.client, 6)
    await tab.run("void fetch('/limits').then(() => (window.served = true))")
    assert await tab.run("window.served") is None
    await hands[0].finish()
    await tab.until("window.served")
    for hand in hands[1:]:
        await hand.finish()


async def test_o12_a_tab_that_wakes_up_starts_nothing(service: Service, proxies: Proxies, profiles: Profiles) -> None:
    """While the answer to a start is late, the person goes to another tab and back, and the answer is lost: one run."""
    proxy = await proxies(service.base_url)
    browser = await profiles(proxy.http)
    tab = await browser.tab("/client/reattach.js")
    await tab.run("import('/client/reattach.js').then(reattach => void (window.reattach = reattach))")
    proxy.replies.clear()
    await tab.run("void reattach.start({ agent: 'idle', input: {} }).then(run => (window.run = run), e => (window.run = e.code))")
    other = await browser.tab("about:blank")
    await tab.do(tab.page.bring_to_front())
    await other.do(other.page.bring_to_front())
    await tab.do(tab.page.bring_to_front())

    async def there() -> list[str]:
        return [run["run_id"] for run in (await service.client.get("/agent-runs?agent=idle")).json()["runs"]]

    made = await wait_until(there, "the run to exist")
    proxy.cut()
    proxy.replies.set()
    await tab.until("window.run")
    assert [await tab.run("run.run_id")] == made == await there()


async def test_o18_a_run_that_waits_for_a_person(
    replicas: Replicas, workers: Workers, settings: Settings, proxies: Proxies, tmp_path: Path, profiles: Profiles
) -> None:
    """The page stays connected while nothing happens for five leases; API and worker are replaced; it still asks, and the answer counts."""
    old, worker, counter = await replicas(keepalive=0.4), await workers(agents.agents, lease=0.5), str(tmp_path / "counter")
    proxy = await proxies(old.base_url)
    run_id = await new_script(old.client, ["text", "Sure?"], ["wait", "approval"], ["effect", counter])
    page = await Watching.open(await profiles(proxy.http), run_id, stall=1000)
    await page.until("view.run?.state === 'waiting' && view.connection.state === 'live'")
    await worker.close()
    began = time.monotonic()
    await wait_until(lambda: time.monotonic() - began > seconds(2.5), "five leases to pass, in which nothing but keep-alives comes")
    view = await page.view()
    assert (view["run"]["state"], view["counters"]["resumes"], view["connection"]["state"]) == ("waiting", 0, "live")
    new = await replicas(keepalive=0.4)
    proxy.upstream_port = int(new.base_url.rpartition(":")[2])
    await old.stop()
    await workers(agents.agents, lease=0.5)
    await page.until("view.counters.resumes === 1 && view.run.state === 'waiting'")
    await page.tab.run("void reattach.answer(mirror.getSnapshot().run.run_id, { wait_id: 'approval_1', value: true }, options)")
    await page.until_state("ended")
    snapshot = await check(new.client, page)
    assert (snapshot["state"], agents.count(counter)) == ("succeeded", 1)


async def test_memory_of_a_long_run(service: Service, store: Store, profiles: Profiles) -> None:
    """A page that follows 50,000 events keeps the latest of them and the text: what it holds after 5,000 is what it holds after 50,000."""
    hand = await start(store)
    page = await Watching.open(await profiles(service.base_url), hand.run_id, window=500, count=False)
    await page.until_state("live")

    async def held() -> int:
        session: Any = await page.tab.do(page.tab.page.context.new_cdp_session(page.tab.page))
        await page.tab.do(session.send("HeapProfiler.collectGarbage"))
        return int((await page.tab.do(session.send("Runtime.getHeapUsage")))["usedSize"])

    sizes: list[int] = []
    for end in (5_000, 50_000):
        await hand.emit_many(end - (await sequence_of(store, hand.run_id)), size=1000)
        await page.until_sequence(end)
        sizes.append(await held())
    await say(hand, 10)
    await hand.finish()
    await page.until_state("ended")
    view = await check(service.client, page)
    assert view["sequence"] == 50_011
    print(f"JavaScript heap: {sizes[0] / 1e6:.1f} MB after 5,000 events, {sizes[1] / 1e6:.1f} MB after 50,000")
    assert sizes[1] < sizes[0] + 1_000_000, sizes
    assert await page.tab.run("mirror.getSnapshot().events.length") == 500
