"""Commands are requests of their own: creating, stopping and acting happen once, however often they are asked for."""

import asyncio
from typing import Any

from reattach import Agents, Run

from ..support.calls import cancel, check_problem, ended, new_run_id, post_run, snapshot
from ..support.factories import Replicas, Workers
from ..support.service import Service


async def test_08_same_creation_key_one_run(replicas: Replicas) -> None:
    """The same key and body give the same run with 200 and a mark, on any replica; another body is refused; no key is a new run."""
    api1, api2 = await replicas(), await replicas()
    first = await post_run(api1.client, "support", {"ticket": 981}, key="click-1")
    again = await post_run(api2.client, "support", {"ticket": 981}, key="click-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    assert first.json()["run_id"] == again.json()["run_id"]
    assert first.headers["location"] == again.headers["location"]
    check_problem(await post_run(api1.client, "support", {"ticket": 982}, key="click-1"), 422, "idempotency_key_reused")
    assert (await post_run(api1.client, "support", {"ticket": 981})).json()["run_id"] != first.json()["run_id"]
    listed = (await api1.client.get("/agent-runs", params={"agent": "support"})).json()
    assert len(listed["runs"]) == 2


async def test_09_stop_is_a_command(service: Service, workers: Workers) -> None:
    """Closing every stream stops nothing; the cancel request does, is on record before the worker is interrupted, and is answered truly."""
    agents, interrupted = Agents(), asyncio.Event()

    @agents.agent("long")
    async def long(run: Run) -> None:
        try:
            await run.sleep(25)
        except asyncio.CancelledError:
            interrupted.set()
            raise

    await workers(agents)
    run_id = await new_run_id(service.client, "long")
    followers = [await service.follow(run_id).open() for _ in range(3)]
    for follower in followers:
        await follower.until("run.started")
        await follower.cut()
    assert not interrupted.is_set() and (await snapshot(service.client, run_id))["state"] == "running"
    answer = await cancel(service.client, run_id, wait=5, reason="enough", key="stop-1")
    assert (answer.status_code, answer.json()["disposition"]) == (200, "cancelled_before_effect")
    assert interrupted.is_set()
    shown = await snapshot(service.client, run_id)
    cancelled = shown["cancel"]
    assert (shown["state"], cancelled["disposition"], cancelled["version"]) == ("cancelled", "cancelled_before_effect", 1)
    assert (cancelled["by"], cancelled["reason"]) == ("developer", "enough")
    await followers[0].open()
    assert await followers[0].until_end() == "clean"
    followers[0].check(1, 4)
    assert followers[0].types == ["run.created", "run.started", "run.cancel_requested", "run.cancelled"]
    late = await cancel(service.client, run_id)
    assert (late.status_code, late.json()["disposition"]) == (200, "already_terminal")


async def test_10_a_completed_effect_returns_its_receipt(service: Service, workers: Workers) -> None:
    """A worker died after its effect: the next attempt asks for the same effect and is given the receipt; the tool ran once."""
    calls, attempts, agents, paid = list[int](), list[int](), Agents(), asyncio.Event()

    def pay(amount: int) -> dict[str, Any]:
        calls.append(amount)
        return {"receipt_id": "receipt_558", "result_version": "invoice_7:v2"}

    @agents.agent("paying")
    async def paying(run: Run) -> Any:
        attempts.append(run.attempt)
        receipt = await run.effect("invoices.pay", pay, {"amount": 40})
        if run.attempt == 1:
            paid.set()
            await asyncio.Event().wait()
        return [receipt.receipt_id, receipt.result_version]

    doomed = await workers(agents, lease=1.0)
    run_id = await new_run_id(service.client, "paying")
    follower = await service.follow(run_id).open()
    await asyncio.wait_for(paid.wait(), 5)
    await doomed.crash()
    await workers(agents, lease=1.0)
    assert await follower.until_end() == "clean"
    shown = await ended(service.client, run_id)
    assert (shown["state"], shown["outcome"], shown["attempt"]) == ("succeeded", ["receipt_558", "invoice_7:v2"], 2)
    assert (calls, attempts) == ([40], [1, 2])
    assert [(tool["status"], tool["receipt_id"]) for tool in shown["tools"]] == [("completed", "receipt_558")]
    assert shown["resources"] == {"invoice_7": "v2"}
    follower.check(1, 7)
    assert follower.types[2:] == ["tool.requested", "tool.completed", "run.retrying", "run.started", "run.succeeded"]
