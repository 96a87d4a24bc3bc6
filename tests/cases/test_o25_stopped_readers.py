"""O25: a viewer that stops reading eats the server: memory stays, the viewer is cut, and whoever comes back gets everything."""

import subprocess
import time
from statistics import median

import msgspec

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.client import Follower, make_client
from ..support.drive import Hand, start
from ..support.launch import Api, Launcher
from ..support.scale import LONG
from ..support.stalled import Stalled
from ..support.waiting import wait_until

STALLED = 20
EVENTS = min(20_000, 1_500 * LONG)
SIZE = 4_000
BATCH = 50
WRITE_TIMEOUT = 1.0
GROWTH = 50 * 1024 * 1024
"""Most that the API may grow by; a copy of what is pending for each viewer would be four times that at least."""


def resident(api: Api) -> int:
    """Memory of a process, bytes."""
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(api.process.pid)], timeout=10)) * 1024


async def append(hand: Hand, count: int) -> list[float]:
    """Append large events in batches; what each batch took."""
    took: list[float] = []
    for first in range(0, count, BATCH):
        began = time.monotonic()
        await hand.emit(*(("note.made", {"n": first + n, "text": "x" * SIZE}) for n in range(BATCH)))
        took.append(time.monotonic() - began)
    return took


async def test_who_does_not_read_is_cut_and_costs_no_memory(launch: Launcher, store: Store, settings: Settings) -> None:
    """Twenty clients read nothing of tens of megabytes: the process stays small, the healthy viewer and the writer notice nothing."""
    api = launch.api(msgspec.structs.replace(settings, write_timeout=WRITE_TIMEOUT, lease=60.0))
    hand = await start(store, "flood")
    alone = median(await append(hand, 10 * BATCH))
    path = f"/agent-runs/{hand.run_id}/events"
    async with make_client(api.base_url) as client:
        before = resident(api)
        stalled = [await Stalled(api.base_url, path).open() for _ in range(STALLED)]
        healthy = await Follower(client, hand.run_id).open()
        took = await append(hand, EVENTS)
        latest = 2 + 10 * BATCH + EVENTS
        await healthy.until(lambda f: f.frames and f.frames[-1].id == f"{hand.run_id}:{latest}", timeout=30)
        grown = resident(api) - before
        assert grown < GROWTH, f"the process grew by {grown >> 20} MiB"
        assert median(took) < 5 * alone + 0.05, "the writer was slowed down by viewers"

        async def all_cut() -> bool:
            text = (await client.get("/metrics")).text
            return f'reattach_streams_ended_total{{reason="slow_consumer"}} {STALLED}.0' in text

        await wait_until(all_cut, "the stalled viewers to be cut", timeout=10 * WRITE_TIMEOUT)
        assert healthy.stream.ended is None
        returning = await stalled[0].read()
        assert returning.ended == "cut" and returning.sequences == list(range(1, len(returning.sequences) + 1))
        back = await Follower(client, hand.run_id).open(returning.sequences[-1])
        await hand.finish()
        for follower, first in ((healthy, 1), (back, returning.sequences[-1] + 1)):
            assert await follower.until_end(timeout=30) == "clean"
            follower.check(first, latest + 1)
        for one in stalled:
            one.close()
