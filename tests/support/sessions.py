"""What must hold for every session after every test, read with a plain client."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reattach.core.run import TERMINAL_STATES

from .admin import Admin

if TYPE_CHECKING:
    from .invariants import RunKeys

_SESSION = re.compile(rb".*:session:(ses_[0-9a-z]{26})")


def check_sessions(admin: Admin, keys: Sequence[bytes], runs: Sequence["RunKeys"]) -> None:
    """A session's log has every event of its runs once, without a gap, and its list of open runs is what their records say.

    Raises:
        AssertionError: It is not so.
    """
    named = {match[1].decode(): key for key in keys if (match := _SESSION.fullmatch(key))}
    for name, key in named.items():
        facts: Any = admin.hgetall(key)
        if b"created_at" in facts:
            mine = {run.run_id: run for run in runs if run.record.get("session") == name}
            _check_session(admin, name, key.decode(), int(facts.get(b"sequence", 0)), mine)
    for run in runs:
        assert run.record.get("session", "") in {"", *named}, f"{run.run_id}: its session is gone"


def _check_session(admin: Admin, name: str, key: str, sequence: int, runs: "dict[str, RunKeys]") -> None:
    log: Any = admin.xrange(f"{key}:log")
    place: int | None = None
    ends: dict[str, int] = {}
    for entry, fields in log:
        run_id, first, last = fields[b"run"].decode(), int(fields[b"first"]), int(fields[b"last"])
        before = int(entry.split(b"-")[0]) - (last - first) - 1
        assert place in (None, before), f"{name}: hole or overlap before {before + 1}, the entry before it ends at {place}"
        assert ends.get(run_id, first - 1) == first - 1, f"{name}: {run_id} goes on at {first} after {ends.get(run_id)}"
        if place is None and before == 0:
            assert first == 1
        place, ends[run_id] = before + last - first + 1, last
    assert place in (None, sequence), f"{name}: its log ends at {place}, its record says {sequence}"
    for run_id, run in runs.items():
        if run_id in ends:
            assert ends[run_id] == int(run.record["sequence"]), f"{name}: {run_id} is at {run.record['sequence']}, here at {ends[run_id]}"
    active = {run_id for run_id, run in runs.items() if run.record["state"] not in TERMINAL_STATES}
    listed: Any = admin.zrange(f"{key}:open", 0, -1)
    assert {member.decode() for member in listed} == active, f"{name}: {listed} are listed as open, {active} are"
    queued = [run for run in runs.values() if run.record.get("held") and run.record.get("entry")]
    assert not queued, f"{name}: held and in a queue: {queued}"
