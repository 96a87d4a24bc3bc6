"""O15: Stop works on any replica, any number of times, whatever the run is doing."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from reattach import Agents, Run
from reattach.core.ids import new_run_id as fresh_id
from reattach.core.settings import Settings

from ..support.admin import Admin
from ..support.calls import cancel, check_problem, ended, new_run_id, snapshot
from ..support.factories import Replicas, Workers
from ..support.invariants import all_keys
from ..support.service import Service
from ..support.waiting import wait_until

agents = Agents()


@agents.agent("long")
async def long(run: Run) -> str:
    """Idle for a long time."""
    await run.sleep(30, park=False)
    return "not stopped"


@agents.agent("awaiting")
async def awaiting(run: Run) -> Any:
    """Waits for a person."""
    return await run.wait_for("approval", prompt="May I?")


@agents.agent("short")
async def short(run: Run) -> str:
    """Ends at once, as its input says."""
    if "fail" in run.input:
        raise ValueError("as asked")
    return "fine"


@pytest.fixture
async def apis(replicas: Replicas, workers: Workers) -> list[Service]:
    """Two replicas and a worker."""
    await workers(agents)
    return [await replicas(), await replicas()]


async def started(api: Service, agent: str, state: str = "running") -> str:
    """A run in this state."""
    run_id = await new_run_id(api.client, agent)

    async def there() -> bool:
        return (await snapshot(api.client, run_id))["state"] == state

    await wait_until(there, f"{run_id} to be {state}")
    return run_id


async def test_stop_on_the_other_replica(apis: list[Service]) -> None:
    """A: created and followed through one API, stopped through the other: over within a second, with one terminal event."""
    run_id = await new_run_id(apis[0].client, "long")
    follower = await apis[0].follow(run_id).open()
    await follower.until("run.started")
    await follower.cut()
    await follower.open()
    answer = await cancel(apis[1].client, run_id, reason="enough")
    assert (answer.status_code, answer.json()["disposition"]) in ((202, "cancellation_pending"), (200, "cancelled_before_effect"))
    assert await follower.until_end(timeout=5) == "clean"
    follower.check()
    assert follower.types[-1] == "run.cancelled"
    assert follower.events[-1]["payload"]["disposition"] == "cancelled_before_effect"
    requested = next(e for e in follower.events if e["type"] == "run.cancel_requested")
    assert (requested["payload"]["cancel_version"], requested["payload"]["reason"]) == (1, "enough")
    # The contract's second, by the clock of the events: not by the test's, which counts a busy machine's delays too.
    asked, over = (datetime.fromisoformat(event["occurred_at"]) for event in (requested, follower.events[-1]))
    assert over - asked <= timedelta(seconds=1)


async def test_many_stops_at_once(apis: list[Service]) -> None:
    """B: 20 parallel cancels over both replicas: all succeed, the run is asked once and ends once."""
    run_id = await started(apis[0], "long")
    answers = await asyncio.gather(*(cancel(apis[n % 2].client, run_id) for n in range(20)))
    assert {answer.status_code for answer in answers} <= {200, 202}
    final = await cancel(apis[0].client, run_id, wait=5)
    assert (final.status_code, final.json()["disposition"]) in ((200, "cancelled_before_effect"), (200, "already_terminal"))
    shown = await ended(apis[1].client, run_id)
    assert (shown["state"], shown["cancel"]["version"]) == ("cancelled", 1)
    follower = await apis[1].follow(run_id).open()
    await follower.until_end()
    assert [t for t in follower.types if t.startswith("run.cancel")] == ["run.cancel_requested", "run.cancelled"]


@pytest.mark.parametrize(("agent", "run_input", "state"), [("short", {}, "succeeded"), ("short", {"fail": 1}, "failed")])
async def test_stop_after_the_end(apis: list[Service], agent: str, run_input: dict[str, Any], state: str) -> None:
    """C: the original outcome stands, said with a type, and the state does not change."""
    run_id = await new_run_id(apis[0].client, agent, run_input)
    before = await ended(apis[0].client, run_id)
    assert before["state"] == state
    for api in apis:
        answer = await cancel(api.client, run_id)
        assert (answer.status_code, answer.json()["disposition"]) == (200, "already_terminal")
    assert await snapshot(apis[1].client, run_id) == before


async def test_stop_again_after_it_was_stopped(apis: list[Service]) -> None:
    """C: the same request again gives the same answer; another one hears that the run is over."""
    run_id = await started(apis[0], "long")
    first = await cancel(apis[0].client, run_id, wait=5, key="stop")
    assert (first.status_code, first.json()["disposition"]) == (200, "cancelled_before_effect")
    again = await cancel(apis[1].client, run_id, wait=5, key="stop")
    assert (again.status_code, again.json()["disposition"]) == (200, "cancelled_before_effect")
    other = await cancel(apis[1].client, run_id)
    assert (other.status_code, other.json()["disposition"]) == (200, "already_terminal")


async def test_stop_of_nothing(apis: list[Service], admin: Admin, settings: Settings) -> None:
    """D: an unknown id is 404 and leaves nothing that could stop a later run."""
    await ended(apis[0].client, await new_run_id(apis[0].client, "short"))
    before = all_keys(admin, settings.prefix)
    for unknown in (fresh_id(1), "run_nonsense", "x"):
        check_problem(await cancel(apis[0].client, unknown, key="k"), 404, "run_not_found")
    assert set(all_keys(admin, settings.prefix)) - set(before) <= {key for key in all_keys(admin, settings.prefix) if b":snapshot" in key}
    shown = await ended(apis[0].client, await new_run_id(apis[0].client, "short"))
    assert (shown["state"], shown["cancel"]["version"]) == ("succeeded", 0)


async def test_stop_while_it_waits(apis: list[Service]) -> None:
    """E: a waiting run is cancelled at once, and an answer comes too late."""
    run_id = await started(apis[0], "awaiting", "waiting")
    wait_id = (await snapshot(apis[0].client, run_id))["waiting"]["wait_id"]
    answer = await cancel(apis[1].client, run_id)
    assert (answer.status_code, answer.json()["disposition"]) == (200, "cancelled_before_effect")
    assert (await snapshot(apis[0].client, run_id))["state"] == "cancelled"
    late = await apis[0].client.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": wait_id, "value": True})
    check_problem(late, 409, "wait_not_open")
