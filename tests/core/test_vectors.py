"""The vectors that bind every implementation of the fold."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reattach.core.event import Event
from reattach.core.fold import Fold
from reattach.core.rules import RULES
from reattach.core.run import Retention, RunRecord

from . import reference
from .folding import raw_view

VECTORS = Path(__file__).parents[1] / "vectors"
CASES: list[dict[str, Any]] = json.loads((VECTORS / "fold.json").read_text("utf-8"))


def one_line(value: Any) -> bytes:
    """A value as a payload."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def record(run: dict[str, Any]) -> RunRecord:
    """The record behind a case."""
    facts = {name: value for name, value in run.items() if name in RunRecord.__struct_fields__}
    facts |= {"input": one_line(run["input"]), "metadata": one_line(run["metadata"]), "retention": Retention(**run["retention"])}
    return RunRecord(state="queued", sequence=1, created_at=0, last_activity_at=0, **facts)


def stored(event: dict[str, Any]) -> Event:
    """An event of a case as the log has it."""
    at = datetime.fromisoformat(event["occurred_at"])
    return Event(event["sequence"], event["type"], round(at.timestamp() * 1000), one_line(event["payload"]))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector(case: dict[str, Any]) -> None:
    """The package's fold gives the snapshot, also when it is stored and loaded after every event."""
    folded = Fold()
    for event in case["events"]:
        folded.apply(stored(event))
        folded = Fold.load(folded.dump())
    assert json.loads(raw_view(folded, record(case["run"]))) == case["snapshot"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector_from_snapshot_to_snapshot(case: dict[str, Any]) -> None:
    """So does a fold that remembers nothing but the snapshot before: what a client that joins late can do."""
    shown = reference.begin({name: value for name, value in case["run"].items() if name != "retention"})
    until = {name: case["snapshot"][name] for name in ("events_expire_at", "expires_at")}
    shown |= dict.fromkeys(until)
    for event in case["events"]:
        shown = json.loads(json.dumps(shown))
        reference.step(shown, event, until)
    assert shown == case["snapshot"]


def numbers(text: str) -> list[float]:
    """All numbers in a JSON text."""
    found: list[float] = []

    def keep(number: str) -> float:
        found.append(float(number) if set(number) & set(".eE") else int(number))
        return found[-1]

    json.loads(text, parse_int=keep, parse_float=keep)
    return found


def test_vectors_are_data_for_any_language() -> None:
    """Unique names, sequences that grow, nothing a double cannot hold, and at least one case for every projected type."""
    assert len({case["name"] for case in CASES}) == len(CASES) >= 12
    assert {event["type"] for case in CASES for event in case["events"]} >= set(RULES)
    for case in CASES:
        assert list(case) == ["name", "about", "run", "events", "snapshot"]
        sequences = [event["sequence"] for event in case["events"]]
        assert sequences == sorted(set(sequences))
        assert all(list(event) == ["sequence", "type", "occurred_at", "payload"] for event in case["events"])
    assert all(abs(number) <= 2**53 - 1 for number in numbers(json.dumps(CASES)))


def test_the_rules_name_every_projected_type() -> None:
    """The README beside the vectors says what each of them does."""
    rules = (VECTORS / "README.md").read_text("utf-8")
    assert [kind for kind in RULES if f"`{kind}`" not in rules] == []
