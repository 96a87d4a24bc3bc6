"""What is due: dead owners, wait limits, retries, snapshots of ended runs, records that expired.

Any number of processes may sweep at once: every step is one command that checks again what it was sent for. No lock exists that a dead
sweeper could keep.
"""

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
import structlog

from ..core.errors import RunNotFound, StoreUnavailable
from ..core.ids import is_run_id, is_session_name, shard_of
from ..core.settings import Settings
from .checkpoints import Checkpoints
from .door import Door, all_of
from .idle import Idle
from .keys import Keys
from .readers import Readers
from .records import pairs, to_record
from .scripts import GROUP, load_scripts
from .trimming import Trimming
from .turns import Turns

_log = structlog.get_logger("reattach.sweep")
_AT_ONCE: Final = 100
_LONGEST_PAUSE: Final = 7.5
_SHORTEST_PAUSE: Final = 0.2
"""Between two rounds, however often this process is nudged."""
_RETIRE_EVERY: Final = 300.0
"""Between two looks for queues that stand empty, seconds."""
_SHARDS_A_SECOND: Final = 3.5
"""A round costs one command for each shard. With so many, whatever else is asked included, an idle worker stays below five commands a
second, however many shards and agents there are."""
_QUEUES_A_SECOND: Final = 0.2
"""As many are looked at for readers that are gone."""
_MOST_LEASES: Final = 1.8
"""Longest pause in leases: what is noticed after a lease and such a pause is taken over within three."""
_SET_BACK_MS: Final = 60_000
KINDS: Final = ("lease", "wait", "retry", "seal", "key", "forget", "lapse", "turn", "held", "vacate", "trim")


