"""Effects within one attempt: called once, receipt kept, failures and timeouts told as what they are."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from reattach import Agents, EffectFailed, EffectUnresolved, InvalidRequest, Nondeterminism, Receipt, Run
from reattach.store import Store

from ..support.waiting import wait_until
from .seen import ends, error, outcome, payloads, reaches, submit, texts, types, value

agents = Agents()
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")
CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    """Every test counts from zero."""
    CALLS.clear()


def note(ticket: int, idempotency_key: str) -> dict[str, Any]:
    """A sync tool that names its receipt."""
    CALLS.append((ticket, idempotency_key, WHO.get(), threading.current_thread() is threading.main_thread()))
    return {"receipt_id": 558, "result_version": f"ticket_{ticket}:v19", "more": [1, 2]}


async def plain(**arguments: Any) -> Any:
    """An async tool that returns its arguments."""
    CALLS.append(arguments)
    return arguments


def broken() -> None:
    """A tool that fails."""
    CALLS.append("broken")
    raise PermissionError("not yours")


def odd() -> Any:
    """A tool whose result has no JSON form."""
    CALLS.append("odd")
    return object()


async def slow() -> str:
    """A tool that takes too long."""
    CALLS.append("slow")
    await asyncio.sleep(20)
    return "late"


def shown(receipt: Receipt) -> dict[str, Any]:
    """A receipt as an outcome."""
    return {name: getattr(receipt, name) for name in receipt.__struct_fields__}


def double(x: int) -> int:
    """A plain function."""
    return x * 2


@agents.agent("note")
async def noting(run: Run) -> Any:
    """One effect in a thread."""
    WHO.set("handler")
    return shown(await run.effect("tickets.add_note", note, {"ticket": 981}))


@agents.agent("kinds")
async def kinds(run: Run) -> Any:
    """Functions of every kind."""

    class Tool:
        async def __call__(self, x: int) -> int:
            return x + 1

    made = [
        await run.effect("a.b", plain, {"x": 1}),
        await run.effect("a.b", double, {"x": 2}),
        await run.effect("a.b", lambda: plain(y=3)),
        await run.effect("a.b", Tool(), {"x": 4}),
        await run.effect("a.b", lambda: Receipt(receipt_id="mine", result_version="r:v2", result=(1, 2))),
        await run.effect("a.b", dict),
    ]
    return [[r.result, r.receipt_id if r.receipt_id == "mine" else r.receipt_id.startswith("receipt_")] for r in made]


@agents.agent("fails")
async def fails(run: Run) -> Any:
    """A failure that is caught, and asked for again."""
    seen: list[Any] = []
    for _ in range(2):
        try:
            await run.effect("a.broken", broken, call_id="one")
        except EffectFailed as e:
            seen.append([e.detail, e.extra["error"], type(e.__cause__).__name__])
    if run.input:
        await run.effect("a.broken", broken)
    return seen


@agents.agent("together")
async def together(run: Run) -> Any:
    """Many at once."""

    async def tool(n: int) -> int:
        CALLS.append(n)
        await asyncio.sleep(0.2)
        return n

    begun = time.monotonic()
    done = await asyncio.gather(*(run.effect("a.b", tool, {"n": n}) for n in range(8)))
    return [[r.result for r in done], time.monotonic() - begun < 1.2, len({r.tool_call_id for r in done})]


@agents.agent("twice")
async def twice(run: Run) -> Any:
    """One call id, asked for by two at the same time and once more afterwards."""
    first, second = await asyncio.gather(*(run.effect("a.b", plain, {"x": 1}, call_id="same") for _ in range(2)))
    third = await run.effect("a.b", plain, {"x": 2}, call_id="same")
    return [first.result, second.result, third.result, first.replayed, third.replayed]


@agents.agent("confused")
async def confused(run: Run) -> Any:
    """One call id for two tools."""
    if run.input == "at once":
        await asyncio.gather(
            run.effect("a.b", slow, call_id="same", timeout=0.3, on_unresolved="stop"), run.effect("a.c", plain, call_id="same")
        )
    await run.effect("a.b", plain, call_id="same")
    await run.effect("a.c", plain, call_id="same")


@agents.agent("odd")
async def strange(run: Run) -> Any:
    """A result that cannot be kept."""
    try:
        await run.effect("a.odd", odd, call_id="o")
    except InvalidRequest as e:
        again = await run.effect("a.odd", odd, call_id="o")
        return [e.code, again.result, again.receipt_id != "", again.replayed]


@agents.agent("slow")
async def too_slow(run: Run) -> Any:
    """A timeout, told as the input says."""
    try:
        await run.effect("a.slow", slow, timeout=0.1, **run.input)
    except (EffectFailed, EffectUnresolved) as e:
        if "catch" in run.metadata:
            return e.code
        raise


@agents.agent("wrong")
async def wrong(run: Run) -> Any:
    """Calls that are none."""
    refused: list[str] = []
    for name, options in (
        ("", {}),
        ("a b", {}),
        ("a.b", {"args": {"x": object()}}),
        ("a.b", {"args": [1]}),
        ("a.b", {"on_unresolved": "hope"}),
        ("a.b", {"call_id": "wait:x"}),
        ("a.b", {"call_id": "a b"}),
    ):
        try:
            await run.effect(name, plain, **options)  # pyright: ignore[reportArgumentType]
        except InvalidRequest as e:
            refused.append(e.code)
    return refused


@agents.agent("nested")
async def nested(run: Run) -> Any:
    """A tool that tells of its progress and uses another tool."""

    async def outer() -> Any:
        await run.emit("tool.progress", {"percent": 50})
        inner = await run.effect("a.inner", plain, {"x": 1}, call_id="inner")
        try:
            await run.wait_for("approval")
        except InvalidRequest as e:
            return [inner.result, e.code]

    return (await run.effect("a.outer", outer)).result


async def test_an_effect_keeps_a_receipt(store: Store, workers: Callable[..., Any]) -> None:
    """The function runs in a thread with the handler's context and a stable key; snapshot, events and handler see one receipt."""
    await workers(agents)
    run_id = await submit(store, "note")
    result = {"receipt_id": 558, "result_version": "ticket_981:v19", "more": [1, 2]}
    receipt = {
        "receipt_id": "558",
        "result_version": "ticket_981:v19",
        "result": result,
        "tool_call_id": "call_1",
        "tool": "tickets.add_note",
    }
    assert await outcome(store, run_id) == {**receipt, "replayed": False}
    assert [(981, f"{run_id}:call_1", "handler", False)] == CALLS
    assert await payloads(store, run_id, "tool.requested") == [
        {"tool_call_id": "call_1", "tool": "tickets.add_note", "arguments": {"ticket": 981}}
    ]
    assert await payloads(store, run_id, "tool.completed") == [receipt]
    snapshot = await store.runs.snapshot(run_id)
    assert [(t.status, t.receipt_id) for t in snapshot.tools] == [("completed", "558")]
    assert snapshot.resources == {"ticket_981": "v19"}


