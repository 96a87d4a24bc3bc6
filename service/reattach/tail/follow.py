"""The one place that decides order: what a viewer gets, whenever it starts, is every event after its cursor, once, in sequence."""

import asyncio
import random
from collections.abc import AsyncGenerator

from ..core.errors import StoreUnavailable
from .ended import StreamEnded
from .followed import Followed
from .frames import Slice
from .hub import Hub


async def follow(hub: Hub, run_id: str, after: int) -> AsyncGenerator[Slice, None]:
    """Every event of a run or a session after a cursor: what is stored, then what comes, until the run's last one. A session has none.

    Each slice begins right behind the one before it; only a `sparse` one may leave out deltas that a later event covers. Use it with
    `contextlib.aclosing`, so that the run is let go at once when the consumer stops early.

    Args:
        hub: This process's hub.
        run_id: The run, or the session's name.
        after: The cursor; 0 for everything.

    Raises:
        RunNotFound: There is no such run.
        SessionNotFound: There is no such session.
        FutureCursor: The cursor is ahead of the run.
        CursorExpired: Events that a fold needs are gone, at the start or (a log that expires under a slow viewer) later.
        StoreUnavailable: The store cannot be reached to begin with.
        StreamEnded: This process stops delivering; the run goes on.
    """
    async with hub.joined(run_id) as followed:
        position = after
        if position > followed.last:
            # Another process may have shown its client more than this one has heard of yet.
            await followed.source.judge(position)
        while True:
            found = followed.slice(position)
            reason = hub.ending(followed)
            if reason is not None and not (found is not None and found.terminal and followed.source.ends):
                raise StreamEnded(reason)
            if found is None and followed.behind(position):
                found = await _history(hub, followed, position)
            elif found is None:
                if followed.terminal and position >= followed.last:
                    return
                await followed.wait()
                continue
            position = found.last
            yield found
            if found.terminal and followed.source.ends:
                return


async def changed(hub: Hub, run_id: str, after: int, timeout: float) -> int:
    """Wait until a run or a session has something newer than a sequence.

    Args:
        hub: This process's hub.
        run_id: The run, or the session's name.
        after: What the caller knows.
        timeout: Longest wait, seconds.

    Returns:
        The newest sequence known here: larger than `after`, unless the time passed, the run has ended or this process stops delivering.

    Raises:
        RunNotFound: There is no such run.
        StoreUnavailable: The store cannot be reached.
        StreamEnded: The hub is closing already.
    """
    async with hub.joined(run_id) as followed:
        try:
            async with asyncio.timeout(timeout):
                while followed.last <= after and not followed.terminal and hub.ending(followed) is None:
                    await followed.wait()
        except TimeoutError:
            pass
        return followed.last


async def _history(hub: Hub, followed: Followed, position: int) -> Slice:
    """The next piece for a viewer that is older than the ring, from the store."""
    gives_up = asyncio.get_running_loop().time() + hub.patience.limit
    while True:
        try:
            found = await hub.pages.after(followed, position)
            if found is None or found.sparse:
                await followed.source.judge_hole(position, found)
            # A page that was in memory took no time to get: the other viewers have their turn before the next one.
            await asyncio.sleep(0)
            if found is not None:
                return found
        except StoreUnavailable:
            if asyncio.get_running_loop().time() >= gives_up:
                raise StreamEnded("unavailable") from None
            await asyncio.sleep(random.uniform(0.05, 0.2))
        reason = hub.ending(followed)
        if reason is not None:
            raise StreamEnded(reason)
