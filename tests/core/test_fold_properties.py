"""What holds for the fold of every log, whatever is in it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reattach.core.event import DELTA_TYPES, Event
from reattach.core.fold import Fold
from reattach.core.rules import RULES
from reattach.core.run import bounds

from . import reference
from .folding import RECORD, fold, log, raw_view
from .folding import when as time_of
from .logs import frame, logs, talk


def is_delta(event: Event) -> bool:
    """Whether its class may be forgotten early."""
    return event.type in DELTA_TYPES


def closing(events: list[Event]) -> Event:
    """One more event, which no retention takes early: an ended run's log never ends with a delta."""
    return Event(len(events) + 1, "x.y", events[-1].at, b"{}")


@given(logs() | logs(talk))
def test_every_prefix_is_its_snapshot(events: list[Event]) -> None:
    """At every event the fold shows what the plain fold of parsed JSON shows, which remembers nothing but the snapshot before."""
    whole: Any = json.loads(raw_view(Fold()))
    changed = {*reference.begin({}), "events_expire_at", "expires_at"}
    shown = reference.begin({k: v for k, v in whole.items() if k not in changed} | {"events_expire_at": None, "expires_at": None})
    folded = Fold()
    for event in events:
        folded.apply(event)
        ends = {name: value for name, value in json.loads(raw_view(folded)).items() if name in ("events_expire_at", "expires_at")}
        reference.step(shown, frame(event, time_of(event.sequence)), ends)
        assert json.loads(raw_view(folded)) == shown


@given(logs() | logs(talk), st.data())
def test_a_fold_can_be_stored_at_any_point(events: list[Event], data: st.DataObject) -> None:
    """Stored and loaded between any two events, it ends as if it had never been; storing it twice gives the same bytes."""
    at = data.draw(st.integers(0, len(events)))
    first = fold(events[:at])
    again = Fold.load(first.dump())
    assert again.dump() == first.dump() and (again.sequence, again.covered, again.floor) == (first.sequence, first.covered, first.floor)
    assert raw_view(fold(events[at:], again)) == raw_view(fold(events))


@given(logs(talk), st.data())
def test_a_live_log_can_be_trimmed_up_to_what_is_covered(events: list[Event], data: st.DataObject) -> None:
    """Any deltas up to `covered` at any moment may be gone: every snapshot from then on is the same for every client, wherever it was."""
    seen = data.draw(st.integers(1, len(events)))
    covered = fold(events[:seen]).covered
    gone = data.draw(st.sets(st.sampled_from([e.sequence for e in events if is_delta(e) and e.sequence <= covered] or [0])))
    cursor = data.draw(st.integers(0, len(events)))
    replayed = fold(events[:cursor])
    left = [e for e in events[cursor:] if e.sequence not in gone]
    for latest in range(max(seen, cursor), len(events) + 1):
        assert raw_view(fold([e for e in left if e.sequence <= latest], Fold.load(replayed.dump()))) == raw_view(fold(events[:latest]))


@given(logs(talk), st.data())
def test_without_any_delta_a_replay_from_the_floor_gives_the_snapshot(events: list[Event], data: st.DataObject) -> None:
    """Once all deltas are gone, every cursor that `floor` calls good folds to the snapshot."""
    events = [*events, closing(events)]
    last = fold(events)
    cursor = data.draw(st.integers(last.floor - 1, len(events)))
    left = [e for e in events[cursor:] if not is_delta(e)]
    assert raw_view(fold(left, fold(events[:cursor]))) == raw_view(last)


@given(logs(talk))
def test_bounds_are_exact(events: list[Event]) -> None:
    """A delta that changes what others see is never called covered: each lies between `covered` and `floor`."""
    events = [*events, closing(events)]
    last = fold(events)
    for delta in filter(is_delta, events):
        if raw_view(fold(e for e in events if e is not delta)) != raw_view(last):
            assert last.covered < delta.sequence < last.floor
    assert 0 <= last.covered < len(events) and 1 <= last.floor <= len(events)
    assert (last.covered == len(events) - 1) == (last.floor == 1)


types = st.sampled_from([*RULES, "a.b"])
odd_bytes = st.sampled_from([b"{}", b"[]", b"null", b'{"message_id":"m"}', b'{"message_id":"m","content":[[1,]]}', b'{"a":' + b"[" * 5000])


@given(st.lists(st.tuples(types, st.binary(max_size=12) | odd_bytes), max_size=6))
def test_no_payload_makes_a_run_unreadable(said: list[tuple[str, bytes]]) -> None:
    """Whatever is in a log, it folds, and its snapshot is JSON."""
    folded = fold(log(*said))
    assert folded.sequence == len(said)
    assert json.loads(raw_view(folded))["sequence"] == len(said)
    assert raw_view(Fold.load(folded.dump())) == raw_view(folded)


@settings(max_examples=20)
@given(logs())
def test_the_order_of_events_is_checked(events: list[Event]) -> None:
    """An event is folded once: a repeat or a step back is refused and changes nothing."""
    folded = fold(events)
    before = folded.dump()
    for event in events:
        with pytest.raises(ValueError, match="cannot be folded"):
            folded.apply(event)
    assert folded.dump() == before


@given(logs(talk), st.sampled_from(["log", "audit", "nothing"]), st.data())
def test_every_cursor_that_bounds_allow_folds_to_the_snapshot(events: list[Event], left: str, data: st.DataObject) -> None:
    """`run.bounds` end to end: log (trimmed or not) and audit stream, then the audit stream alone, then nothing."""
    events = [*events, closing(events)]
    last = fold(events)
    trimmed = data.draw(st.integers(0, last.covered))
    head = [e for e in events if left == "log" and e.sequence > trimmed]
    audit = [e for e in events if left != "nothing" and not is_delta(e)]
    record = msgspec.structs.replace(RECORD, sequence=last.sequence, floor=last.floor, covered=last.covered, sealed=True)
    first = [stream[0].sequence if stream else None for stream in (head, audit)]
    earliest = bounds(record, log_first=first[0], audit_first=first[1]).earliest_sequence
    assert earliest == {"log": 1, "audit": last.floor, "nothing": last.sequence + 1}[left]
    kept = sorted({e.sequence: e for e in [*audit, *head]}.items())
    for cursor in range(earliest - 1, len(events) + 1):
        replayed = fold((e for sequence, e in kept if sequence > cursor), fold(events[:cursor]))
        assert raw_view(replayed) == raw_view(last)
