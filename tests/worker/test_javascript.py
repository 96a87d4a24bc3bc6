"""The example worker in plain JavaScript, run by Node against the API in a process of its own, and killed wherever it hurts."""

import shutil
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from ..support.client import make_client
from ..support.launch import Launcher
from ..support.processes import ROOT, Child
from ..support.waiting import wait_until

EXAMPLE: Final = ROOT / "deploy" / "examples" / "worker.mjs"
MOST_LINES: Final = 60

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node 20: apt-get install nodejs")


class Node(Child):
    """``node worker.mjs``."""

    def __init__(self, name: str, url: str, folder: Path, slow_ms: int) -> None:
        self.notes = folder / "notes.txt"
        env = {"REATTACH_URL": url, "NOTES": str(self.notes), "SLOW_MS": str(slow_ms)}
        super().__init__(name, ["node", str(EXAMPLE)], log=folder / f"{name}.log", env=env)


class Nodes:
    """Workers against one API process."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self._folder = url, folder
        self._all: list[Node] = []

    def start(self, slow_ms: int = 0) -> Node:
        """Start one, whose tool takes this long before it has its effect, and again after it."""
        node = Node(f"node-{len(self._all) + 1}", self.url, self._folder, slow_ms)
        self._all.append(node)
        node.start()
        return node

    def close(self) -> None:
        """End them."""
        for node in self._all:
            node.close()


@pytest.fixture
def nodes(launch: Launcher, tmp_path: Path) -> Generator[Nodes]:
    """Workers against an API in a process of its own."""
    started = Nodes(launch.api().base_url, tmp_path)
    yield started
    started.close()


class Run:
    """A run of the example's agent, as its client sees it."""

    def __init__(self, client: httpx.AsyncClient, run_id: str) -> None:
        self._client, self._path = client, f"/agent-runs/{run_id}"
        self.run_id = run_id

    async def snapshot(self) -> dict[str, Any]:
        """How it stands."""
        return (await self._client.get(self._path)).json()

    async def types(self) -> list[str]:
        """Its event types."""
        page = (await self._client.get(f"{self._path}/events", params={"limit": 1000})).json()
        assert [event["sequence"] for event in page["events"]] == list(range(1, len(page["events"]) + 1))
        return [event["type"] for event in page["events"]]

    async def until(self, kind: str) -> None:
        """Wait for an event."""

        async def there() -> bool:
            return kind in await self.types()

        await wait_until(there, f"{self.run_id} to tell {kind}", timeout=25)

    async def answer(self) -> None:
        """Wait until it asks, and say yes."""

        async def asked() -> bool:
            return (await self.snapshot())["state"] == "waiting"

        await wait_until(asked, f"{self.run_id} to ask", timeout=25)
        answer = await self._client.post(f"{self._path}/inputs", json={"wait_id": "approval", "value": True})
        assert answer.status_code == 202

    async def cancel(self) -> None:
        """Ask it to stop."""
        await self._client.post(f"{self._path}/cancel")


@pytest.fixture
async def run(nodes: Nodes, task_guard: None) -> AsyncGenerator[Run]:
    """A fresh run of the example's agent."""
    async with make_client(nodes.url) as client:
        made = await client.post("/agent-runs", json={"agent": "node", "input": {"ticket": 981}})
        assert made.status_code == 201
        yield Run(client, made.json()["run_id"])


def test_it_is_short() -> None:
    """A worker is no more than this."""
    assert len(EXAMPLE.read_text().splitlines()) <= MOST_LINES


async def test_it_runs(nodes: Nodes, run: Run) -> None:
    """Text, a tool, a wait, an answer, an outcome."""
    node = nodes.start()
    await run.answer()
    await run.until("run.succeeded")
    assert await run.types() == [
        "run.created", "run.started", *["message.delta"] * 4, "message.completed", "tool.requested", "tool.completed", "run.waiting",
        "input.received", "run.resumed", "run.succeeded",
    ]  # fmt: skip
    told = await run.snapshot()
    key = f"{run.run_id}:note"
    assert told["outcome"] == {"note": {"key": key}, "approved": True}
    assert [m["content"][0]["text"] for m in told["messages"]] == ["Looking at the ticket."]
    assert node.notes.read_text() == f"{key} 981\n"


@pytest.mark.parametrize("after_the_effect", [False, True])
async def test_killed_around_its_effect(nodes: Nodes, run: Run, after_the_effect: bool) -> None:
    """Killed with -9 between intention and receipt: another one goes on, looks, and the note is there once."""
    first = nodes.start(slow_ms=60_000 if not after_the_effect else 1000)
    await run.until("tool.requested")
    if after_the_effect:
        await wait_until(first.notes.exists, "the note to be written")
    first.kill9()
    assert first.notes.exists() == after_the_effect
    nodes.start()
    await run.answer()
    await run.until("run.succeeded")
    types = await run.types()
    assert types.count("tool.unresolved") == 1 and types.count("run.retrying") == 1
    assert types.count("tool.requested") == (1 if after_the_effect else 2)
    assert first.notes.read_text() == f"{run.run_id}:note 981\n"
    told = await run.snapshot()
    assert (told["unresolved"], [t["status"] for t in told["tools"]], told["attempt"]) == ([], ["completed"], 2)


async def test_killed_while_nobody_works(nodes: Nodes, run: Run) -> None:
    """A run that waits needs no worker: it goes on, on another one, in the same attempt."""
    first = nodes.start()
    await run.until("run.waiting")
    first.kill9()
    await run.answer()
    nodes.start()
    await run.until("run.succeeded")
    assert (await run.snapshot())["attempt"] == 1


async def test_it_keeps_its_lease(nodes: Nodes, run: Run) -> None:
    """A tool that takes longer than the lease is no lost worker."""
    nodes.start(slow_ms=2500)
    await run.answer()
    assert (await run.types()).count("run.retrying") == 0


async def test_it_stops_when_asked(nodes: Nodes, run: Run) -> None:
    """At its next step; the note that was being written has its receipt, and the answer says so."""
    nodes.start(slow_ms=500)
    await run.until("tool.requested")
    await run.cancel()
    await run.until("run.cancelled")
    told = await run.snapshot()
    assert told["cancel"]["disposition"] == "cancelled_after_effect"