async def test_any_callable_is_a_tool(store: Store, workers: Callable[..., Any]) -> None:
    """Coroutine functions, plain ones, ones that return a coroutine, objects; a receipt can be returned as such."""
    await workers(agents)
    assert await outcome(store, await submit(store, "kinds")) == [
        [{"x": 1}, True],
        [4, True],
        [{"y": 3}, True],
        [5, True],
        [[1, 2], "mine"],
        [{}, True],
    ]


async def test_a_failed_tool_is_told_and_not_called_again(store: Store, workers: Callable[..., Any]) -> None:
    """`tool.failed` with the reason; the same call id answers with the same failure from the record."""
    await workers(agents)
    run_id = await submit(store, "fails", False)
    seen = await outcome(store, run_id)
    failure = {"code": "tool_error", "message": "PermissionError: not yours"}
    assert seen == [["a.broken failed: PermissionError: not yours", failure, cause] for cause in ("PermissionError", "NoneType")]
    assert CALLS == ["broken"]
    assert [p["error"] for p in await payloads(store, run_id, "tool.failed")] == [failure]
    assert [t.status for t in (await store.runs.snapshot(run_id)).tools] == ["failed"]


async def test_a_failure_that_is_not_caught_fails_the_run(store: Store, workers: Callable[..., Any]) -> None:
    """With a code of its own."""
    await workers(agents)
    assert (await error(store, await submit(store, "fails", True)))["code"] == "effect_failed"


async def test_tools_run_in_parallel(store: Store, workers: Callable[..., Any]) -> None:
    """Each with a receipt of its own."""
    await workers(agents)
    assert await outcome(store, await submit(store, "together")) == [list(range(8)), True, 8]


async def test_one_call_id_is_one_call(store: Store, workers: Callable[..., Any]) -> None:
    """Asked for twice at once, or again with other arguments: one call, one receipt."""
    await workers(agents)
    run_id = await submit(store, "twice")
    assert await outcome(store, run_id) == [{"x": 1}, {"x": 1}, {"x": 1}, False, True]
    assert CALLS == [{"x": 1}]
    assert (await types(store, run_id)).count("tool.requested") == 1


@pytest.mark.parametrize("when", ["in turn", "at once"])
async def test_one_call_id_is_one_tool(store: Store, workers: Callable[..., Any], when: str) -> None:
    """Another tool under the same id is refused, typed."""
    await workers(agents)
    assert (await error(store, await submit(store, "confused", when)))["code"] == "nondeterminism"


async def test_a_result_without_json_form_does_not_undo_the_effect(store: Store, workers: Callable[..., Any]) -> None:
    """The receipt is recorded without it, the handler is told, and the tool is not called again."""
    await workers(agents)
    assert await outcome(store, await submit(store, "odd")) == ["invalid_request", None, True, True]
    assert CALLS == ["odd"]


