"""What must hold after every test that touched Redis, read with a plain client: not through the code under test."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reattach.core.event import DELTA_TYPES
from reattach.core.run import TERMINAL_STATES

from .admin import Admin, RedisError
from .sessions import check_sessions
from .waiting import wait_until_sync

PERMANENT = {
    r"config": "what every process must agree on",
    r"\{\d\d\}:bell": "one capped stream per shard",
    r"\{\d\d\}:wake": "one capped stream per shard",
    r"\{\d\d\}:timers": "one per shard; members go when they are due",
    r"\{\d\d\}:agents": "one per shard, as large as the number of agents",
    r"\{\d\d\}:queue:[a-z0-9._-]+": "one per agent and shard; entries go when their run ends",
    r"\{\d\d\}:poison:[a-z0-9._-]+": "one capped stream per agent and shard",
    r"\{\d\d\}:tenant:[0-9a-f]+:runs": "members go with their runs",
    r"\{\d\d\}:tenant:[0-9a-f]+:sessions": "members go with their sessions",
    r"\{\d\d\}:session:ses_[0-9a-z]{26}(:(runs|log|open|lapses))?": "goes with the last of its runs",
    r"workers?(:.*)?": "who works; expires or is rewritten",
}
"""Keys without an expiry that are not a run's own, each with its reason (after the prefix)."""

_RUN_KEY = re.compile(rb".*\{\d\d\}:run:(run_[0-9a-z]{26})(:(?:log|audit|effects|snapshot))?")


@dataclass(frozen=True)
class RunKeys:
    """One run as it lies in Redis."""

    run_id: str
    base: str
    record: dict[str, str]
    log: list[tuple[int, str, bytes]]
    audit: list[tuple[int, str, bytes]]

    @property
    def ended(self) -> bool:
        """Whether its record says that it ended."""
        return self.record["state"] in TERMINAL_STATES

    def owned(self) -> list[str]:
        """Every key that may be its own."""
        return [self.base, *(f"{self.base}:{part}" for part in ("log", "audit", "effects", "snapshot"))]


def all_keys(admin: Admin, prefix: str) -> list[bytes]:
    """Every key under a test's prefix."""
    return sorted(admin.scan_iter(match=f"{prefix}:*", count=1000))


def _entries(admin: Admin, key: str) -> list[tuple[int, str, bytes]]:
    found: Any = admin.xrange(key)
    return [(int(i.split(b"-")[0]), fields[b"type"].decode(), fields[b"payload"]) for i, fields in found]


def read_runs(admin: Admin, prefix: str) -> Iterator[RunKeys]:
    """Every run under a test's prefix."""
    for key in all_keys(admin, prefix):
        match = _RUN_KEY.fullmatch(key)
        if match is None or match[2] is not None:
            continue
        base = key.decode()
        raw: Any = admin.hgetall(key)
        record = {name.decode(): value.decode("utf-8", "replace") for name, value in raw.items()}
        if not record:
            continue
        yield RunKeys(match[1].decode(), base, record, _entries(admin, f"{base}:log"), _entries(admin, f"{base}:audit"))


def check_run(run: RunKeys) -> None:
    """G1 and G2 on one run's streams.

    Raises:
        AssertionError: Log, audit stream and record do not tell one story.
    """
    name, sequence = run.run_id, int(run.record["sequence"])
    numbers = [number for number, _, _ in run.log]
    if numbers:
        assert numbers == list(range(numbers[0], sequence + 1)), f"{name}: log {numbers} does not run up to {sequence}"
        assert numbers[0] == int(run.record.get("log_from", 1)), (
            f"{name}: log starts at {numbers[0]}, record says {run.record.get('log_from')}"
        )
    kept = [entry for entry in run.log if entry[1] not in DELTA_TYPES]
    if run.audit and numbers:
        assert [e for e in run.audit if e[0] >= numbers[0]] == kept, f"{name}: audit differs from the log's non-delta events"
    assert not [e for e in run.audit if e[1] in DELTA_TYPES], f"{name}: delta in the audit stream"
    merged = sorted({e[0]: e for e in [*run.log, *run.audit]}.values())
    endings = [e for e in merged if e[1].removeprefix("run.") in TERMINAL_STATES and e[1].startswith("run.")]
    if run.ended:
        assert [(e[0], e[1]) for e in endings] in ([(sequence, f"run.{run.record['state']}")], []), (
            f"{name}: {endings} but {run.record['state']}"
        )
        assert endings or not merged, f"{name}: ended without a terminal event"
    else:
        assert not endings, f"{name}: {endings} although it is {run.record['state']}"


