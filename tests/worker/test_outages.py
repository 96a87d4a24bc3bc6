"""Lost replies, cut connections, restarts of Redis: the run's story stays one, and is told once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reattach import Agents, Run
from reattach.core.errors import StoreUnavailable
from reattach.core.settings import Settings
from reattach.store import Claim, Delivery, Store
from reattach.store.work import Work

from ..support.agents import agents as scripted
from ..support.agents import count
from ..support.proxy import Proxy
from ..support.servers import RedisServer
from .seen import events, outcome, reaches, says, submit, submit_script, types

STEPS: list[list[Any]] = [["text", "one two"], ["emit", "step.done", {"n": 1}], ["wait", "go"], ["emit", "step.done", {"n": 2}]]


async def check(store: Store, run_id: str, counter: str) -> None:
    """One story: every event once, the effect once, the end right."""
    log = await events(store, run_id)
    assert [e.sequence for e in log] == list(range(1, len(log) + 1))
    assert [json.loads(e.payload)["n"] for e in log if e.type == "step.done"] == [1, 2]
    kinds = [e.type for e in log]
    assert kinds.count("message.completed") == 1 and kinds.count("tool.completed") == 1 and kinds[-1] == "run.succeeded"
    assert count(counter) == 1


@pytest.mark.parametrize("forward", [True, False], ids=["reply lost", "command lost"])
async def test_the_link_breaks_at_every_command(
    settings: Settings, store: Store, proxies: Callable[..., Any], workers: Callable[..., Any], tmp_path: Path, forward: bool
) -> None:
    """At the n-th command about the run, for every n: the worker repeats it, and nothing is doubled or lost."""
    proxy: Proxy = await proxies(settings.redis, counting=True)
    await workers(scripted, redis=proxy.redis, lease=5.0)
    nth = 0
    while True:
        nth += 1
        counter = str(tmp_path / f"counter-{nth}")
        trap = proxy.set_trap(nth, forward=forward, match=b":run:run_")
        run_id = await submit_script(store, *STEPS[:1], ["effect", counter], *STEPS[1:])
        record = await reaches(store, run_id, "waiting")
        await store.runs.answer(run_id, wait_id=str(record.wait_id), value=b"1", by="x", key=None, fingerprint="")
        assert await outcome(store, run_id) == {"attempt": 1, "answers": [1]}
        await check(store, run_id, counter)
        if not trap.sprung:
            break
    assert nth > 15, "the trap was never set off late in a run"


async def test_redis_restarts_in_the_middle(
    settings: Settings, own_redis: Callable[..., RedisServer], workers: Callable[..., Any], tmp_path: Path
) -> None:
    """Killed hard and started on its file: handlers wait, their leases last, the run ends in its first attempt."""
    server = own_redis(persist=True)
    own = msgspec.structs.replace(settings, redis=server.url, lease=20.0)
    store = await Store.open(own)
    try:
        await workers(scripted, own)
        counter = str(tmp_path / "counter")
        steps: list[list[Any]] = [["emit", "tick.done", {"n": n}] for n in range(200)]
        run_id = await submit_script(
            store, *STEPS[:1], ["effect", counter], *steps[:100], ["sleep", 0.5], *steps[100:], ["finish", "whole"]
        )
        await says(store, run_id, "tick.done", 100)
        server.kill9()
        server.start()
        assert await outcome(store, run_id) == "whole"
        log = await events(store, run_id)
        assert [json.loads(e.payload)["n"] for e in log if e.type == "tick.done"] == list(range(200))
        assert count(counter) == 1 and "run.retrying" not in await types(store, run_id)
        assert await outcome(store, await submit_script(store, ["finish", "next"])) == "next"
    finally:
        await store.close()


async def test_an_outage_longer_than_the_lease(
    settings: Settings, store: Store, proxies: Callable[..., Any], workers: Callable[..., Any], tmp_path: Path
) -> None:
    """The handler is stopped; when Redis is back, the same worker goes on in a second attempt."""
    proxy: Proxy = await proxies(settings.redis)
    await workers(scripted, redis=proxy.redis, lease=0.6, redis_timeout=0.3)
    counter = str(tmp_path / "counter")
    run_id = await submit_script(store, ["effect", counter], ["emit", "step.done", {}], ["sleep", 2.0])
    await says(store, run_id, "step.done")
    await proxy.outage(1.5)
    assert await outcome(store, run_id, timeout=20) == {"attempt": 2, "answers": []}
    assert count(counter) == 1


async def test_a_claim_whose_answer_is_lost_for_long_costs_no_attempt(
    store: Store, workers: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is ours and nobody knows: it is asked for again under the same fence, not left until its lease runs out."""
    claim, lost = Work.claim, 2

    async def unheard(self: Work, delivery: Delivery, **about: Any) -> Claim | None:
        nonlocal lost
        claimed = await claim(self, delivery, **about)
        if lost > 0:
            lost -= 1
            raise StoreUnavailable("the answer was lost")
        return claimed

    monkeypatch.setattr(Work, "claim", unheard)
    await workers(scripted)
    run_id = await submit_script(store, ["emit", "step.done", {}])
    await outcome(store, run_id)
    assert lost == 0 and await types(store, run_id) == ["run.created", "run.started", "step.done", "run.succeeded"]


async def test_an_intention_that_the_store_forgot_does_not_hide_the_effect(store: Store, workers: Callable[..., Any]) -> None:
    """A failover lost the last write while the tool ran: what happened is in the log, with a receipt that the next pass finds."""
    own, calls = Agents(), 0

    @own.agent("noting")
    async def noting(run: Run) -> str:
        async def tool() -> str:
            nonlocal calls
            calls += 1
            await store.door.call("HDEL", store.keys.effects(run.run_id), "call_1")
            return "noted"

        receipt = await run.effect("a.b", tool)
        return receipt.receipt_id

    await workers(own)
    run_id = await submit(store, "noting")
    assert (await outcome(store, run_id)).startswith("receipt_")
    assert calls == 1 and (await store.runs.load(run_id)).receipts == 1
