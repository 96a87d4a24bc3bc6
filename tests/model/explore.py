"""Breadth first through every order in which things can happen, each state once."""

from collections import deque
from dataclasses import dataclass, field

from .actors import START, Cast, Moves, Step
from .rules import check_repeat, check_state, check_step, shape
from .world import Call, Facts, World


@dataclass
class Report:
    """What was seen.

    Attributes:
        states: Different states.
        steps: Steps that were tried.
        depth: Length of the longest path.
        closed: Whether nothing is left to try: the states are all there are.
        reached: State of the run → how many of the states have it.
    """

    states: int = 0
    steps: int = 0
    depth: int = 0
    closed: bool = False
    reached: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Node:
    """One state and how it was reached."""

    facts: Facts
    cast: Cast
    path: tuple[str, ...]


def explore(world: World, kinds: str, *, losses: int, depth: int | None = None) -> Report:
    """Try every step of every state until there are no new ones, or the paths are `depth` steps long.

    Raises:
        AssertionError: A rule is broken; the message has the shortest path there.
    """
    moves, report = Moves(world, kinds, losses), Report()
    _, facts = world.perform(None)
    first = Node(facts, START, ())
    seen, frontier = {shape(facts, START)}, deque([first])
    try:
        while frontier and (depth is None or len(frontier[0].path) < depth):
            node = frontier.popleft()
            for found in _expand(world, moves, node, report):
                mark = shape(found.facts, found.cast)
                if mark not in seen:
                    seen.add(mark)
                    frontier.append(found)
                    report.depth = max(report.depth, len(found.path))
                    report.reached[found.facts.state] = report.reached.get(found.facts.state, 0) + 1
    finally:
        world.perform(first.facts.dumps)
    report.states, report.closed = len(seen), not frontier
    return report


def _expand(world: World, moves: Moves, node: Node, report: Report) -> list[Node]:
    found: list[Node] = []
    writers: dict[str, str] = {}
    for step in moves(node.facts, node.cast, len(node.path) + 1):
        path = (*node.path, step.name)
        report.steps += 1
        try:
            reply, facts = _take(world, node.facts, step)
            check_step(node.facts, facts, step)
            check_state(facts)
        except AssertionError as e:
            raise AssertionError(f"{e}\n  after: " + ", ".join(path)) from e
        if step.by and len(facts.log) > len(node.facts.log):
            writers[step.by] = step.name
        assert len(writers) <= 1, f"two owners: {writers} after {', '.join(node.path)}"
        found.append(Node(facts, step.after(reply, facts), path))
    return found


def _take(world: World, before: Facts, step: Step) -> tuple[object, Facts]:
    if step.act is None:
        return None, before
    replies, facts = world.perform(before.dumps, step.act)
    if isinstance(step.act, Call) and facts.log != before.log:
        (answer,), twice = world.perform(None, step.act)
        check_repeat(step.act, facts, twice, answer)
    return replies[0], facts
