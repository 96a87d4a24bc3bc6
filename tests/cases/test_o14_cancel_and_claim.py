"""O14: a cancel that races the claim is never lost: whoever is first, the answer, the run and the world outside agree."""

import asyncio
import random
from pathlib import Path
from typing import Any

from ..support.agents import count
from ..support.calls import cancel, ended, new_script
from ..support.factories import Replicas
from ..support.launch import Launcher
from ..support.scale import rounds
from ..support.service import Service


async def test_a_run_cancelled_before_any_worker_is_never_worked_on(launch: Launcher, replicas: Replicas, tmp_path: Path) -> None:
    """A: cancelled at once, with one terminal event; a worker that starts later serves others and leaves it alone."""
    api = await replicas()
    counter, other = str(tmp_path / "counter"), str(tmp_path / "other")
    run_id = await new_script(api.client, ["effect", counter])
    answer = await cancel(api.client, run_id)
    assert (answer.status_code, answer.json()["disposition"]) == (200, "cancelled_before_effect")
    before = await ended(api.client, run_id)
    launch.worker()
    # Longer than two leases, in which the worker's sweep has looked at everything too.
    assert (await ended(api.client, await new_script(api.client, ["effect", other], ["sleep", 4.5])))["state"] == "succeeded"
    assert (count(counter), count(other)) == (0, 1)
    assert await ended(api.client, run_id) == before
    follower = await api.follow(run_id).open()
    await follower.until_end()
    assert follower.types == ["run.created", "run.cancel_requested", "run.cancelled"]


async def one(apis: list[Service], counter: Path, longer: float) -> str:
    """Create a run, cancel it a moment later, check everything that was said; how it ended."""
    run_id = await new_script(apis[0].client, ["effect", str(counter)], ["sleep", longer], ["finish", 1])
    await asyncio.sleep(random.uniform(0, 0.02))
    answer = await cancel(apis[1].client, run_id)
    assert answer.status_code in (200, 202), answer.text
    said: str = answer.json()["disposition"]
    shown = await ended(apis[1].client, run_id)
    done, state, stands = count(counter), shown["state"], shown["cancel"]
    told: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "cancelled_before_effect": (("cancelled",), (0,)),
        "cancelled_after_effect": (("cancelled",), (1,)),
        "cancellation_pending": (("cancelled", "succeeded"), (0, 1)),
        "already_terminal": (("succeeded",), (1,)),
    }
    states, counts = told[said]
    assert state in states and done in counts, (said, state, done)
    # What was accepted is on the run, whatever it became. A request can also have come in time and been overtaken by the end.
    assert stands["version"] == 1 or (said == "already_terminal" and stands["version"] == 0), (said, stands)
    if state == "cancelled":
        assert stands["disposition"] == ("cancelled_after_effect" if done else "cancelled_before_effect")
    elif stands["version"]:
        assert stands["disposition"] == "already_terminal"
    return f"{said} {state}"


async def test_cancels_in_the_moment_of_the_claim(launch: Launcher, replicas: Replicas, tmp_path: Path) -> None:
    """B: two workers take what comes while every run is cancelled within 20 ms: none is accepted and forgotten.

    96 runs by default, more than the case's 500 with REATTACH_TEST_LONG=6.
    """
    launch.worker()
    launch.worker()
    apis: list[Any] = [await replicas(), await replicas()]
    await ended(apis[0].client, await new_script(apis[0].client, ["finish", 1]))
    seen: set[str] = set()
    for turn in range(rounds(12)):
        seen |= set(await asyncio.gather(*(one(apis, tmp_path / f"counter-{turn}-{n}", n % 4 * 0.1) for n in range(8))))
    assert len(seen) > 1, f"the moments must differ: {seen}"