class SweepReport(msgspec.Struct, kw_only=True):
    """What one sweep did.

    Attributes:
        reclaimed: Runs taken back from owners that are gone.
        timers: Timers that were due.
        pause: Seconds after which the next one is worth while.
    """

    reclaimed: int = 0
    timers: int = 0
    pause: float = _LONGEST_PAUSE


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a shard's timers: ``kind:run_id`` and, separated by blanks, what it concerns beyond the run.

    `run_id` is the name of a session where it concerns only that.
    """

    member: bytes
    kind: str
    run_id: str
    extra: tuple[str, ...]

    @classmethod
    def parse(cls, member: bytes) -> "Timer | None":
        """Read a member; None when it concerns no run and no session."""
        kind, _, rest = member.decode("utf-8", "replace").partition(":")
        run_id, *extra = rest.split(" ")
        if not is_run_id(run_id) and not is_session_name(run_id):
            return None
        return cls(member=member, kind=kind, run_id=run_id, extra=tuple(extra))


def longest_pause(settings: Settings) -> float:
    """Seconds between two rounds when nothing is due: half a lease, or longer where that would cost an idle deployment too much."""
    soon = max(min(_LONGEST_PAUSE, settings.lease / 2), settings.shards / _SHARDS_A_SECOND)
    return min(soon, _MOST_LEASES * settings.lease)


class Sweep:
    """Looks for what is due in every shard."""

    def __init__(self, door: Door, keys: Keys, checkpoints: Checkpoints, turns: Turns, settings: Settings) -> None:
        """Bind to a store's parts."""
        self._door, self._keys, self._checkpoints, self._turns = door, keys, checkpoints, turns
        self._keep_ms = round(settings.retain_run * 1000)
        self._trimming = Trimming(door, keys, checkpoints, settings)
        self._readers = Readers(door, keys, int(settings.lease * 1000))
        self._idle = Idle(door, keys)
        self._longest = longest_pause(settings)
        self._scripts = load_scripts()
        self._nudge = asyncio.Event()
        self._steps: dict[str, Callable[[Timer], Awaitable[int | None]]] = {
            "lease": self._lease,
            "wait": self._expire,
            "retry": self._retry,
            "seal": self._seal,
            "key": self._keep,
            "forget": self._forget,
            "lapse": self._lapse,
            "turn": self._turn,
            "held": self._turn,
            "vacate": self._vacate,
            "trim": self._trim,
        }

    async def run(self, agents: Sequence[str] = ()) -> None:
        """Sweep until cancelled.

        A dead owner is noticed one pause after its lease ended, whatever any host's clock says; a wait's limit when it passes, or a pause
        later where another process set it. A pause is half a lease, but for many shards: up to 1.8 leases with 100 of them.

        Args:
            agents: Agents whose readers to look after. Only their workers need to, since nobody else could take what a dead one had.
        """
        looked = retired = time.monotonic()
        while True:
            # Before looking: a nudge that comes while this round is under way may be for what it has passed already.
            self._nudge.clear()
            pause = self._longest
            try:
                pause = (await self.once()).pause
                if time.monotonic() - looked > self._longest / 2:  # not with every nudge
                    looked = time.monotonic()
                    await self._readers.deliveries(agents)
                    await self._readers.tidy_some(agents, math.ceil(_QUEUES_A_SECOND * self._longest))
                if time.monotonic() - retired > _RETIRE_EVERY:
                    retired = time.monotonic()
                    await self._idle.retire()
            except StoreUnavailable as e:
                _log.debug("sweep.skipped", error=str(e))
            except Exception:
                # Whatever it was, the next round is as likely to be needed as this one.
                _log.exception("sweep.failed")
            rest = min(pause, _SHORTEST_PAUSE)
            await asyncio.sleep(rest)
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the nudge.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((pause - rest) * random.uniform(0.9, 1.0)):
                    await self._nudge.wait()

    def nudge(self) -> None:
        """Look again soon: this process may have set a timer, or ended a run."""
        self._nudge.set()

    async def once(self) -> SweepReport:
        """Do everything that is due now, except looking after readers.

        Raises:
            StoreUnavailable: Redis cannot be reached; what was done is done.
        """
        report = SweepReport(pause=self._longest)
        seconds, micros = await self._door.call("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        await all_of(self._shard(tag, now, report) for tag in self._keys.tags)
        return report

    @property
    def idle(self) -> Idle:
        """The queues that stand empty."""
        return self._idle

    @property
    def readers(self) -> Readers:
        """The consumers of the queues."""
        return self._readers

    async def _shard(self, tag: str, now: int, report: SweepReport) -> None:
        flat = await self._door.call("ZRANGE", self._keys.timers(tag), "-inf", "+inf", "BYSCORE", "LIMIT", 0, _AT_ONCE, "WITHSCORES")
        for member, score in zip(flat[::2], flat[1::2], strict=True):
            timer = Timer.parse(member)
            if timer is None:
                await self._door.call("ZREM", self._keys.timers(tag), member)
                continue
            if (wait := float(score) - now) > 0:
                # Leases are looked at in every round anyway; they are nearly always renewed before they are due.
                if timer.kind != "lease":
                    report.pause = max(0.02, min(report.pause, wait / 1000))
                continue
            if timer.kind not in KINDS:
                # Of a newer version that runs beside this one: it is that one's to serve, and must only not stand in front of the others.
                await self._set_back(timer, now)
                continue
            report.timers += 1
            report.pause = min(report.pause, 1.0) if len(flat) < 2 * _AT_ONCE else 0.02  # a step may have set another, or there is more
            report.reclaimed += await self._serve(timer, now)

    async def _serve(self, timer: Timer, now: int) -> int:
        try:
            return await self._steps[timer.kind](timer) or 0
        except StoreUnavailable:
            raise
        except Exception:
            # One run that cannot be served, whatever is wrong with it, must not keep all others from being: it would be among the first
            # of every round, and be reported in each.
            _log.exception("sweep.timer_failed", kind=timer.kind, run_id=timer.run_id)
            await self._set_back(timer, now)
            return 0

    async def _set_back(self, timer: Timer, now: int) -> None:
        # XX and GT: it may have been struck or set anew meanwhile.
        await self._door.call("ZADD", self._keys.timers(shard_of(timer.run_id)), "XX", "GT", now + _SET_BACK_MS, timer.member)

    async def _lease(self, timer: Timer) -> int:
        agent, entry = await self._door.call("HMGET", self._keys.run(timer.run_id), "agent", "entry")
        if agent is None:
            await self._strike(timer)
            return 0
        return await self._readers.reclaim(timer.run_id, agent.decode(), entry or b"")

    async def _expire(self, timer: Timer) -> None:
        await self._with_agent("expire", timer, GROUP)

    async def _retry(self, timer: Timer) -> None:
        await self._with_agent("retry", timer)

    async def _with_agent(self, command: str, timer: Timer, *args: Any) -> None:
        agent, session = await self._door.call("HMGET", self._keys.run(timer.run_id), "agent", "session")
        if agent is None:
            await self._strike(timer)
            return
        keys = self._keys.of_run(timer.run_id, agent.decode(), session and session.decode())
        await self._door.run(self._scripts[command], keys, timer.run_id, *args, agent)

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
        settled = False
        # Again where the run ended meanwhile, until what was written is what is true: another sweeper may have written the key's expiry
        # already, and struck the timer, before this one wrote that it has none.
        while not settled:
            hash_ = pairs(await self._door.call("HGETALL", self._keys.run(timer.run_id)))
            # A record that is gone takes its key with it: an expiry in the past.
            expires = (to_record(hash_).expires_at or 0) if hash_ else 1
            await self._door.run(self._scripts["keep"], {"idempotency": key}, timer.run_id, fingerprint, expires)
            finished = hash_.get("finished_at", b"")
            reply = await self._door.run(self._scripts["settled"], self._keys.of_run(timer.run_id), timer.member, finished)
            settled = reply.word == "OK"

    async def _forget(self, timer: Timer) -> None:
        tenant, session, sessions = [*timer.extra, None, None][:3]
        keys = self._keys.of_run(timer.run_id, session=session) | {"tenant": tenant, "sessions": sessions}
        await self._door.run(self._scripts["forget"], keys, timer.run_id, timer.member, self._keep_ms)

    async def _lapse(self, timer: Timer) -> None:
        (session,) = timer.extra
        await self._door.run(self._scripts["lapse"], self._keys.of_run(timer.run_id, session=session), timer.member)

    async def _turn(self, timer: Timer) -> None:
        # Each such timer is set once only, so that one that was served can be struck without missing another.
        await self._turns.advance(timer.extra[0])
        await self._strike(timer)

    async def _vacate(self, timer: Timer) -> None:
        name = timer.run_id
        keys = self._keys.of_session(name) | {"timers": self._keys.timers(shard_of(name)), "sessions": timer.extra[0]}
        await self._door.run(self._scripts["vacate"], keys, timer.member, self._keep_ms)

    async def _trim(self, timer: Timer) -> None:
        # Struck first: what is appended while it is served may set it again. Lost with a sweeper that dies here, it comes with the next
        # events.
        if await self._door.call("ZREM", self._keys.timers(shard_of(timer.run_id)), timer.member):
            with contextlib.suppress(RunNotFound):
                await self._trimming.shorten(timer.run_id)

    async def _strike(self, timer: Timer) -> None:
        await self._door.call("ZREM", self._keys.timers(shard_of(timer.run_id)), timer.member)
