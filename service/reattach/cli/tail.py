"""``reattach tail``: follow a run."""

import asyncio
import random
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

import click

from ..core.cursor import judge, parse_cursor
from ..core.errors import StoreUnavailable
from ..core.settings import Settings
from ..store import Store
from ..tail import Hub, Slice, StreamEnded, follow
from .console import is_terminal, note, until_unread, write_bytes
from .folder import find_store
from .help import Command
from .options import STORE, with_settings
from .rendering import Screen
from .unserved import PATIENCE, explain_waiting

EXIT_CODES: Final = {"succeeded": 0, "failed": 1, "cancelled": 3}
_PATIENCE: Final = 2.0
_LONGEST_PAUSE: Final = 2.0


@click.command(cls=Command, short_help="Follow a run to its end.")
@click.argument("run_id", metavar="RUN")
@click.option("--after", default="0", metavar="CURSOR", help="Start behind this event: its number, or its id (run_…:184).")
@click.option("--json", "as_json", is_flag=True, help="JSON lines also in a terminal.")
@with_settings(STORE)
def tail(settings: Settings, run_id: str, after: str, as_json: bool) -> None:
    """Follow a run: what happened since CURSOR, then what happens, until it ends.

        reattach tail RUN                       from the beginning
        reattach tail RUN --after 184           from event 185 on
        reattach tail RUN | jq .payload         one event per line as JSON, in a pipe

    It only looks: ending it changes nothing for the run. When the store goes away it waits and goes on behind the last event it has
    shown, without a gap or a repeat. The exit code is 0 when the run succeeded, 1 when it failed, 3 when it was cancelled, 4 when it
    cannot be followed, e.g. since events after CURSOR are no longer kept.
    """
    cursor = parse_cursor(after, run_id)
    screen = None if as_json or not is_terminal() else Screen()
    follower = Follower(run_id, cursor, _lines if screen is None else lambda found: _pretty(screen, found))
    try:
        state = asyncio.run(_tail(find_store(settings), follower))
    except KeyboardInterrupt:
        note(f"\nthe run goes on; follow it with: reattach tail {run_id} --after {follower.position}")
        raise
    finally:
        if screen is not None:
            screen.finish()
    sys.exit(EXIT_CODES.get(state, 0))


async def _tail(settings: Settings, follower: "Follower") -> str:
    store = await Store.open(settings)
    hub = Hub(store, settings, patience=_PATIENCE)
    following = asyncio.create_task(follower.run(hub))
    unread = asyncio.create_task(until_unread())
    waiting = asyncio.create_task(follower.explain(hub))
    try:
        await hub.start()
        await asyncio.wait({following, unread}, return_when=asyncio.FIRST_COMPLETED)
        return following.result() if following.done() else ""
    finally:
        for task in (following, unread, waiting):
            task.cancel()
        await asyncio.gather(following, unread, waiting, return_exceptions=True)
        await hub.close()
        await store.close()


class Follower:
    """Follows one run to its end, whatever happens to the store meanwhile.

    Attributes:
        position: Sequence of the last event that was shown.
    """

    def __init__(self, run_id: str, after: int, show: Callable[[Slice], None]) -> None:
        """Start behind a cursor."""
        self.position = after
        self._run_id, self._show = run_id, show

    async def run(self, hub: Hub) -> str:
        """Show every event; the state the run ended in.

        Raises:
            ReattachError: The run cannot be followed (any further).
        """
        read = await hub.store.runs.read(self._run_id)
        judge(self.position, read.bounds, run_id=self._run_id)
        failures = 0
        while True:
            before = self.position
            try:
                await self._follow(hub)
                return (await hub.store.runs.load(self._run_id)).state
            except (StreamEnded, StoreUnavailable):
                failures = 1 if self.position != before else failures + 1
            if failures == 1:
                note(f"the store is away; going on behind event {self.position} when it is back")
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, 0.2 * 2**failures))

    async def explain(self, hub: Hub) -> None:
        """Say so where the run waits for a worker that is not there."""
        await asyncio.sleep(PATIENCE)
        if (why := await explain_waiting(hub.store, self._run_id)) is not None:
            note(why)

    async def _follow(self, hub: Hub) -> None:
        async with aclosing(follow(hub, self._run_id, self.position)) as slices:
            async for found in slices:
                self._show(found)
                self.position = found.last


def _lines(found: Slice) -> None:
    write_bytes(b"".join(frame.data + b"\n" for frame in found.frames))


def _pretty(screen: Screen, found: Slice) -> None:
    for frame in found.frames:
        screen.show(frame.data)
