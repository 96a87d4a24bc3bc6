"""The short form, with a fixed seed: what CI runs."""

from pathlib import Path

import pytest

from .experiment import within
from .plan import make_plan

SEED, RUNS, SECONDS = 981, 200, 60.0


@pytest.mark.timeout(180)
@pytest.mark.expects_errors("links break all the time")
async def test_everything_breaks_and_every_run_tells_one_true_story(tmp_path: Path) -> None:
    """Three workers, two APIs and Redis are killed, frozen, drained and cut while 200 runs with effects and waits go on."""
    tally, verdict = await within(make_plan(SEED, runs=RUNS, seconds=SECONDS, folder=tmp_path), tmp_path, print)
    print(verdict)
    assert not tally.findings, "\n".join([verdict, *tally.findings])


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    """The same seed makes the same plan, another one another."""
    plans = [make_plan(seed, runs=RUNS, seconds=SECONDS, folder=tmp_path) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert {trouble.kind for trouble in plans[0].troubles} >= {"kill", "freeze", "cut", "restart"}
