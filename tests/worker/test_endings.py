"""How a handler's end becomes a run's end."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reattach import Agents, Run, RunFailed
from reattach.core.errors import RunNotFound
from reattach.store import Store
from reattach.worker.outcome import failed, succeeded

from ..support.logs import captured
from .seen import ends, error, outcome, submit, types, value

agents = Agents()


class Money(msgspec.Struct):
    """Something with a JSON form."""

    amount: int


OUTCOMES: dict[str, Any] = {"none": None, "text": "é", "big": 2**80, "empty": [], "tuple": (1, 2), "struct": Money(40)}
REFUSED: dict[str, Any] = {"object": object(), "nan": float("nan"), "surrogate": "\ud800", "large": "x" * 300_000}


def cancelled() -> BaseException:
    """What a handler lets through when something that it awaited was cancelled."""
    return asyncio.CancelledError()


ERRORS: dict[str, tuple[Callable[[], BaseException], str, str]] = {
    "plain": (lambda: ValueError("no such ticket"), "handler_error", "ValueError: no such ticket"),
    "silent": (lambda: KeyError(), "handler_error", "KeyError"),
    "endless": (lambda: ValueError("x" * 10_000), "handler_error", ("ValueError: " + "x" * 10_000)[:500]),
    "surrogate": (lambda: ValueError("\ud800"), "handler_error", "ValueError: ?"),
    "own": (lambda: RunFailed("no_stock", "Sold out."), "no_stock", "Sold out."),
    "bare": (lambda: RunFailed("no_stock"), "no_stock", "no_stock"),
    "ours": (lambda: RunNotFound(), "run_not_found", "There is no such run."),
    "exit": (lambda: SystemExit(3), "handler_error", "RuntimeError: the handler called sys.exit(3)"),
    "cancel": (cancelled, "handler_error", "CancelledError"),
    "group": (lambda: ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "handler_error", "ExceptionGroup: two (2 sub-exceptions)"),
}


@agents.agent("returns")
async def returns(run: Run) -> Any:
    """Returns something."""
    return (OUTCOMES | REFUSED)[run.input]


@agents.agent("raises")
async def raises(run: Run) -> Any:
    """Raises something."""
    raise ERRORS[run.input][0]()


@pytest.mark.parametrize("name", OUTCOMES)
async def test_the_outcome_is_what_was_returned(store: Store, workers: Callable[..., Any], name: str) -> None:
    """Any JSON value, exactly."""
    await workers(agents)
    expected = {"tuple": [1, 2], "struct": {"amount": 40}}.get(name, OUTCOMES[name])
    assert await outcome(store, await submit(store, "returns", name)) == expected


@pytest.mark.parametrize("name", REFUSED)
async def test_an_outcome_without_a_json_form_is_a_failure(store: Store, workers: Callable[..., Any], name: str) -> None:
    """Typed; the run does not hang and is not told as succeeded."""
    await workers(agents)
    assert (await error(store, await submit(store, "returns", name)))["code"] == "invalid_outcome"


@pytest.mark.parametrize("name", ERRORS)
async def test_an_exception_is_a_typed_failure(store: Store, workers: Callable[..., Any], name: str) -> None:
    """Code and message as documented, whatever was raised; the worker goes on."""
    await workers(agents)
    _, code, message = ERRORS[name]
    run_id = await submit(store, "raises", name)
    assert await error(store, run_id) == {"code": code, "message": message}
    assert await types(store, run_id) == ["run.created", "run.started", "run.failed"]
    assert await outcome(store, await submit(store, "returns", "text")) == "é"


async def test_the_traceback_is_in_the_log_only(store: Store, workers: Callable[..., Any]) -> None:
    """With run and attempt, so that a person finds it; not in the event."""
    with captured() as logged:
        await workers(agents)
        run_id = await submit(store, "raises", "plain")
        snapshot = await ends(store, run_id)
    assert "Traceback" not in str(value(snapshot.error))
    (entry,) = [e for e in logged.entries if e["event"] == "run.handler_failed"]
    assert (entry["run_id"], entry["attempt"], entry["agent"]) == (run_id, 1, "raises")
    assert isinstance(entry["exc_info"], ValueError) and entry["exc_info"].__traceback__ is not None


def test_a_code_is_for_programs() -> None:
    """It has an alphabet."""
    for code in ("", "Not Good", "x" * 65, "1a"):
        with pytest.raises(ValueError, match="code"):
            RunFailed(code)


def test_endings_are_text_of_limited_size() -> None:
    """The two functions alone."""
    assert succeeded({"a": 1}, 100).outcome == b'{"a":1}'
    assert succeeded("x" * 200, 100).state == "failed"
    assert failed(ValueError("x")).error == b'{"code":"handler_error","message":"ValueError: x"}'
    assert sys.getrecursionlimit() < 10_000
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert succeeded(deep, 100_000).state == "failed"