def unexplained_keys(admin: Admin, prefix: str) -> list[str]:
    """Keys without an expiry and without a reason (G6)."""
    ended = {run.run_id for run in read_runs(admin, prefix) if run.ended}
    alive = {run.run_id for run in read_runs(admin, prefix)} - ended
    found: list[str] = []
    for key in all_keys(admin, prefix):
        ttl: Any = admin.pttl(key)
        if ttl != -1:
            continue
        match = _RUN_KEY.fullmatch(key)
        rest = key.decode("utf-8", "replace").removeprefix(f"{prefix}:")
        if match is not None:
            if match[1].decode() not in alive:
                found.append(f"{rest} of an ended run")
        elif ":idem:" in rest:
            held: Any = admin.get(key) or b""
            if held.decode().partition(" ")[0] not in alive:
                found.append(f"{rest} of a run that is not alive")
        elif not any(re.fullmatch(pattern, rest) for pattern in PERMANENT):
            found.append(f"{rest} (unknown kind)")
    return found


def queued_without_reason(admin: Admin, prefix: str) -> list[str]:
    """Queue entries of runs that ended: work that somebody would still be handed (G2, G6)."""
    runs = {run.run_id: run for run in read_runs(admin, prefix)}
    found: list[str] = []
    for key in all_keys(admin, prefix):
        if b":queue:" not in key:
            continue
        entries: Any = admin.xrange(key)
        for entry, fields in entries:
            run = runs.get(fields.get(b"run", b"").decode())
            if run is not None and run.ended:
                found.append(f"{key.decode()} {entry.decode()} → {run.run_id} ({run.record['state']})")
    return found


async def check_snapshots(settings: Any, runs: list[RunKeys]) -> None:
    """G3: the snapshot any replica would give agrees with the record and the terminal event.

    Runs the sweep until it has nothing more to do, so that what is left to expire has its expiry afterwards.
    """
    from reattach.store import Store

    store = await Store.open(settings)
    try:
        for run in runs:
            snapshot = await store.runs.snapshot(run.run_id)
            assert snapshot.sequence >= int(run.record["sequence"]), f"{run.run_id}: snapshot is behind the log"
            if run.ended:
                assert snapshot.state == run.record["state"], f"{run.run_id}: snapshot {snapshot.state}, record {run.record['state']}"
                assert snapshot.finished_at is not None and not snapshot.waiting
        if any(run.ended for run in runs):
            await store.sweep.once()
    finally:
        await store.close()


def check_redis(admin: Admin, settings: Any, *, patience: float = 3) -> None:
    """Everything above, for one test's prefix; keys get some seconds to have their expiry.

    Raises:
        AssertionError: Something does not hold.
    """
    runs = list(read_runs(admin, settings.prefix))
    for run in runs:
        check_run(run)
    check_sessions(admin, all_keys(admin, settings.prefix), runs)
    if runs:
        asyncio.run(check_snapshots(settings, runs))
        assert not queued_without_reason(admin, settings.prefix)
    left = unexplained_keys(admin, settings.prefix)
    wait_until_sync(lambda: not unexplained_keys(admin, settings.prefix), f"keys without expiry to get one: {left}", timeout=patience)


def clear(admin: Admin, prefix: str) -> None:
    """Remove a test's keys."""
    keys = all_keys(admin, prefix)
    for start in range(0, len(keys), 500):
        with contextlib.suppress(RedisError):
            admin.unlink(*keys[start : start + 500])
