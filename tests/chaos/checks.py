"""Whether every run tells one true story after all that (the cases' invariants G1 to G8, and the effects)."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from reattach.core.event import Event
from reattach.core.run import TERMINAL_STATES
from reattach.core.snapshot import Snapshot
from reattach.store import Store

from ..core.reference import begin, step
from ..support.agents import lines
from ..support.client import Follower
from .people import Story

MAX_LOSSES = 5
"""Owners that the scripted agent may lose."""


@dataclass
class Tally:
    """What happened, for people.

    Attributes:
        ends: How runs ended → how many.
        findings: What must not have happened.
    """

    ends: dict[str, int] = field(default_factory=dict[str, int])
    events: int = 0
    effects: int = 0
    unresolved: int = 0
    repeated: int = 0
    attempts: int = 0
    reconnects: int = 0
    findings: list[str] = field(default_factory=list[str])

    def expect(self, right: bool, what: str) -> None:
        """Note what is not right."""
        if not right:
            self.findings.append(what)


@dataclass(frozen=True)
class Effect:
    """One tool call as the log tells it.

    Attributes:
        kinds: Its events, in order.
        lines: The idempotency keys under which it really took effect.
    """

    path: str
    kinds: tuple[str, ...]
    lines: tuple[str, ...]


async def check_story(tally: Tally, story: Story, store: Store, client: httpx.AsyncClient, bases: list[str]) -> None:
    """Everything about one run."""
    name = f"{story.job.key} ({story.run_id})"
    tally.findings += [f"{name}: {finding}" for finding in story.findings]
    if not story.run_id or story.follower is None:
        tally.findings.append(f"{name}: never came to be")
        return
    log = await store.events.after(story.run_id, 0, 100_000)
    snapshot = await store.runs.snapshot(story.run_id)
    tally.expect(snapshot.state in TERMINAL_STATES, f"{name}: is still {snapshot.state} at attempt {snapshot.attempt}: {_types(log)}")
    if snapshot.state not in TERMINAL_STATES:
        return
    tally.events += len(log)
    tally.attempts += snapshot.attempt
    tally.reconnects += len(story.follower.streams) - 1
    _check_log(tally, name, log, snapshot)
    _check_follower(tally, name, story.follower, log)
    _check_ending(tally, name, story, snapshot)
    for effect in _effects(log, story):
        _check_effect(tally, name, effect, snapshot, story.job.counters[effect.path])
    await _check_replicas(tally, name, story, snapshot, client, bases)


def _types(log: list[Event]) -> list[str]:
    return [event.type for event in log]


def _check_log(tally: Tally, name: str, log: list[Event], snapshot: Snapshot) -> None:
    tally.expect([e.sequence for e in log] == list(range(1, snapshot.sequence + 1)), f"{name}: the log has a gap")
    endings = [e.sequence for e in log if e.type.removeprefix("run.") in TERMINAL_STATES]
    tally.expect(endings == [snapshot.sequence], f"{name}: ends at {endings} of {snapshot.sequence}")
    kinds = _types(log)
    opened, closed = kinds.count("run.waiting"), kinds.count("input.received")
    tally.expect(closed <= opened <= closed + 1, f"{name}: waited {opened} times, was answered {closed} times")
    waits = [json.loads(e.payload)["wait_id"] for e in log if e.type == "run.waiting"]
    tally.expect(len(waits) == len(set(waits)), f"{name}: waited twice for the same {waits}")


def _check_follower(tally: Tally, name: str, follower: Follower, log: list[Event]) -> None:
    """G1 and G4: across all connections to all replicas, exactly the log."""
    try:
        follower.check(1, len(log))
        seen = [(e["sequence"], e["type"], e["payload"]) for e in follower.events]
        tally.expect(
            seen == [(e.sequence, e.type, json.loads(e.payload)) for e in log], f"{name}: a viewer saw something else than the log"
        )
    except AssertionError as e:
        tally.findings.append(f"{name}: {e}")


def _check_ending(tally: Tally, name: str, story: Story, snapshot: Snapshot) -> None:
    code: str = "" if snapshot.error is None else json.loads(bytes(snapshot.error)).get("code", "?")
    end = f"{snapshot.state} {code}".strip()
    tally.ends[end] = tally.ends.get(end, 0) + 1
    policies = set(story.job.counters.values())
    explained = {
        "succeeded": True,
        "cancelled": story.job.cancel_after is not None,
        "failed worker_lost": snapshot.attempt >= MAX_LOSSES,
        "failed effect_unresolved": "fail" in policies,
    }
    tally.expect(explained.get(end, False), f"{name}: {end} without a reason: {snapshot.error} after attempt {snapshot.attempt}")
    if snapshot.state == "succeeded":
        outcome: Any = json.loads(bytes(snapshot.outcome or b"null"))
        tally.expect(outcome == {"job": story.job.number}, f"{name}: outcome {outcome}")
        tally.expect(not story.late_answers, f"{name}: an answer came too late for a run that succeeded")
    if story.told in ("cancelled_before_effect", "cancelled_after_effect"):
        tally.expect(snapshot.cancel.disposition == story.told, f"{name}: told {story.told}, it is {snapshot.cancel.disposition}")
    tally.expect(snapshot.state != "cancelled" or story.told != "already_terminal", f"{name}: told that it had ended, then cancelled")


def _effects(log: list[Event], story: Story) -> list[Effect]:
    kinds: dict[str, list[str]] = {path: [] for path in story.job.counters}
    paths: dict[str, str] = {}
    for event in log:
        if event.type.startswith("tool."):
            about = json.loads(event.payload)
            if event.type == "tool.requested":
                paths[about["tool_call_id"]] = about["arguments"]["path"]
            kinds[paths[about["tool_call_id"]]].append(event.type)
    return [Effect(path, tuple(found), tuple(lines(path))) for path, found in kinds.items()]


def _check_effect(tally: Tally, name: str, effect: Effect, snapshot: Snapshot, policy: str) -> None:
    """It happened once, or it is named unresolved; and what is said of it is what it did."""
    label, count, kinds = f"{name}, {Path(effect.path).name} ({policy})", len(effect.lines), effect.kinds
    named = kinds.count("tool.unresolved")
    tally.effects += count > 0
    tally.unresolved += named
    tally.repeated += count > 1
    tally.expect(len(set(effect.lines)) <= 1, f"{label}: took effect under different keys {effect.lines}")
    tally.expect(count <= 1 or (named > 0 and policy != "fail"), f"{label}: took effect {count} times, told {kinds}")
    tally.expect(count <= kinds.count("tool.requested"), f"{label}: took effect {count} times, requested {kinds.count('tool.requested')}")
    tally.expect(kinds.count("tool.completed") <= 1, f"{label}: completed twice")
    if "tool.completed" in kinds:
        tally.expect(count > 0, f"{label}: completed without taking effect")
    elif count:
        tally.expect(kinds[-1:] == ("tool.unresolved",), f"{label}: took effect, but the last that is told is {kinds[-1:]}")
    if snapshot.cancel.disposition == "cancelled_before_effect":
        tally.expect(count == 0, f"{label}: took effect, the run says {snapshot.cancel.disposition}")
    if snapshot.state == "succeeded":
        tally.expect(kinds[-1:] == ("tool.completed",), f"{label}: succeeded with {kinds}")


async def _check_replicas(tally: Tally, name: str, story: Story, snapshot: Snapshot, client: httpx.AsyncClient, bases: list[str]) -> None:
    """G3: every replica gives the same snapshot, the viewer's events fold to it, and who has everything is told that there is no more."""
    bodies = [(await client.get(f"{base}/agent-runs/{story.run_id}")).json() for base in bases]
    tally.expect(all(body == bodies[0] for body in bodies), f"{name}: two replicas give two snapshots")
    assert story.follower is not None
    until = {member: bodies[0][member] for member in ("expires_at", "events_expire_at")}
    seen = begin({})
    for event in story.follower.events:
        step(seen, event, until)
    different = [member for member in seen if member in bodies[0] and seen[member] != bodies[0][member]]
    tally.expect(not different, f"{name}: what the viewer saw differs from the snapshot in {different}")
    for base in bases:
        headers = {"accept": "text/event-stream", "last-event-id": f"{story.run_id}:{snapshot.sequence}"}
        reply = await client.get(f"{base}/agent-runs/{story.run_id}/events", headers=headers)
        tally.expect(reply.status_code == 204, f"{name}: {base} answers {reply.status_code} to whoever has everything")
