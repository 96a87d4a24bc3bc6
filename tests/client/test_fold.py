"""The fold in the browser is the server's: the same vectors, and the same answer to any log."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from reattach.core.event import Event
from reattach.core.fold import Fold

from ..core.folding import RECORD, raw_view
from ..core.folding import when as time_of
from ..core.logs import frame, logs, talk
from ..core.test_vectors import CASES
from ..support.processes import ROOT

Json = dict[str, Any]
Folder = Callable[[Json, list[Json]], Json]

FOLDED = frozenset(
    {
        "state", "attempt", "sequence", "waiting", "outcome", "error", "created_at", "started_at", "last_activity_at", "finished_at",
        "events_expire_at", "expires_at", "messages", "tools", "resources", "unresolved", "cancel",
    }
)  # fmt: skip
"""What of a snapshot events change."""


@pytest.fixture(scope="module")
def folded() -> Iterator[Folder]:
    """Fold in JavaScript; one process for all of this file."""
    command = ["node", str(Path(__file__).parent / "fold.mjs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def fold(run: Json, events: list[Json]) -> Json:
            stdin.write(json.dumps({"run": run, "events": events}).encode() + b"\n")
            stdin.flush()
            return json.loads(stdout.readline())

        yield fold
        stdin.close()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector(case: Json, folded: Folder) -> None:
    """Every vector, folded in one go and from snapshot to snapshot; inputs are frozen, so nothing is changed in place."""
    got = folded(case["run"], case["events"])
    assert got["whole"] == got["snapshots"][-1] == case["snapshot"]


def constants() -> Json:
    """What no event changes, and the retention."""
    shown = {name: value for name, value in json.loads(raw_view(Fold())).items() if name not in FOLDED}
    return shown | {"retention": {"events_ms": RECORD.retention.events_ms, "run_ms": RECORD.retention.run_ms}}


@settings(max_examples=150)
@given(logs() | logs(talk))
def test_any_log(folded: Folder, events: list[Event]) -> None:
    """Whatever is in a log, both show the same at every event of it."""
    python, wanted = Fold(), list[Json]()
    for event in events:
        python.apply(event)
        wanted.append(json.loads(raw_view(python)))
    got = folded(constants(), [frame(event, time_of(event.sequence)) for event in events])
    assert got["snapshots"] == wanted and got["whole"] == wanted[-1]


def test_names_that_objects_have_anyway(folded: Folder) -> None:
    """Resources, tools and messages may be called like what every JavaScript object has; they are shown, and nothing else changes."""
    names = ["__proto__", "constructor", "toString", "hasOwnProperty"]
    said = [("run.created", {"agent": "a"})]
    said += [("tool.completed", {"tool_call_id": name, "tool": name, "result_version": f"{name}:v1"}) for name in names]
    said += [("message.delta", {"message_id": name, "text": "x"}) for name in names]
    said += [(name, {}) for name in names]
    events = [Event(n, kind, 1000 * n, json.dumps(payload).encode()) for n, (kind, payload) in enumerate(said, 1)]
    python = Fold()
    for event in events:
        python.apply(event)
    got = folded(constants(), [frame(event, "1970-01-01T00:00:00.000Z") for event in events])["whole"]
    wanted = json.loads(raw_view(python))
    assert got["resources"] == wanted["resources"] == dict.fromkeys(names, "v1")
    assert [m["message_id"] for m in got["messages"]] == [t["tool_call_id"] for t in got["tools"]] == names
