"""What a tenant and each of its subjects may do and have at the same time, counted in Redis for all processes together.

Rates are counted by the minute of the server's clock. What is open is what each process says it has, for as long as it goes on saying so:
one that dies leaves nothing behind. Unfinished runs are a list, from which a run goes when it ends; where the list says that there are too
many, what it says is compared with the runs.
"""

import time
from typing import Any, Final, Literal

import msgspec

from ..core.errors import TooManyRequests
from ..core.ids import is_run_id
from ..core.run import TERMINAL_STATES, RunRecord
from ..core.settings import Settings
from .door import Door, all_of
from .keys import Keys
from .scripts import Reply, load_scripts

Rate = Literal["sessions", "tickets"]

_SAMPLE: Final = 100
_PAUSE: Final = 1.0
"""Between two comparisons of one list with its runs, seconds: what is refused must not cost more than what is done."""
_WORDS: Final = {"caller": "you", "tenant": "your tenant"}


class Who(msgspec.Struct, frozen=True):
    """Whom it is counted for."""

    tenant: str
    subject: str


class Limits:
    """The counts of all processes."""

    def __init__(self, door: Door, keys: Keys, settings: Settings) -> None:
        """Bind to a door, a set of key names, and the limits."""
        self._door, self._keys, self._settings = door, keys, settings
        self._scripts = load_scripts()
        self._keep_ms = max(1000, round(settings.retain_run * 1000))
        self._compared: dict[str, float] = {}

    async def charge(self, who: Who, agent: str, member: str) -> None:
        """Count a run that is about to be created, once however often this is called for the same.

        Args:
            who: Who creates it.
            agent: Its agent: names that have no worker must not be without number.
            member: Its id, or the digest of the idempotency key that stands for it.

        Raises:
            TooManyRequests: It is one too many.
            StoreUnavailable: Redis cannot be reached.
        """
        reply = await self._charge(who, agent, member)
        if reply.word == "RUNS" and await self._compare(who, reply.text(0)):
            reply = await self._charge(who, agent, member)
        settings = self._settings
        match reply.word:
            case "RATE":
                raise _too_often("runs", reply, settings.tenant_run_rate, settings.subject_run_rate)
            case "RUNS":
                most = settings.tenant_runs if reply.text(0) == "tenant" else settings.subject_runs
                raise TooManyRequests(f"{most} unfinished runs of {_WORDS[reply.text(0)]} are allowed here; wait until some have ended")
            case "AGENTS":
                raise TooManyRequests(
                    f"your tenant may name {settings.tenant_agents} different agents in an hour", field="agent", retry_after=60.0
                )
            case _:
                return

    async def forget(self, who: Who, member: str) -> None:
        """What was counted was not created after all.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        await self._strike(who, [member])

    async def dismiss(self, record: RunRecord) -> None:
        """A run has ended, or is known not to exist: it is counted no more.

        Raises:
            StoreUnavailable: Redis cannot be reached; do it again.
        """
        members = [record.run_id] if record.idempotency is None else [record.idempotency.rpartition(":")[2]]
        await self._strike(Who(record.tenant, record.initiator), members)

    async def count(self, who: Who, kind: Rate) -> None:
        """Something is done once more.

        Raises:
            TooManyRequests: That is too often.
            StoreUnavailable: Redis cannot be reached.
        """
        settings = self._settings
        theirs, own = (
            (settings.tenant_run_rate, settings.subject_run_rate)
            if kind == "sessions"
            else (settings.tenant_ticket_rate, settings.subject_ticket_rate)
        )
        reply = await self._door.run(self._scripts["count"], self._keys.of_caller(who.tenant, who.subject), kind, theirs, own)
        if reply.word == "RATE":
            raise _too_often(kind, reply, theirs, own)

    async def hold(self, who: Who, process: str, tenant_count: int, count: int, *, lease: float, bounded: bool) -> None:
        """A process has this much open now for a tenant and for a subject.

        Args:
            who: For whom.
            process: A name of its own.
            tenant_count: For the tenant.
            count: For the subject.
            lease: How long that counts unless it is said again, seconds.
            bounded: Refuse it where that is too much; otherwise it is so, whatever it is.

        Raises:
            TooManyRequests: It is too much.
            StoreUnavailable: Redis cannot be reached.
        """
        settings = self._settings
        theirs, own = (settings.tenant_streams, settings.subject_streams) if bounded else (0, 0)
        keys = self._keys.of_caller(who.tenant, who.subject)
        reply = await self._door.run(self._scripts["hold"], keys, process, tenant_count, count, theirs, own, round(lease * 1000))
        if reply.word == "FULL":
            most = theirs if reply.text(0) == "tenant" else own
            raise TooManyRequests(
                f"{most} streams and held requests of {_WORDS[reply.text(0)]} at the same time are allowed here", retry_after=2.0
            )

    async def _charge(self, who: Who, agent: str, member: str) -> Reply:
        s = self._settings
        limits = (s.tenant_run_rate, s.subject_run_rate, s.tenant_runs, s.subject_runs, s.tenant_agents, self._keep_ms)
        return await self._door.run(self._scripts["charge"], self._keys.of_caller(who.tenant, who.subject), member, agent, *limits)

    async def _compare(self, who: Who, whose: str) -> bool:
        """Take runs that have ended from a full list; whether there were any."""
        name = self._keys.of_caller(who.tenant, who.subject)["tenant_runs" if whose == "tenant" else "runs"]
        assert isinstance(name, str)
        now = time.monotonic()
        if now - self._compared.get(name, -_PAUSE) < _PAUSE:
            return False
        if len(self._compared) > _SAMPLE:
            self._compared.clear()
        self._compared[name] = now
        # Some, by chance: the oldest may be just those that go on, and all of them may be very many.
        members: list[bytes] = await self._door.call("ZRANDMEMBER", name, _SAMPLE)
        gone = [m for m, over in zip(members, await all_of(self._over(m.decode()) for m in members), strict=True) if over is not None]
        for member in gone:
            await self._strike(await self._owner(member.decode()) or who, [member.decode()])
        return bool(gone)

    async def _over(self, member: str) -> bool | None:
        """True where a run of the list has ended or never came to be; None where it goes on."""
        run_id = await self._run_of(member)
        state = None if run_id is None else await self._door.call("HGET", self._keys.run(run_id), "state")
        return True if state is None or state.decode() in TERMINAL_STATES else None

    async def _run_of(self, member: str) -> str | None:
        if is_run_id(member):
            return member
        held: Any = await self._door.call("GET", self._keys.idempotency(member))
        return None if held is None else held.decode().partition(" ")[0]

    async def _owner(self, member: str) -> Who | None:
        run_id = await self._run_of(member)
        if run_id is None:
            return None
        tenant, initiator = await self._door.call("HMGET", self._keys.run(run_id), "tenant", "initiator")
        return None if tenant is None else Who(tenant.decode(), initiator.decode())

    async def _strike(self, who: Who, members: list[str]) -> None:
        keys = self._keys.of_caller(who.tenant, who.subject)
        await all_of(self._door.call("ZREM", keys[name], *members) for name in ("tenant_runs", "runs"))


def _too_often(kind: str, reply: Reply, theirs: int, own: int) -> TooManyRequests:
    who = reply.text(0)
    most = theirs if who == "tenant" else own
    return TooManyRequests(f"{most} {kind} of {_WORDS[who]} are allowed in a minute here", retry_after=reply.integer(1) / 1000)
