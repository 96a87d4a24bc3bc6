"""What will be asked for and what will break when, decided by a seed before anything starts."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKERS = ("worker 1", "worker 2", "worker 3")
APIS = ("API 1", "API 2")
QUIET = 0.3
"""The last part of the time in which no more runs are asked for, so that all of them see trouble."""
LONGEST_FREEZE = 4.0
"""Seconds; a frozen tool may go on with its effect afterwards."""

_TROUBLES = {
    "kill": 5,
    "freeze": 4,
    "drain": 2,
    "cut": 6,
    "outage": 3,
    "delay": 4,
    "drop replies": 6,
    "hold replies": 3,
}


@dataclass(frozen=True)
class Job:
    """One run that somebody asks for.

    Attributes:
        at: Seconds after the start.
        steps: The script.
        counters: What its effects count in → their policy.
        cancel_after: Seconds from its creation to a request to stop; None for none.
        seed: For the choices of whoever looks after it.
    """

    number: int
    at: float
    steps: list[list[Any]]
    counters: dict[str, str]
    cancel_after: float | None
    seed: int

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return f"job-{self.number}"


@dataclass(frozen=True)
class Trouble:
    """One thing that breaks, and for how long."""

    at: float
    kind: str
    target: str
    seconds: float
    amount: int = 1

    def __str__(self) -> str:
        return f"{self.at:6.2f} s  {self.kind} {self.target}" + (f" for {self.seconds:.2f} s" if self.seconds else "")


@dataclass(frozen=True)
class Plan:
    """One whole experiment."""

    seed: int
    seconds: float
    jobs: tuple[Job, ...]
    troubles: tuple[Trouble, ...]


def make_plan(seed: int, *, runs: int, seconds: float, folder: Path) -> Plan:
    """Decide everything.

    Args:
        seed: The same seed, sizes and folder: the same plan.
        runs: How many runs.
        seconds: How long things break.
        folder: Where effects count.
    """
    rng = random.Random(seed)
    jobs = tuple(_job(rng, number, seconds, folder) for number in range(runs))
    return Plan(seed=seed, seconds=seconds, jobs=jobs, troubles=tuple(_troubles(rng, seconds)))


def _job(rng: random.Random, number: int, seconds: float, folder: Path) -> Job:
    counters: dict[str, str] = {}
    parts = ["effect", "wait", *rng.choices(["effect", "say", "emit", "pause", "sleep", "wait"], k=rng.randint(1, 4))]
    rng.shuffle(parts)
    steps = [_step(rng, part, number, counters, folder) for part in parts]
    return Job(
        number=number,
        at=rng.uniform(0, seconds * (1 - QUIET)),
        steps=[*steps, ["finish", {"job": number}]],
        counters=counters,
        cancel_after=rng.uniform(0, 6) if rng.random() < 0.2 else None,
        seed=rng.randrange(1 << 30),
    )


def _step(rng: random.Random, part: str, number: int, counters: dict[str, str], folder: Path) -> list[Any]:
    match part:
        case "effect":
            path = str(folder / f"effect-{number}-{len(counters)}")
            counters[path] = policy = rng.choice(["probe", "probe", "retry", "fail"])
            options = {"on_unresolved": policy, "before": rng.choice([0, 0.2]), "after": rng.choice([0, 0.2, 0.5])}
            return ["effect", path, {**options, "thread": rng.random() < 0.2}]
        case "say":
            return ["say", "one two three four five six", rng.uniform(0.02, 0.3)]
        case "emit":
            return ["emit", "step.done", {"n": rng.randrange(100)}]
        case "pause":
            return ["pause", rng.uniform(0.1, 2)]
        case "sleep":
            return ["sleep", rng.uniform(0.1, 2)]
        case _:
            return ["wait", "go"]


def _troubles(rng: random.Random, seconds: float) -> list[Trouble]:
    found: list[Trouble] = []
    at = 1.0
    while at < seconds - 1:
        kind = rng.choices(list(_TROUBLES), list(_TROUBLES.values()))[0]
        target = rng.choice(WORKERS if kind == "drain" or rng.random() < 0.7 else APIS)
        longest = {"cut": 0.0, "drop replies": 0.0, "kill": 1.5, "drain": 0.5, "freeze": LONGEST_FREEZE, "hold replies": 3.0}.get(kind, 2.0)
        found.append(Trouble(at=at, kind=kind, target=target, seconds=rng.uniform(longest / 5, longest), amount=rng.randint(1, 4)))
        at += rng.uniform(0.2, 1.2)
    for part in range(max(1, round(seconds / 40))):
        middle = (part + rng.uniform(0.3, 0.8)) * seconds / max(1, round(seconds / 40))
        found.append(Trouble(at=middle, kind="restart", target="Redis", seconds=rng.uniform(0.1, 1.5)))
    return sorted(found, key=lambda trouble: trouble.at)
