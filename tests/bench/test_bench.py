"""The benches themselves work: small ones run, and a stream that is not complete does not count."""

from collections.abc import Callable, Sequence

import pytest

from ..support.servers import RedisServer
from . import append, frames, memory, report
from .engine import drive, plan
from .modes import Outcome, measure
from .stage import Stage
from .target import Params, ask, marker
from .workloads import TARGETS, WORKLOADS, Bar

# gcc is on nearly every machine that has Python; without it these fail and say which package is wanted: CI never skips them silently.


def test_small_benches_give_tables(own_redis: Callable[..., RedisServer]) -> None:
    """Every part that needs no server, with next to no work."""
    server = own_redis()
    assert "per frame" in frames.run(repetitions=1)
    said = report.figures(append.measure(server, repetitions=1, events={1: 32, 8: 256}))
    assert "batches of 8" in said
    assert "raw XADD" in said
    assert "all events gone" in memory.run(server, runs=5, deltas=500)


@pytest.mark.parametrize("name", ["c-floor", "reattach"])
def test_a_small_load_is_complete(name: str) -> None:
    """The engine, the floor and the product: five viewers, ten events."""
    outcome = measure(TARGETS[name](Params(subs=5, rate=100, n=10)), "fanout", "small")
    assert outcome.flaw == ""
    assert outcome.figures["p99_ms"] > 0


@pytest.mark.parametrize(("sent", "counts"), [((1, 2, 3), True), ((1, 3), False), ((1, 2, 2, 3), False), ((1, 2), False)])
def test_only_complete_streams_count(sent: Sequence[int], counts: bool) -> None:
    """A hole, a repeat or a missing end is a failed measurement, not a fast one."""
    stage, floor = Stage(), TARGETS["c-floor"](Params(n=3))
    try:
        floor.start(stage)
        body = "\n".join(marker(n, 60) for n in sent).encode()
        assert ask(floor.port, [("POST", "/pub/s", body, {})])[0][0] < 300
        options = {"until": 3, "max_s": 1, "ready_on": 1, "size": 60, "close_when_done": 1}
        found = drive(stage, plan(floor, ["s"], 2, options, False), 1, {})
        assert (found.flaws() == "") is counts, found
    finally:
        stage.stop()


def test_bars_are_judged_by_whole_runs_only() -> None:
    """Medians decide, one incomplete run of ours misses the bar, and a base that is not there is no success."""
    bar = Bar("p99_ms", "floor", 2, 1)
    whole = [Outcome(target=t, workload="w", figures={"p99_ms": v}) for t, v in (("reattach", 3), ("floor", 2))]
    assert report.judge("w", bar, whole).said == "must"
    assert report.judge("w", bar, whole[:1]).said == "not measured"
    assert report.judge("w", bar, [*whole, Outcome(target="reattach", workload="w", flaw="1 missing")]).said.startswith("MISSED")
    assert report.picture(whole, "w", "p99_ms").count("<rect") == 3


def test_every_base_is_among_the_targets_of_its_workload() -> None:
    """A bar without its base would never be decided."""
    for workload in WORKLOADS:
        assert {bar.base for bar in workload.bars} - {None} <= set(workload.targets)
        assert set(workload.targets) <= TARGETS.keys()
