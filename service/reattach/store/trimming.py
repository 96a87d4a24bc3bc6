"""Keeps the logs of live runs small: what later events say too goes, everything else stays.

A log's head may go as far as a stored fold calls it covered, and only below the newest `live_events`: a client that comes back soon
still gets every delta. Events outside the delta class are in the audit stream as well, so a replay from the beginning goes on to work.

What keeps a head from going is text that only its deltas carry. The SDK writes ``message.checkpoint`` for that. Where nobody did (a worker
in another language, a message that its worker left open when it died), it is written here: by compare-and-set on the run's sequence, so
that it says exactly what its deltas said.
"""

from typing import Final

import structlog

from ..core.covering import covering
from ..core.errors import RunNotFound
from ..core.settings import Settings
from .checkpoints import Checkpoints, Folded
from .door import Door
from .keys import Keys
from .scripts import load_scripts

_log = structlog.get_logger("reattach.trim")
_TRIES: Final = 3
_LEAST_SLACK: Final = 64


class Trimming:
    """Shortens the logs of live runs."""

    def __init__(self, door: Door, keys: Keys, checkpoints: Checkpoints, settings: Settings) -> None:
        """Bind to a store's parts; `live_events` and `max_payload` are taken from the settings."""
        self._door, self._keys, self._checkpoints = door, keys, checkpoints
        self._keep, self._largest = settings.live_events, settings.max_payload
        # A log is shortened by a good piece or not at all: every time costs a fold.
        self._slack = max(_LEAST_SLACK, self._keep // 2)
        self._scripts = load_scripts()

    async def shorten(self, run_id: str) -> None:
        """Let a log's head go, where the run lives, the log is long and the head is covered.

        Any number of processes may do it at once, and each may die in between: nothing is forgotten that a stored fold does not cover.

        Raises:
            RunNotFound: There is no such run.
            StoreUnavailable: Redis cannot be reached.
        """
        if not await self._is_long(run_id):
            return
        folded = await self._cover(run_id)
        if folded is None:
            return
        through = min(folded.fold.covered, folded.fold.sequence - self._keep)
        if through < folded.record.log_from:
            _log.debug("trim.uncovered", run_id=run_id, covered=folded.fold.covered, sequence=folded.fold.sequence)
            return
        if not folded.stored:
            await self._checkpoints.store(run_id, folded.fold)
        first = await self._checkpoints.trim(run_id, through)
        _log.debug("trim.done", run_id=run_id, first=first, sequence=folded.fold.sequence)

    async def _is_long(self, run_id: str) -> bool:
        state, sequence, first = await self._door.call("HMGET", self._keys.run(run_id), "finished_at", "sequence", "log_from")
        if sequence is None:
            raise RunNotFound()
        return state is None and int(sequence) - int(first or 1) >= self._keep + self._slack

    async def _cover(self, run_id: str) -> Folded | None:
        """The run's fold, after what has to be said was said; None when the run ended meanwhile."""
        for _ in range(_TRIES):
            folded = await self._checkpoints.fold(run_id)
            if folded.record.terminal:
                return None
            drafts = covering(folded.fold, through=folded.fold.sequence - self._keep, max_bytes=self._largest)
            if not drafts:
                return folded
            flat = [part for draft in drafts for part in (draft.type, draft.payload, draft.scope or "")]
            keys = self._keys.of_run(run_id, session=folded.record.session)
            await self._door.run(self._scripts["cover"], keys, run_id, folded.fold.sequence, *flat)
        # Its worker was faster every time; what is covered so far may still go.
        folded = await self._checkpoints.fold(run_id)
        return None if folded.record.terminal else folded
