"""A page without a browser, as tests see it."""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..support.processes import ROOT
from ..support.waiting import wait_until

FOLDER = Path(__file__).parent
MODULE = ROOT / "service" / "reattach" / "client"

View = dict[str, Any]


class Refused(Exception):
    """The module refused what it was asked for."""

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__(about)
        self.about = about


async def node(*arguments: str) -> asyncio.subprocess.Process:
    """Start Node with pipes to it."""
    pipe = asyncio.subprocess.PIPE
    # A view is one line, and may be long.
    return await asyncio.create_subprocess_exec("node", *arguments, stdin=pipe, stdout=pipe, cwd=ROOT, env=dict(os.environ), limit=2**26)


class Page:
    """One mirror in a process of its own.

    Attributes:
        changes: What it told, newest last.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process, self.changes = process, list[View]()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read(), name="page")

    @classmethod
    async def open(cls, kind: str, identity: str, base: str, **options: Any) -> "Page":
        """Open a page that looks at a run or a session. `tokens` are handed out one after the other; `delay` is every pause, in ms."""
        given = {"kind": kind, "id": identity, "base": base, "delay": 20, **options}
        return cls(await node(str(FOLDER / "page.mjs"), json.dumps(given)))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            said = json.loads(line)
            if "change" in said:
                self.changes.append(said["change"])
            else:
                self._answers.put_nowait(said)

    @property
    def now(self) -> View:
        """The latest change: state, sequence, connection, counters."""
        return self.changes[-1] if self.changes else {}

    async def until(self, met: Callable[[View], Any], description: str, *, timeout: float = 15) -> View:
        """Wait until it shows, or has shown since this was called, what is wanted; that.

        Raises:
            AssertionError: It did not come to that.
        """
        looked = max(len(self.changes) - 1, 0)

        def shown() -> View | None:
            nonlocal looked
            new, looked = self.changes[looked:], max(len(self.changes) - 1, 0)
            return next((change for change in new if met(change)), None)

        try:
            return await wait_until(shown, description, timeout=timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}; it shows {self.now}") from None

    async def until_state(self, connection: str, *, timeout: float = 15) -> View:
        """Wait until the connection is in this state."""
        return await self.until(lambda v: v["connection"]["state"] == connection, f"the connection to be {connection}", timeout=timeout)

    async def until_sequence(self, sequence: int) -> View:
        """Wait until it has come so far."""
        return await self.until(lambda v: (v.get("sequence") or 0) >= sequence, f"the page to come to {sequence}")

    async def act(self, what: str, about: Any = None) -> Any:
        """Have it do something; what it answers.

        Raises:
            Refused: It was refused.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"act": what, "about": about}).encode() + b"\n")
        await self._process.stdin.drain()
        said = await asyncio.wait_for(self._answers.get(), 15)
        if "refused" in said:
            raise Refused(said["refused"])
        return said["answer"]

    async def view(self) -> View:
        """Everything it shows, with `applied`: how often each event was."""
        return await self.act("view")

    async def close(self) -> None:
        """Close the page."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._reading
