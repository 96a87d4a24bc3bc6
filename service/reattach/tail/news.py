"""What is new in everything that is followed, in as few reads as can be."""

from collections.abc import Mapping, Sequence

from ..store import Store
from .followed import Followed
from .frames import Frame
from .session import SessionSource
from .source import RunSource


class News:
    """Reads behind many positions at once."""

    def __init__(self, store: Store) -> None:
        """Read from this store."""
        self._store = store

    async def read(self, positions: Mapping[Followed, int], *, count: int) -> dict[Followed, Sequence[Frame]]:
        """Frames behind each position, without holes; absent where there is nothing new.

        Args:
            positions: Where to read on. All must be ready.
            count: Most frames of each.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """
        runs = {f.run_id: position for f, position in positions.items() if isinstance(f.source, RunSource)}
        sessions = {f.run_id: position for f, position in positions.items() if isinstance(f.source, SessionSource)}
        events = await self._store.events.tail(runs, count=count) if runs else {}
        batches = await self._store.session_log.tail(sessions, count=count) if sessions else {}
        found: dict[Followed, Sequence[Frame]] = {}
        for followed in positions:
            source = followed.source
            if isinstance(source, RunSource):
                if followed.run_id in events:
                    found[followed] = source.encode(events[followed.run_id])
            elif isinstance(source, SessionSource) and (batch := batches.get(followed.run_id)) is not None:
                found[followed] = await source.fresh(batch)
                if not found[followed] and batch.last > followed.last:
                    # All that was new is gone again: whoever follows has to be told by a page.
                    followed.jump(batch.last, terminal=False)
        return found