async def test_a_read_only_tool_that_times_out_failed(store: Store, workers: Callable[..., Any]) -> None:
    """Nothing can have happened."""
    await workers(agents)
    run_id = await submit(store, "slow", {"read_only": True}, metadata=b'{"catch":1}')
    assert await outcome(store, run_id) == "effect_failed"
    assert [p["error"]["code"] for p in await payloads(store, run_id, "tool.failed")] == ["timeout"]


async def test_a_mutating_tool_that_times_out_is_unresolved(store: Store, workers: Callable[..., Any]) -> None:
    """It may have happened: the run fails with that, and the snapshot lists it."""
    await workers(agents)
    run_id = await submit(store, "slow", {"on_unresolved": "fail"})
    assert (await error(store, run_id))["code"] == "effect_unresolved"
    assert [p["why"] for p in await payloads(store, run_id, "tool.unresolved")] == ["timeout"]
    snapshot = await store.runs.snapshot(run_id)
    assert [u.tool_call_id for u in snapshot.unresolved] == ["call_1"] and CALLS == ["slow"]


async def test_a_timeout_can_be_retried_once(store: Store, workers: Callable[..., Any]) -> None:
    """With the same key; a second timeout in the same attempt is not retried for ever."""
    await workers(agents)
    run_id = await submit(store, "slow", {"on_unresolved": "retry"}, metadata=b'{"catch":1}')
    assert await outcome(store, run_id) == "effect_unresolved"
    assert CALLS == ["slow", "slow"]
    assert [k for k in await types(store, run_id) if k.startswith("tool.")] == ["tool.requested", "tool.unresolved"] * 2


async def test_calls_that_are_none_are_refused(store: Store, workers: Callable[..., Any]) -> None:
    """Names, arguments, policies and ids outside what is allowed; nothing is called."""
    await workers(agents)
    assert await outcome(store, await submit(store, "wrong")) == ["invalid_request"] * 7
    assert CALLS == []


async def test_a_tool_may_emit_and_use_tools_but_not_wait(store: Store, workers: Callable[..., Any]) -> None:
    """A wait gives the lease up, which the tool's receipt needs."""
    await workers(agents)
    assert await outcome(store, await submit(store, "nested")) == [{"x": 1}, "invalid_request"]


@agents.agent("exits")
async def exits(run: Run) -> Any:
    """A tool that calls sys.exit, and one that raises StopIteration, in a thread."""
    seen: list[str] = []
    for raised in (SystemExit(3), StopIteration()):

        def tool(raised: BaseException = raised) -> None:
            raise raised

        try:
            await run.effect("a.exit", partial(tool))
        except EffectFailed as e:
            seen.append(e.extra["error"]["message"].partition(":")[0])
    return seen


async def test_a_tool_cannot_end_the_worker(store: Store, workers: Callable[..., Any]) -> None:
    """What it raises is its failure, whatever it is."""
    await workers(agents)
    assert await outcome(store, await submit(store, "exits")) == ["SystemExit", "RuntimeError"]


@agents.agent("forgotten")
async def forgotten(run: Run) -> Any:
    """Leaves a mutating effect running and returns."""

    async def tool() -> None:
        CALLS.append("begun")
        await asyncio.sleep(0.3)
        CALLS.append("done")

    async def asked() -> None:
        await run.effect("a.b", tool)

    task = asyncio.create_task(asked())
    await wait_until(lambda: CALLS, "the tool to begin")
    task.cancel()
    return "gone"


async def test_an_effect_nobody_waits_for_is_recorded_before_the_end(store: Store, workers: Callable[..., Any]) -> None:
    """The run ends after its receipt, not before."""
    await workers(agents)
    run_id = await submit(store, "forgotten")
    snapshot = await ends(store, run_id)
    assert CALLS == ["begun", "done"] and value(snapshot.outcome) == "gone" and texts(snapshot) == []
    assert (await types(store, run_id))[-2:] == ["tool.completed", "run.succeeded"]


@agents.agent("changed")
async def changed(run: Run) -> Any:
    """Asks for other arguments at the same place after the wait."""
    await run.effect("a.b", plain, {"resumed": (await run.history())[-1].type == "run.resumed"}, **run.input)
    await run.wait_for("go")
    return "went"


@pytest.mark.parametrize(("options", "state"), [({}, "failed"), ({"call_id": "chosen"}, "succeeded")])
async def test_a_place_means_the_same_call_every_time(store: Store, workers: Callable[..., Any], options: Any, state: str) -> None:
    """Other arguments at the same place are an error; under an id that the handler chose they are the same call."""
    await workers(agents)
    run_id = await submit(store, "changed", options)
    record = await reaches(store, run_id, "waiting")
    await store.runs.answer(run_id, wait_id=str(record.wait_id), value=b"1", by="x", key=None, fingerprint="")
    snapshot = await ends(store, run_id)
    assert snapshot.state == state and len(CALLS) == 1
    if state == "failed":
        assert value(snapshot.error)["code"] == Nondeterminism.code
