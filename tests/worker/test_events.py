"""Events a handler emits, and how they travel."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reattach import Agents, InvalidRequest, PayloadTooLarge, Run
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.proxy import Proxy
from .seen import ends, events, outcome, submit

agents = Agents()


@agents.agent("emitter")
async def emitter(run: Run) -> Any:
    """Emits what its input says."""
    for kind, payload in run.input["events"]:
        await run.emit(kind, payload)
    return run.last_sequence


@agents.agent("flood")
async def flood(run: Run) -> int:
    """Emits faster than any server takes it."""
    for n in range(run.input["count"]):
        await run.emit("step.done", {"n": n})
    return run.last_sequence


@agents.agent("scoped")
async def scoped(run: Run) -> None:
    """An event about something else than the run."""
    await run.emit("invoice.drafted", {}, resource_scope="dev/invoice_7")


@agents.agent("wrong")
async def wrong(run: Run) -> Any:
    """Everything that may not be emitted."""
    refused: list[str] = []
    for kind, payload in (
        ("run.succeeded", {}),
        ("input.received", {}),
        ("Upper.case", {}),
        ("single", {}),
        ("a.b", [1]),
        ("a.b", {"x": float("nan")}),
        ("a.b", {"x": object()}),
        ("a.b", {"x": "\ud800"}),
        ("a.b", {"x": "x" * 300_000}),
    ):
        try:
            await run.emit(kind, payload)  # pyright: ignore[reportArgumentType]
        except (InvalidRequest, PayloadTooLarge) as e:
            refused.append(e.code)
    return refused


@agents.agent("facts")
async def facts(run: Run) -> Any:
    """Says what it was given."""
    return {
        "run": [run.run_id, run.attempt, run.agent, run.tenant, run.initiator, run.session_id, run.resource_scope, run.release_id],
        "input": run.input,
        "metadata": run.metadata,
        "history": [(e.sequence, e.type) for e in await run.history()],
        "last": run.last_sequence,
    }


async def test_payloads_are_carried_exactly(store: Store, workers: Callable[..., Any]) -> None:
    """Big numbers, empty lists, order of members, every character."""
    await workers(agents)
    payload: dict[str, Any] = {"z": 9007199254740993, "a": [], "m": {}, "text": "é😀\u2028\x00", "deep": [[[1.5]]]}
    run_id = await submit(store, "emitter", {"events": [["invoice.drafted", payload]]})
    await ends(store, run_id)
    (event,) = [e for e in await events(store, run_id) if e.type == "invoice.drafted"]
    assert json.loads(event.payload) == payload and list(json.loads(event.payload)) == list(payload)


async def test_a_flood_arrives_whole_and_in_order(store: Store, workers: Callable[..., Any]) -> None:
    """More events than the queue holds: the handler waits, nothing is lost, dropped or joined."""
    await workers(agents)
    run_id = await submit(store, "flood", {"count": 5000})
    await ends(store, run_id, timeout=30)
    log = await events(store, run_id)
    assert [json.loads(e.payload)["n"] for e in log if e.type == "step.done"] == list(range(5000))
    assert [e.sequence for e in log] == list(range(1, 5004))


async def test_batches_grow_with_the_load(
    settings: Settings, store: Store, proxies: Callable[..., Any], workers: Callable[..., Any]
) -> None:
    """A slow link gets fewer, larger commands; the first event does not wait for company."""
    proxy: Proxy = await proxies(settings.redis, counting=True)
    await workers(agents, redis=proxy.redis)
    proxy.latency = 0.005
    run_id = await submit(store, "flood", {"count": 1000})
    await ends(store, run_id)
    sizes = [command.count(b"step.done") for command in proxy.commands if b"step.done" in command and b"EVALSHA" in command]
    assert sum(sizes) == 1000
    assert sizes[0] < 8, "the first batch waited for more"
    assert max(sizes) == 64 and len(sizes) < 100


async def test_an_event_can_have_a_scope_of_its_own(store: Store, workers: Callable[..., Any]) -> None:
    """It is stored with the event."""
    await workers(agents)
    run_id = await submit(store, "scoped")
    await ends(store, run_id)
    assert [e.scope for e in await events(store, run_id)] == [None, None, "dev/invoice_7", None]


async def test_what_may_not_be_emitted_is_refused_typed(store: Store, workers: Callable[..., Any]) -> None:
    """Reserved and malformed types, payloads without a JSON form, too large ones; none of them reaches the log."""
    await workers(agents)
    run_id = await submit(store, "wrong")
    assert await outcome(store, run_id) == ["invalid_request"] * 8 + ["payload_too_large"]
    assert len(await events(store, run_id)) == 3


async def test_a_run_knows_itself(store: Store, workers: Callable[..., Any]) -> None:
    """Identity, input, metadata and history are what was stored, exactly."""
    await workers(agents)
    given: dict[str, Any] = {"big": 2**70, "list": [], "half": 0.5}
    run_id = await submit(store, "facts", given, session_id="s1", metadata=b'{"k":[1]}', release_id="r1", resource_scope="dev/ticket_1")
    found = await outcome(store, run_id)
    assert found["run"] == [run_id, 1, "facts", "dev", "developer", "s1", "dev/ticket_1", "r1"]
    assert found["input"] == given and found["metadata"] == {"k": [1]}
    assert found["history"] == [[1, "run.created"], [2, "run.started"]] and found["last"] == 2


@pytest.mark.parametrize("payload", [b'{"events":[]}', b'{ "events" : [] }'])
async def test_an_empty_run_is_three_events(store: Store, workers: Callable[..., Any], payload: bytes) -> None:
    """Created, started, ended."""
    await workers(agents)
    run_id = await submit(store, "emitter", payload)
    assert await outcome(store, run_id) == 2


@pytest.mark.parametrize("scope", ["", "a b", "a/", "\ud800", "x" * 129])
async def test_a_scope_has_the_form_of_one(store: Store, workers: Callable[..., Any], scope: str) -> None:
    """Who may read an event is decided by its scope: one that no rule can name is refused where it is written."""
    own = Agents()

    @own.agent("scoped")
    async def scoped(run: Run) -> str:
        with pytest.raises(InvalidRequest, match="resource_scope"):
            await run.emit("step.done", {}, resource_scope=scope)
        await run.emit("step.done", {}, resource_scope="tenant_42/ticket_981")
        return "refused"

    await workers(own)
    assert await outcome(store, await submit(store, "scoped")) == "refused"
