"""Whose turn it is in a session whose policy does not let its runs go on side by side.

A run that has to wait is held: it is in no queue, so nobody can claim it. It is let go by `advance`, which is called when it was created
and when a run before it has ended, by whoever serves the timer that the same command set: no process that dies can lose a turn, and any
number may call at once. Who goes on is what the runs' own records say.
"""

from typing import Final

from ..core.payload import to_json
from ..core.run import RunRecord
from ..core.session import goes_on
from .door import Door, all_of
from .keys import Keys
from .records import pairs, to_record
from .scripts import GROUP, load_scripts

MOST_OPEN: Final = 500
"""Runs that a session with such a policy may have open, the held ones among them."""


class Turns:
    """Looks after the order of runs in sessions."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door, self._keys = door, keys
        self._scripts = load_scripts()

    async def open(self, name: str) -> list[RunRecord]:
        """The runs of a session that have not ended, in the order in which they began.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        listed = await self._door.call("ZRANGE", self._keys.session_open(name), 0, -1)
        hashes = await all_of(self._door.call("HGETALL", self._keys.run(member.decode())) for member in listed)
        found: list[RunRecord] = []
        for member, flat in zip(listed, hashes, strict=True):
            record = to_record(pairs(flat)) if flat else None
            if record is not None and goes_on(record):
                found.append(record)
            else:
                # It ended a moment ago, or its record was deleted from outside, and nobody would ever end it.
                await self._door.call("ZREM", self._keys.session_open(name), member)
        return found

    async def advance(self, name: str) -> None:
        """Do what the session's policy asks for now: cancel those that were replaced, let the first one start if it was held.

        Raises:
            StoreUnavailable: Redis cannot be reached; the timer that asked for it is still there.
        """
        policy = await self._door.call("HGET", self._keys.session(name), "policy")
        if policy is None:
            return
        runs = await self.open(name)
        if policy == b"replace":
            for record in runs[:-1]:
                await self._replace(record, runs[-1])
            runs = await self.open(name)
        if runs and runs[0].held:
            # Where it is not the first any more, it ended: who ended it set a timer for the next one.
            keys = self._keys.of_run(runs[0].run_id, runs[0].agent, name)
            await self._door.run(self._scripts["admit"], keys, runs[0].run_id, runs[0].agent)

    async def _replace(self, record: RunRecord, by: RunRecord) -> None:
        if record.cancel_version:
            return
        about = {"cancel_version": 1, "by": by.initiator, "reason": f"replaced by {by.run_id}"}
        payload = to_json(about, max_bytes=1 << 20, what="cancel")
        keys = self._keys.of_run(record.run_id, record.agent, record.session)
        await self._door.run(self._scripts["cancel"], keys, record.run_id, GROUP, "", "", payload)
