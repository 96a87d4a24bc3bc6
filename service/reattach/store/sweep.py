"""What is due: dead owners, wait limits, retries, snapshots of ended runs, records that expired.

Any number of processes may sweep at once: every step is one command that checks again what it was sent for. No lock exists that a dead
sweeper could keep.
"""

import asyncio
import random
from typing import Any, Final

import msgspec
import structlog

from ..core.errors import ReattachError, RunNotFound, StoreUnavailable
from ..core.ids import is_run_id, shard_of
from ..core.settings import Settings
from .checkpoints import Checkpoints
from .keys import Keys
from .records import pairs, to_record
from .redis import Door
from .scripts import GROUP, load_scripts

_log = structlog.get_logger("reattach.sweep")
_AT_ONCE: Final = 100


class SweepReport(msgspec.Struct, kw_only=True):
    """What one sweep did, by kind."""

    reclaimed: int = 0
    timers: int = 0


KINDS: Final = ("wait", "retry", "seal", "key", "forget")


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a shard's timers: ``kind:run_id`` and, separated by blanks, the keys it concerns beyond the run's own."""

    member: bytes
    kind: str
    run_id: str
    extra: tuple[str, ...]

    @classmethod
    def parse(cls, member: bytes) -> "Timer | None":
        """Read a member; None when it is not one of ours."""
        kind, _, rest = member.decode("utf-8", "replace").partition(":")
        run_id, *extra = rest.split(" ")
        if kind not in KINDS or not is_run_id(run_id):
            return None
        return cls(member=member, kind=kind, run_id=run_id, extra=tuple(extra))


class Sweep:
    """Looks for what is due in every shard."""

    def __init__(self, door: Door, keys: Keys, checkpoints: Checkpoints, settings: Settings) -> None:
        """Bind to a store's parts."""
        self._door, self._keys, self._checkpoints, self._settings = door, keys, checkpoints, settings
        self._lease_ms = int(settings.lease * 1000)
        self._scripts = load_scripts()
        self._steps = {
            "wait": self._expire,
            "retry": self._retry,
            "seal": self._seal,
            "key": self._keep,
            "forget": self._forget,
        }

    async def run(self) -> None:
        """Sweep until cancelled: a dead owner is noticed within a lease after its lease ended, whatever any host's clock says."""
        while True:
            try:
                await self.once()
            except StoreUnavailable as e:
                _log.debug("sweep.skipped", error=str(e))
            except ReattachError:
                _log.exception("sweep.failed")
            await asyncio.sleep(random.uniform(0.5, 1.0) * min(self._settings.lease, 5.0))

    async def once(self) -> SweepReport:
        """Do everything that is due now.

        Raises:
            StoreUnavailable: Redis cannot be reached; what was done is done.
        """
        report = SweepReport()
        await asyncio.gather(*(self._shard(tag, report) for tag in self._keys.tags))
        return report

    async def _shard(self, tag: str, report: SweepReport) -> None:
        seconds, micros = await self._door.call("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        due, agents = await asyncio.gather(
            self._door.call("ZRANGE", self._keys.timers(tag), "-inf", now, "BYSCORE", "LIMIT", 0, _AT_ONCE),
            self._door.call("SMEMBERS", self._keys.agents(tag)),
        )
        for member in due:
            timer = Timer.parse(member)
            if timer is None:
                await self._door.call("ZREM", self._keys.timers(tag), member)
                continue
            report.timers += 1
            await self._steps[timer.kind](timer)
        for agent in agents:
            report.reclaimed += await self._dead_owners(tag, agent.decode())

    async def _dead_owners(self, tag: str, agent: str) -> int:
        queue = self._keys.queue(tag, agent)
        pending = await self._door.call("XPENDING", queue, GROUP, "IDLE", self._lease_ms, "-", "+", _AT_ONCE)
        done = 0
        for entry, *_ in pending:
            found: list[Any] = await self._door.call("XRANGE", queue, entry, entry)
            run_id = pairs(found[0][1]).get("run", b"").decode("utf-8", "replace") if found else ""
            if not is_run_id(run_id):
                keys = {"queue": queue, "poison": self._keys.poison(tag, agent)}
                await self._door.run(self._scripts["setaside"], keys, GROUP, entry)
                continue
            reply = await self._door.run(
                self._scripts["reclaim"], self._keys.of_run(run_id, agent), run_id, GROUP, agent, entry, self._lease_ms
            )
            if reply.word not in ("HELD", "GONE"):
                done += 1
                _log.warning("run.reclaimed", run_id=run_id, agent=agent, result=reply.word.lower())
        return done

    async def _expire(self, timer: Timer) -> None:
        await self._with_agent("expire", timer, GROUP)

    async def _retry(self, timer: Timer) -> None:
        await self._with_agent("retry", timer)

    async def _with_agent(self, command: str, timer: Timer, *args: Any) -> None:
        agent = await self._door.call("HGET", self._keys.run(timer.run_id), "agent")
        if agent is None:
            await self._strike(timer)
            return
        await self._door.run(self._scripts[command], self._keys.of_run(timer.run_id, agent.decode()), timer.run_id, *args, agent)

    async def _seal(self, timer: Timer) -> None:
        try:
            folded = await self._checkpoints.fold(timer.run_id)
        except RunNotFound:
            await self._strike(timer)
            return
        if folded.record.sealed:
            await self._strike(timer)

    async def _keep(self, timer: Timer) -> None:
        key, fingerprint = timer.extra
        flat = await self._door.call("HGETALL", self._keys.run(timer.run_id))
        hash_ = pairs(flat)
        # A record that is gone takes its key with it: an expiry in the past.
        expires = (to_record(hash_).expires_at or 0) if hash_ else 1
        await self._door.run(self._scripts["keep"], {"idempotency": key}, timer.run_id, fingerprint, expires)
        finished = hash_.get("finished_at", b"")
        await self._door.run(self._scripts["settled"], self._keys.of_run(timer.run_id), timer.member, finished)

    async def _forget(self, timer: Timer) -> None:
        lists = [*timer.extra, None]
        keys = self._keys.of_run(timer.run_id) | {"tenant": lists[0], "session": lists[1]}
        await self._door.run(self._scripts["forget"], keys, timer.run_id, timer.member)

    async def _strike(self, timer: Timer) -> None:
        await self._door.call("ZREM", self._keys.timers(shard_of(timer.run_id)), timer.member)
