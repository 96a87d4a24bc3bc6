"""O18: a run that waits for a person is not dead: no lease, no worker, no process, and still there when the answer comes."""

import asyncio
from pathlib import Path

import msgspec

from reattach.core.settings import Settings

from ..support.agents import count
from ..support.calls import cancel, check_problem, ended, new_script, reaches, snapshot
from ..support.client import Follower, make_client
from ..support.launch import Api, Launcher, WorkerProcess
from ..support.scale import seconds


def restart(apis: list[Api], workers: list[WorkerProcess], settings: Settings) -> None:
    """A deploy: everything stops at the same time, and comes back."""
    for child in (*apis, *workers):
        child.term()
    for child in (*apis, *workers):
        assert child.wait(settings.grace + 5) == 0
    for child in (*workers, *apis):
        child.start()


async def test_ten_leases_and_a_deploy_later_the_answer_counts(launch: Launcher, settings: Settings, tmp_path: Path) -> None:
    """One run is answered, one cancelled, one comes to its documented limit while every process is down."""
    short = msgspec.structs.replace(settings, lease=0.7, keepalive=0.4)
    apis, workers = [launch.api(short), launch.api(short)], [launch.worker(short)]
    counters = [str(tmp_path / f"counter{n}") for n in range(3)]
    async with make_client(apis[0].base_url) as client:
        answered, cancelled, limited = [
            await new_script(client, ["emit", "step.done", {}], ["wait", "approval", limit], ["effect", counter])
            for counter, limit in zip(counters, (None, None, 3), strict=True)
        ]
        for run_id in (answered, cancelled, limited):
            await reaches(client, run_id, "waiting")
        follower = await Follower(client, answered).open(on=apis[1].base_url)

        await asyncio.sleep(seconds(2.0))
        assert follower.stream.ended is None and len(follower.stream.parser.comments) >= 3, "the stream is kept alive"
        await asyncio.to_thread(restart, apis, workers, short)
        assert await follower.until_end() == "cut"
        await follower.open(on=apis[0].base_url)
        await asyncio.sleep(seconds(3.5))
        for run_id in (answered, cancelled):
            shown = await snapshot(client, run_id)
            assert (shown["state"], shown["attempt"], shown["waiting"]["wait_id"]) == ("waiting", 1, "approval_1")

        await check_answered(answered, follower, counters[0])
        answer = await cancel(client, cancelled)
        assert (answer.status_code, answer.json()["disposition"], count(counters[1])) == (200, "cancelled_before_effect", 0)
        shown = await ended(client, limited)
        assert (shown["state"], shown["error"]["code"], count(counters[2])) == ("failed", "wait_expired", 0)


async def check_answered(run_id: str, follower: Follower, counter: str) -> None:
    """The answer is taken once, the run goes on once, and its viewer sees all of it."""
    http = follower.client
    for status in (202, 409):
        answer = await http.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": "approval_1", "value": True})
        assert answer.status_code == status, answer.text
    check_problem(answer, 409, "wait_not_open")
    shown = await ended(http, run_id)
    assert (shown["state"], shown["attempt"], shown["outcome"], count(counter)) == ("succeeded", 1, {"attempt": 1, "answers": [True]}, 1)
    assert await follower.until_end() == "clean"
    follower.check(1, shown["sequence"])
    assert [kind for kind in follower.types if kind.startswith(("run.", "input.", "step."))] == [
        "run.created", "run.started", "step.done", "run.waiting", "input.received", "run.resumed", "run.succeeded",
    ]  # fmt: skip
