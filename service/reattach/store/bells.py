"""Hints: which runs have news (for followers), which agents have work and which runs shall stop (for workers).

A hint may be lost, late or doubled; it is never data. Whoever listens re-reads everything when told that hints may have been missed.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
import structlog

from ..core.errors import StoreUnavailable
from ..core.ids import shard_of
from .door import BlockingReader
from .keys import Keys
from .redis import Target

_log = structlog.get_logger("reattach.bells")

BELL_CAP: Final = 10_000
WAKE_CAP: Final = 1_000
"""As in the scripts: a reply of this length may have been trimmed before we read it."""

_BLOCK_MS: Final = 5_000
_OFTEN: Final = 5
"""Connections of a process that may ask again as often as that."""
_MAX_PAUSE: Final = 2.0


class Ring(msgspec.Struct, frozen=True):
    """Runs and sessions that have news, by id and name. `everything`: hints may have been missed, so any may have news."""

    runs: frozenset[str]
    everything: bool = False


class Wake(msgspec.Struct, frozen=True):
    """Agents with the shards they have work in, runs that were asked to stop. `everything`: hints may have been missed."""

    work: frozenset[tuple[str, str]]
    cancelled: frozenset[str]
    everything: bool = False


class _Listener:
    """Reads some capped streams with one blocked connection, for ever; survives every outage."""

    def __init__(
        self,
        target: Target,
        streams: list[str],
        cap: int,
        on_entries: Callable[[list[Any], bool], None],
        on_state: Callable[[bool], None] | None,
        ready: Callable[[], Awaitable[None]] | None = None,
        block_ms: int = _BLOCK_MS,
    ) -> None:
        self._target, self._cap, self._on_entries, self._on_state, self._ready = target, cap, on_entries, on_state, ready
        self._block_ms = block_ms
        self._positions: dict[bytes, bytes] = {s.encode(): b"$" for s in streams}

    async def run(self) -> None:
        failures = 0
        reader = BlockingReader(self._target)
        try:
            while True:
                try:
                    await self._pin(reader)
                    # Between the loss and this moment hints went by unheard, so everything is re-read now that new ones are safe.
                    self._on_entries([], True)
                    self._say(True)
                    failures = 0
                    while True:
                        if self._ready is not None:
                            await self._ready()
                        await self._listen(reader)
                except (StoreUnavailable, TimeoutError) as e:
                    await reader.close()
                    self._say(False)
                    failures += 1
                    if failures == 1:
                        _log.warning("bells.lost", error=str(e))
                    await asyncio.sleep(random.uniform(0.5, 1) * min(0.05 * 2**failures, _MAX_PAUSE))
        finally:
            await reader.close()

    def _say(self, up: bool) -> None:
        if self._on_state is not None:
            self._on_state(up)

    async def _pin(self, reader: BlockingReader) -> None:
        # `$` is evaluated anew by each XREAD and would skip what arrives between two of them: turn it into an id first.
        for stream in self._positions:
            async with asyncio.timeout(self._target.timeout):
                reply = await reader.read("XREVRANGE", stream, "+", "-", "COUNT", 1)
            self._positions[stream] = bytes(reply[0][0]) if reply else b"0-0"

    async def _listen(self, reader: BlockingReader) -> None:
        # The client has no socket timeout; a server that vanished without a word is noticed here instead.
        async with asyncio.timeout(self._block_ms / 1000 + self._target.timeout):
            reply = await reader.read(
                "XREAD", "COUNT", self._cap, "BLOCK", self._block_ms, "STREAMS", *self._positions, *self._positions.values()
            )
        if not reply:
            return
        entries: list[Any] = []
        missed = False
        for stream, found in reply:
            self._positions[stream] = found[-1][0]
            missed = missed or len(found) >= self._cap
            entries.extend(found)
        self._on_entries(entries, missed)


async def _run_all(listeners: list[_Listener]) -> None:
    async with asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(listener.run())


def _plan(target: Target, streams: list[str]) -> list[list[str]]:
    # On a cluster one command reaches one slot only: a connection per shard, still a constant.
    return [[s] for s in streams] if target.is_cluster else [streams]


class Listening(Protocol):
    """What a listener needs of a store."""

    target: Target
    keys: Keys


class Bells:
    """Tells which runs have news. Run `run()` as a task; callbacks come on the same loop and must not block."""

    def __init__(
        self,
        store: Listening,
        on_ring: Callable[[Ring], None],
        *,
        on_state: Callable[[bool], None] | None = None,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Listen to every shard's bell.

        Args:
            store: Where Redis is and how its keys are named.
            on_ring: Called with every batch of hints.
            on_state: Called with True when hints flow, False when the connection is lost.
            ready: Awaited before every read, so that a busy follower takes its hints in fewer, larger batches.
        """
        self._on_ring = on_ring
        streams = [store.keys.bell(tag) for tag in store.keys.tags]
        self._listeners = [_Listener(store.target, part, BELL_CAP, self._heard, on_state, ready) for part in _plan(store.target, streams)]

    def _heard(self, entries: list[Any], missed: bool) -> None:
        # Each entry names a run, and its session where it has one.
        self._on_ring(Ring(frozenset(text.decode() for e in entries for text in e[1][1::2]), missed))

    async def run(self) -> None:
        """Listen until cancelled."""
        await _run_all(self._listeners)


class Wakes:
    """Tells workers about new work and requests to stop. Run `run()` as a task."""

    def __init__(self, store: Listening, on_wake: Callable[[Wake], None], *, on_state: Callable[[bool], None] | None = None) -> None:
        """As `Bells`, for the workers' hints."""
        self._on_wake = on_wake
        plan = _plan(store.target, [store.keys.wake(tag) for tag in store.keys.tags])
        # Where many connections listen, each asks again less often: an idle worker costs no more on a cluster of many shards.
        block_ms = _BLOCK_MS * max(1, len(plan) // _OFTEN)
        self._listeners = [_Listener(store.target, part, WAKE_CAP, self._heard, on_state, block_ms=block_ms) for part in plan]

    def _heard(self, entries: list[Any], missed: bool) -> None:
        named = [(e[1][0], [text.decode() for text in e[1][1::2]]) for e in entries]
        self._on_wake(
            Wake(
                frozenset((texts[0], shard_of(texts[1])) for kind, texts in named if kind == b"agent"),
                frozenset(texts[0] for kind, texts in named if kind == b"cancel"),
                missed,
            )
        )

    async def run(self) -> None:
        """Listen until cancelled."""
        await _run_all(self._listeners)
