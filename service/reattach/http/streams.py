"""All event streams of one process: how many there may be, and the one sweep that keeps every one of them honest.

A deadline around each write would cost more than the write itself. Instead one task looks at all viewers a few times per keep-alive
interval: who is silent gets a comment, who takes nothing is cut, who has lived long enough is asked to come back, and everybody's
permission is checked again. It runs only while there are streams.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import structlog

from ..core.errors import AuthUnavailable, NotFound, StoreUnavailable, TooManyStreams
from ..core.ids import is_session_name
from ..core.run import RunRecord
from ..core.session import as_run
from ..core.settings import Settings
from ..obs.metrics import STREAMS
from ..store import Store
from ..tail import Hub
from .auth import Authorizer, Principal, permitted
from .auth.revoked import Revoked

_log = structlog.get_logger("reattach.streams")

_BATCH: Final = 500
_AT_ONCE: Final = 64
_TICKS_PER_KEEPALIVE: Final = 10
_LONGEST_TICK: Final = 0.5
_ABOUT_TO_BEGIN: Final = 5.0
_UNKNOWN: Final = "unknown"
_PATIENCE: Final = 1.8
"""In parts of the interval at which it is asked, two of which are a keep-alive interval: so long, nobody reads on an old answer."""


class Viewer(Protocol):
    """One open stream, as the sweep sees it."""

    principal: Principal
    run_id: str
    authorised_at: float

    def tick(self, now: float) -> None:
        """Look after yourself; must not block."""
        ...

    def close(self, reason: str) -> None:
        """Say why and end."""
        ...


class Streams:
    """The streams of one process."""

    def __init__(self, store: Store, hub: Hub, settings: Settings, authorizer: Authorizer, revoked: Revoked) -> None:
        """No streams yet.

        Args:
            store: Where a run's current owner and scope are.
            hub: Once it is closing, no stream begins.
            settings: `max_streams` and the keep-alive interval are taken from it.
            authorizer: Asked again and again while streams are open.
            revoked: What was taken away; it tells when something was.
        """
        self._store, self._hub, self._authorizer = store, hub, authorizer
        self._most = settings.max_streams
        self._viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None
        self._check: asyncio.Task[None] | None = None
        self.tick = min(settings.keepalive / _TICKS_PER_KEEPALIVE, _LONGEST_TICK)
        self._check_every = settings.keepalive / 2
        self._asking = asyncio.Semaphore(_AT_ONCE)
        self._revoked, self._clock = revoked, asyncio.get_running_loop().time
        self._put_out_until = 0.0
        revoked.on_change(self.put_out)

    def __len__(self) -> int:
        return len(self._viewers)

    def check_room(self) -> None:
        """Refuse early when there is no room.

        Raises:
            TooManyStreams: There is none, or the process is stopping.
        """
        if self._hub.closing is not None:
            raise TooManyStreams("this process is stopping and takes no new streams", retry_after=1.0)
        if len(self._viewers) >= self._most:
            raise TooManyStreams(
                f"this process serves {self._most} streams at most; try again, perhaps another one answers", retry_after=1.0
            )

    def add(self, viewer: Viewer) -> None:
        """Look after a viewer from now on.

        Raises:
            TooManyStreams: There is no room.
        """
        self.check_room()
        self._viewers.add(viewer)
        STREAMS.inc()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._sweep(), name="reattach-streams")

    def discard(self, viewer: Viewer) -> None:
        """The viewer is gone."""
        if viewer in self._viewers:
            self._viewers.discard(viewer)
            STREAMS.dec()
        if not self._viewers:
            for task in (self._task, self._check):
                if task is not None:
                    task.cancel()
            self._task = self._check = None

    def put_out(self) -> None:
        """Something was taken away: whoever reads with it stops now."""
        # For a while: a stream that was allowed before this moment may be about to begin.
        self._put_out_until = self._clock() + _ABOUT_TO_BEGIN
        for viewer in self._viewers:
            # Which session a run belongs to its record says: that is looked at in the next round of the sweep.
            viewer.authorised_at = min(viewer.authorised_at, self._clock() - self._check_every)
        self._put_out()

    def _put_out(self) -> None:
        for viewer in list(self._viewers):
            if self._revoked.refuses(viewer.principal, run_id=viewer.run_id):
                viewer.close("unauthorized")

    async def _sweep(self) -> None:
        clock = self._clock
        while True:
            if clock() < self._put_out_until:
                self._put_out()
            for number, viewer in enumerate(list(self._viewers), 1):
                try:
                    viewer.tick(clock())
                except Exception:
                    # One viewer's trouble must not leave all the others without keep-alives.
                    _log.exception("streams.tick_failed", run_id=viewer.run_id)
                if number % _BATCH == 0:
                    await asyncio.sleep(0)
            if self._check is None or self._check.done():
                due = [v for v in self._viewers if clock() - v.authorised_at >= self._check_every]
                if due:
                    self._check = asyncio.create_task(self._check_all(due), name="reattach-reauthorise")
            await asyncio.sleep(self.tick)

    async def _check_all(self, due: Sequence[Viewer]) -> None:
        runs: dict[str, list[Viewer]] = {}
        for viewer in due:
            runs.setdefault(viewer.run_id, []).append(viewer)
        for batch in _batches(list(runs.items()), _AT_ONCE):
            await asyncio.gather(*(self._check_run(run_id, viewers) for run_id, viewers in batch))

    async def _check_run(self, run_id: str, viewers: Iterable[Viewer]) -> None:
        try:
            record = await self._current(run_id)
        except StoreUnavailable:
            return  # nothing is delivered either while the store is away; asked again in the next round
        except NotFound:
            record = None
        readers: dict[Principal, list[Viewer]] = {}
        for viewer in viewers:
            readers.setdefault(viewer.principal, []).append(viewer)
        await asyncio.gather(*(self._check_reader(principal, record, theirs) for principal, theirs in readers.items()))

    async def _current(self, name: str) -> RunRecord:
        if is_session_name(name):
            return as_run(await self._store.sessions.load(name))
        return await self._store.runs.load(name)

    async def _check_reader(self, principal: Principal, record: RunRecord | None, viewers: Iterable[Viewer]) -> None:
        async with self._asking:
            refusal = await self._refusal(principal, record)
        for viewer in viewers:
            now = self._clock()
            if refusal == _UNKNOWN and now - viewer.authorised_at < _PATIENCE * self._check_every:
                continue  # asked again in the next round: who decides may only have been away for a moment
            if refusal is None:
                # Spread out, so that viewers that came together are not all asked about together for ever.
                viewer.authorised_at = now - random.uniform(0, self._check_every / 4)
            else:
                viewer.close("unavailable" if refusal == _UNKNOWN else refusal)

    async def _refusal(self, principal: Principal, record: RunRecord | None) -> str | None:
        try:
            # One answer that never comes must not leave everybody else's permission unchecked.
            async with asyncio.timeout(self._check_every):
                allowed = record is not None and await permitted(self._authorizer, principal, "read", record)
        except StoreUnavailable:
            return None
        except AuthUnavailable:
            return _UNKNOWN
        except Exception:
            # Without an answer nobody goes on reading; the client's next connect is told what is wrong.
            _log.exception("streams.reauthorise_failed")
            return "unavailable"
        return None if allowed else "unauthorized"


def _batches(items: Sequence[tuple[str, list[Viewer]]], size: int) -> Iterable[Sequence[tuple[str, list[Viewer]]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
