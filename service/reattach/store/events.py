"""Reading logs: pages after a cursor, and what is new in many runs at once."""

from collections.abc import Mapping
from typing import Final

from ..core.errors import RunNotFound
from ..core.event import Event
from ..core.ids import is_run_id, shard_of
from .door import Door
from .keys import Keys
from .records import to_event

READ_BYTES: Final = 16 * 1024 * 1024
"""About how much one read may bring: a server puts such an answer together in a few milliseconds, and serves nobody else meanwhile."""

_PIECE: Final = 128
"""Most events of one read of one log: twice `READ_BYTES` if each is as large as it may be by default."""

TAIL_COUNT: Final = 1000
"""Most events one run contributes to one `tail`."""


class Events:
    """The read side of the logs."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door = door
        self._keys = keys

    async def after(self, run_id: str, cursor: int, limit: int) -> list[Event]:
        """The next events after a cursor, at most `limit`.

        Where the log's head is gone they come from the audit stream: deltas that a later event covers are then missing, nothing else.
        Empty when there is nothing after the cursor, or nothing left.

        Raises:
            RunNotFound: The text is not a run id.
            StoreUnavailable: Redis cannot be reached.
        """
        if not is_run_id(run_id):
            raise RunNotFound()
        found: list[Event] = []
        while len(found) < limit:
            asked = min(limit - len(found), _PIECE)
            part = await self._piece(run_id, found[-1].sequence if found else cursor, asked)
            found += part
            if len(part) < asked:
                break
        return found

    async def _piece(self, run_id: str, cursor: int, limit: int) -> list[Event]:
        start = f"{cursor + 1}-0"
        log = await self._door.call("XRANGE", self._keys.log(run_id), start, "+", "COUNT", limit)
        if log and int(log[0][0][:-2]) == cursor + 1:
            return [to_event(e) for e in log]
        # Up to the log's first entry the audit stream is all there is; beyond it the log has everything.
        end = f"({log[0][0].decode()}" if log else "+"
        audit = await self._door.call("XRANGE", self._keys.audit(run_id), start, end, "COUNT", limit)
        if audit and not log:
            # Either the log is gone, or these were appended between the two reads: then the deltas among them are in the log only.
            log = await self._door.call("XRANGE", self._keys.log(run_id), start, "+", "COUNT", limit)
            if log:
                first = int(log[0][0][:-2])
                audit = [e for e in audit if int(e[0][:-2]) < first]
        return [to_event(e) for e in [*audit, *log][:limit]]

    async def tail(self, positions: Mapping[str, int], *, count: int = TAIL_COUNT) -> dict[str, list[Event]]:
        """What is new in many runs, in one read per shard (all of them in one round trip). Runs without news are absent.

        Args:
            positions: Run id → sequence after which to read. Ids must be valid.
            count: Most events of one run.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        found: dict[str, list[Event]] = {}
        if self._door.target.is_cluster:
            shards: dict[str, list[str]] = {}
            for run_id in positions:
                shards.setdefault(shard_of(run_id), []).append(run_id)
            groups = list(shards.values())
        else:
            groups = [list(positions)] if positions else []
        for group in groups:
            names = {self._keys.log(run_id).encode(): run_id for run_id in group}
            ids = [f"{positions[run_id]}-0" for run_id in group]
            reply = await self._door.call("XREAD", "COUNT", count, "STREAMS", *names, *ids)
            for key, entries in reply or ():
                found[names[key]] = [to_event(e) for e in entries]
        return found
