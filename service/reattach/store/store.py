"""The store as the layers above it see it: one object per process and event loop."""

from collections.abc import Awaitable, Callable
from typing import Final

from ..core.errors import InvalidRequest
from ..core.settings import Settings
from .bells import Bells, Ring, Wake, Wakes
from .checkpoints import Checkpoints
from .door import Door
from .events import Events
from .handouts import Handouts
from .keys import Keys
from .limits import Limits
from .queued import Queued
from .redis import Target
from .revocations import Revocations
from .runs import Runs
from .server import ServerFacts, broken_scripts, read_facts
from .session_log import SessionLog
from .sessions import Sessions
from .sweep import Sweep
from .tickets import Tickets
from .turns import Turns
from .work import Work

FORMAT: Final = "1"
"""Version of the data's shape in Redis."""


class Store:
    """Runs, their logs, and the work on them.

    Attributes:
        runs: The clients' side.
        events: Reading logs.
        work: The workers' side.
        queued: What waits in the queues.
        handouts: Claims that travel over a network.
        tickets: Short-lived permissions to read one run.
        revocations: What was taken away.
        limits: What tenants and subjects do and have.
        checkpoints: Snapshots.
        sessions: The clients' side of sessions.
        session_log: Reading sessions event by event.
        turns: Whose turn it is in a session.
        sweep: What is due.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare a store; `open` is how to get one that was checked.

        Raises:
            InvalidRequest: There is no Redis URL, or it has no known form.
        """
        if settings.redis is None:
            raise InvalidRequest("no Redis URL was given", field="redis")
        self.settings = settings
        self.target = Target(settings.redis, timeout=settings.redis_timeout)
        self.keys = Keys(settings.prefix, settings.shards)
        self.door = Door(self.target)
        self.events = Events(self.door, self.keys)
        self.work = Work(self.door, self.keys, settings)
        self.queued = Queued(self.door, self.keys)
        self.handouts = Handouts(self.door, self.keys, settings)
        self.tickets = Tickets(self.door, self.keys)
        self.revocations = Revocations(self.door, self.keys)
        self.limits = Limits(self.door, self.keys, settings)
        self.checkpoints = Checkpoints(self.door, self.keys, on_ended=self.limits.dismiss)
        self.session_log = SessionLog(self.door, self.keys, self.events)
        self.turns = Turns(self.door, self.keys)
        self.sessions = Sessions(self.door, self.keys, round(settings.retain_run * 1000))
        self.runs = Runs(self.door, self.keys, self.checkpoints, self.turns, self.limits)
        self.sweep = Sweep(self.door, self.keys, self.checkpoints, self.turns, settings)
        self.work.ended = self.sweep.nudge

    @classmethod
    async def open(cls, settings: Settings) -> "Store":
        """Connect, and agree with every other process on what must not differ.

        Raises:
            InvalidRequest: Another process started with another number of shards or another data format.
            StoreUnavailable: Redis cannot be reached.
        """
        store = cls(settings)
        try:
            await store.agree()
        except BaseException:
            await store.close()
            raise
        return store

    async def agree(self) -> None:
        """Write the shard count and format once; refuse to go on where they differ.

        Raises:
            InvalidRequest: They differ from what is stored.
            StoreUnavailable: Redis cannot be reached.
        """
        for name, mine in (("shards", str(self.settings.shards)), ("format", FORMAT)):
            await self.door.call("HSETNX", self.keys.config(), name, mine)
            stored = (await self.door.call("HGET", self.keys.config(), name)).decode()
            if stored != mine:
                raise InvalidRequest(
                    f"this Redis was set up with {name} {stored}, this process has {mine}; runs would be looked for in the wrong place",
                    field=name,
                )

    async def close(self) -> None:
        """Close every connection."""
        await self.door.close()

    async def ping(self) -> None:
        """Ask whether Redis answers.

        Raises:
            StoreUnavailable: It does not.
        """
        await self.door.call("PING")

    async def facts(self) -> ServerFacts:
        """What the server says of itself.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        return await read_facts(self.door)

    async def check_scripts(self) -> tuple[str, ...]:
        """Load every command; those the server refuses, with its words.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        return await broken_scripts(self.door)

    def bells(
        self,
        on_ring: Callable[[Ring], None],
        *,
        on_state: Callable[[bool], None] | None = None,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> Bells:
        """A listener for followers' hints."""
        return Bells(self, on_ring, on_state=on_state, ready=ready)

    def wakes(self, on_wake: Callable[[Wake], None], *, on_state: Callable[[bool], None] | None = None) -> Wakes:
        """A listener for workers' hints."""
        return Wakes(self, on_wake, on_state=on_state)
