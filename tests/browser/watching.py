"""Pages that watch one run with the browser module and nothing else, and what must hold for them whatever happened."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from reattach.store import Store

from ..support.drive import Hand
from ..support.waiting import wait_until
from .chromium import Profile, Tab

HARNESS = (Path(__file__).parent / "page.js").read_text("utf-8")
DELAY = 20
"""Every pause before a new connection, milliseconds: tests need not wait for the spread that a crowd needs."""

View = dict[str, Any]


class Watching:
    """One tab that watches one run."""

    def __init__(self, tab: Tab, identity: str, kind: str) -> None:
        self.tab, self.identity, self.kind = tab, identity, kind

    @classmethod
    async def open(cls, profile: Profile, identity: str, *, kind: str = "run", **options: Any) -> "Watching":
        """Open a tab on a run or a session; `options` are the module's, and `tokens` are handed out one after the other."""
        if not profile.tabs:
            await profile.prepare(HARNESS)
        about = {"kind": kind, "id": identity, "delay": DELAY, "window": 100_000, **options}
        watching = cls(await profile.tab(f"/client/package.json#watch={quote(json.dumps(about))}"), identity, kind)
        await watching.ready()
        return watching

    async def ready(self) -> None:
        """Wait until the page has begun."""
        await self.tab.until("'mirror' in window")

    async def view(self) -> View:
        """What it shows, without the events."""
        return await self.tab.run("(({ events, ...view }) => ({ ...view, text: output.textContent, applied }))(mirror.getSnapshot())")

    async def until(self, condition: str, argument: Any = None) -> View:
        """Wait until something is true of the ``view`` (and the ``argument``), in JavaScript."""
        await self.tab.until(f"argument => (view => {condition})(mirror.getSnapshot())", argument)
        return await self.view()

    async def until_sequence(self, sequence: int) -> View:
        """Wait until it has come so far."""
        return await self.until(f"view.{self.kind}?.sequence >= argument", sequence)

    async def until_state(self, state: str) -> View:
        """Wait until the connection is in this state."""
        return await self.until("view.connection.state === argument", state)

    async def refresh(self) -> None:
        """Press F5."""
        await self.tab.do(self.tab.page.reload())
        await self.ready()


def text_of(snapshot: View) -> str:
    """What a page shows of it."""
    return "|".join(part.get("text", "") for message in snapshot["messages"] for part in message["content"])


async def check(
    client: httpx.AsyncClient, *pages: Watching, gaps: int = 0, duplicates: int = 0, headers: dict[str, str] | None = None
) -> View:
    """What every page shows is what the service says; each event was applied once; nothing was cancelled.

    Args:
        client: Of the service.
        pages: All of the same run.
        gaps: How often each may have been repaired.
        duplicates: How many events that came again each may have dropped: a tab that joins may be ahead of the one that leads.
        headers: To ask the service with.
    """
    snapshot = (await client.get(f"/agent-runs/{pages[0].identity}", headers=headers)).json()
    for page in pages:
        view = await page.until_sequence(snapshot["sequence"])
        shown = view["run"]
        assert view["text"] == text_of(snapshot)
        never_live = {} if shown["expires_at"] else {"expires_at": None, "events_expire_at": None}
        assert {**snapshot, **never_live} == shown
        assert set(view["applied"].values()) <= {1}, view["applied"]
        assert view["counters"]["gaps"] <= gaps and view["counters"]["duplicates"] <= duplicates, view["counters"]
    return snapshot


async def streams(client: httpx.AsyncClient) -> int:
    """How many event streams the service has open."""
    text = (await client.get("/metrics")).text
    return int(float(next(line.split()[1] for line in text.splitlines() if line.startswith("reattach_streams "))))


async def one_stream(client: httpx.AsyncClient, count: int = 1) -> None:
    """Wait until there is one, and no more."""
    await wait_until(lambda: _is(client, count), f"{count} open stream")


async def _is(client: httpx.AsyncClient, count: int) -> bool:
    return await streams(client) == count


async def say(hand: Hand, words: int, message: str = "m") -> int:
    """Words of one message, each an event; the sequence after them."""
    await hand.emit(*(("message.delta", {"message_id": message, "text": f"{n} "}) for n in range(words)))
    return await sequence_of(hand.store, hand.run_id)


async def sequence_of(store: Store, run_id: str) -> int:
    """Where a run is."""
    return (await store.runs.load(run_id)).sequence
