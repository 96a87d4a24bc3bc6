"""What holds in every state, and of every step, whoever did what before."""

import json
from typing import Any

from reattach.core.event import DELTA_TYPES
from reattach.core.fold import Fold
from reattach.core.run import TERMINAL_STATES
from reattach.store.records import to_record
from reattach.store.scripts import Reply

from .actors import Cast, Step
from .world import PAST, Call, Facts

_LIFE = {
    "run.started": ("queued", "running"),
    "run.resumed": ("queued", "running"),
    "run.retrying": ("running", "queued"),
    "run.waiting": ("running", "waiting"),
    "input.received": ("waiting", "queued"),
}
"""What leads from which state to which, beside endings and requests to stop."""


def check_state(facts: Facts) -> None:
    """Everything about one state.

    Raises:
        AssertionError: It should not be reachable.
    """
    _check_log(facts)
    _check_session(facts)
    _check_life(facts)
    _check_fold(facts)
    _check_effects(facts)
    if facts.state in TERMINAL_STATES:
        _check_end(facts)
    else:
        _check_reachable(facts)


def _check_log(facts: Facts) -> None:
    """No gap, no event twice, and record, log and audit stream at the same place."""
    numbers = [event.sequence for event in facts.log]
    assert numbers == list(range(1, facts.number("sequence") + 1)), f"record at {facts.number('sequence')}, log {numbers}"
    assert facts.audit == tuple((e.sequence, e.type) for e in facts.log if e.type not in DELTA_TYPES), "the audit stream differs"


def _check_session(facts: Facts) -> None:
    """The session has every event of the run once, in order, at the same place, and lists the run as open while it goes on."""
    if facts.text("session"):
        place, entries, opened = facts.session
        covered = [number for _, first, last in entries for number in range(first, last + 1)]
        assert covered == [event.sequence for event in facts.log], f"the session has {entries}, the log {len(facts.log)} events"
        assert place == len(covered) and [p for p, _, _ in entries] == [last for _, _, last in entries], f"{entries} at {place}"
        assert opened == (facts.state not in TERMINAL_STATES), f"open: {opened}, but {facts.state}"


def _check_life(facts: Facts) -> None:
    """The log tells a life that the contract's diagram allows: one owner at a time, one end, nothing after it."""
    state, attempt = "queued", 0
    for event in facts.log[1:]:
        assert state not in TERMINAL_STATES, f"{event.type} after the end"
        if event.type in _LIFE:
            before, after = _LIFE[event.type]
            assert state == before, f"{event.type} while {state}"
            state = after
        elif event.type.removeprefix("run.") in TERMINAL_STATES:
            assert event.type != "run.succeeded" or state == "running", f"succeeded while {state}"
            state = event.type.removeprefix("run.")
        else:
            assert state == "running" or event.type in ("run.cancel_requested", "tool.unresolved"), f"{event.type} while {state}"
        about: dict[str, Any] = json.loads(event.payload)
        if "attempt" in about:
            step = 1 if event.type == "run.retrying" or attempt == 0 else 0
            assert about["attempt"] == attempt + step, f"attempt {about['attempt']} after {attempt}"
            attempt = about["attempt"]
    assert state == facts.state, f"the log says {state}, the record {facts.state}"
    kinds = [event.type for event in facts.log]
    for once in ("run.cancel_requested", "tool.requested", "tool.completed", "tool.failed", "input.received", "run.waiting"):
        assert kinds.count(once) <= 1, f"{kinds.count(once)} × {once}"


def _check_fold(facts: Facts) -> None:
    """The record says what the fold of the log says."""
    fold = Fold()
    for event in facts.log:
        fold.apply(event)
    record = to_record(facts.record)
    view = fold.view(record, earliest_sequence=1)
    assert (view.state, view.attempt, view.sequence) == (record.state, record.attempt, record.sequence), "record and fold differ"
    assert view.cancel.version == record.cancel_version, "record and fold differ in the cancel request"
    assert (view.waiting.wait_id if view.waiting else None) == record.wait_id, "record and fold differ in what is waited for"
    assert (view.finished_at is None) == (record.finished_at is None), "record and fold differ in the end"
    if record.terminal:
        assert (view.cancel.disposition or "") == facts.text("disposition"), "record and fold differ in the disposition"
        assert len(view.unresolved) == record.unresolved, f"{len(view.unresolved)} calls unresolved, the record says {record.unresolved}"


def _check_effects(facts: Facts) -> None:
    """A tool was allowed to run once, and what is recorded of it is what the log says."""
    kinds = [event.type for event in facts.log]
    status = facts.effects.get("call_1", b"none").split(b" ")[0].decode()
    last = {"none": None, "intent": "tool.requested", "receipt": "tool.completed", "failed": "tool.failed", "unresolved": "tool.unresolved"}
    told = [kind for kind in kinds if kind.startswith("tool.")]
    assert (told[-1] if told else None) == last[status], f"{status} in the record, {told} in the log"
    assert facts.number("receipts") == kinds.count("tool.completed"), "receipts are counted wrongly"


def _check_end(facts: Facts) -> None:
    """Nothing is left to do for an ended run but to seal and to forget it, in its session too, and its story about effects is true."""
    assert not facts.queue, "an ended run is still in the queue"
    due = {"seal", "forget", "lapse"} if facts.text("session") else {"seal", "forget"}
    assert set(facts.timers) == due, f"timers of an ended run: {sorted(facts.timers)}"
    status = facts.effects.get("call_1", b"none").split(b" ")[0].decode()
    assert status != "intent", "ended with an open intention"
    if facts.state == "cancelled":
        may_have_happened = status in ("receipt", "unresolved")
        assert facts.text("disposition") == ("cancelled_after_effect" if may_have_happened else "cancelled_before_effect"), (
            f"{facts.text('disposition')}, but the effect is {status}"
        )


def _check_reachable(facts: Facts) -> None:
    """Somebody will come for it: a worker, a sweeper, or whoever it waits for. And it is carried only once."""
    entry = facts.text("entry")
    assert set(facts.queue) == ({entry} if entry else set()), f"carried by {entry or 'nothing'}, queued {facts.queue}"
    timers = set(facts.timers) - {"key"}
    match facts.state:
        case "queued":
            assert timers == (set() if entry else {"retry"}), f"queued by {entry or 'nothing'}, timers {sorted(timers)}"
            assert not facts.text("fence"), "queued, but somebody's fence opens it"
            assert not facts.number("cancel_version"), "queued, although somebody asked to stop it"
        case "running":
            assert entry and facts.queue[entry], "running, but nobody was handed its entry"
            assert facts.timers.get("lease") == facts.number("lease_until"), "its lease would not be looked after"
            assert timers == {"lease"} and facts.text("fence"), f"running, timers {sorted(timers)}"
        case _:
            assert not facts.text("fence") and facts.text("wait_id"), "waiting under a lease, or for nothing"
            until = facts.number("wait_until")
            assert facts.timers == ({"wait": until} if until else {}), f"waits until {until}, timers {facts.timers}"


def check_step(before: Facts, after: Facts, step: Step) -> None:
    """What one step may do.

    Raises:
        AssertionError: It did something else.
    """
    assert after.log[: len(before.log)] == before.log, "history changed"
    if before.state in TERMINAL_STATES:
        assert after.log == before.log and after.state == before.state, "an ended run changed"
    if step.by and step.by != before.text("fence"):
        assert after.log == before.log and after.state == before.state, "written without owning the run"
    if after.state in TERMINAL_STATES and before.state not in TERMINAL_STATES:
        missing = {"run", "log", "audit", "effects"} - after.expiring - ({"effects"} if not after.effects else set())
        assert not missing, f"ended without an expiry of {missing}"


_REFUSALS = frozenset({"FENCED", "CLOSED", "GAP", "MISSING", "GONE", "HELD", "SHUT", "TERMINAL", "REUSED"})
_OF_SWEEPERS = frozenset({"reclaim", "expire"})
"""Commands whose answer nobody depends on."""


def check_repeat(act: Call, once: Facts, twice: Facts, answer: Reply) -> None:
    """A command whose reply was lost is sent again: that changes nothing more, and whoever sent it hears that it was done.

    Raises:
        AssertionError: It did, or is refused.
    """
    assert act.script in _OF_SWEEPERS or answer.word not in _REFUSALS, f"the same {act.script} again was answered {answer.word}"
    assert twice.log == once.log and twice.state == once.state and twice.effects == once.effects, (
        "the same command twice did more than once"
    )
    assert set(twice.timers) == set(once.timers) and set(twice.queue) == set(once.queue), "the same command twice left something over"


def shape(facts: Facts, cast: Cast) -> str:
    """What a state is for whatever can still happen: absolute numbers, times and names are left out; the two workers are alike."""
    return min(_shape(facts, cast, order) for order in ("ab", "ba"))


def _shape(facts: Facts, cast: Cast, order: str) -> str:
    hands = [cast.hands[name] for name in order]
    fences = {hand.fence: str(n) for n, hand in enumerate(hands) if hand.fence} | {"": ""}
    entry = facts.text("entry")
    effects = [(name, value.split(b" ")[0], _mark(value, fences)) for name, value in sorted(facts.effects.items())]
    known = [
        (
            bool(hand.delivery) + (hand.delivery == entry),
            bool(hand.fence) + (hand.fence == facts.text("fence")),
            hand.entry == entry,
            hand.batch - facts.number("batch") if hand.fence == facts.text("fence") else bool(hand.batch),
        )
        for hand in hands
    ]
    return repr(
        (
            facts.state,
            fences.get(facts.text("fence"), "old"),
            fences.get(facts.text("released"), "old"),
            facts.number("cancel_version"),
            facts.number("losses"),
            facts.number("receipts"),
            "resume" in facts.record,
            facts.text("wait_mode"),
            effects,
            sorted((kind, due == PAST) for kind, due in facts.timers.items()),
            [order.find(holder) for holder in facts.queue.values()] if "" not in facts.queue.values() else "free",
            known,
            None if cast.seen is None else (cast.seen == "") + 2 * (cast.seen == entry),
        )
    )


def _mark(value: bytes, fences: dict[str, str]) -> str:
    mark = value.split(b" ")[1].decode()
    return fences.get(mark, "old" if ":" not in mark else mark)
