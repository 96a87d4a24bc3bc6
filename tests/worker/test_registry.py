"""Which agents there are."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from reattach import Agents, Run


async def plain(run: Run) -> None:
    """A coroutine function."""


async def stream(run: Run) -> AsyncIterator[str]:
    """An async generator."""
    yield "text"


def sync(run: Run) -> None:
    """No handler."""


class Callable:
    """An object that is called."""

    async def __call__(self, run: Run) -> None:
        """Like a function."""


async def configured(greeting: str, run: Run) -> None:
    """Needs something beyond the run."""


def test_the_decorator_registers_and_gives_the_handler_back() -> None:
    """A handler stays an ordinary function that a test can call."""
    agents = Agents()
    assert agents.agent("support", attempts=5, backoff=0.5)(plain) is plain
    assert "support" in agents and list(agents) == ["support"] and len(agents) == 1
    assert (agents["support"].attempts, agents["support"].backoff, agents["support"].generator) == (5, 0.5, False)


@pytest.mark.parametrize(
    ("handler", "generator"), [(plain, False), (stream, True), (Callable(), False), (partial(configured, "hi"), False)]
)
def test_everything_async_is_a_handler(handler: Any, generator: bool) -> None:
    """Functions, generators, objects with an async call, partials."""
    agents = Agents()
    agents.agent("a")(handler)
    assert agents["a"].generator is generator


@pytest.mark.parametrize("handler", [len, sync, "x", None])
def test_a_sync_handler_is_refused_where_it_is_written(handler: Any) -> None:
    """At import, not when the first run comes."""
    with pytest.raises(TypeError, match="async"):
        Agents().agent("a")(handler)


@pytest.mark.parametrize("name", ["", "Support", "a b", "a/b", "-a", "x" * 65, "a\n"])
def test_odd_names_are_refused(name: str) -> None:
    """A name becomes part of a key and of URLs."""
    with pytest.raises(ValueError, match="does not match"):
        Agents().agent(name)


def test_a_name_is_given_once() -> None:
    """Two handlers of one name would make it a matter of luck which one runs."""
    agents, others = Agents(), Agents()
    agents.agent("a")(plain)
    others.agent("a")(plain)
    others.agent("b")(plain)
    with pytest.raises(ValueError, match="already"):
        agents.agent("a")
    with pytest.raises(ValueError, match="already"):
        agents.include(others)
    third = Agents()
    third.agent("c")(plain)
    agents.include(third)
    assert list(agents) == ["a", "c"]


@pytest.mark.parametrize("options", [{"attempts": 0}, {"attempts": -1}, {"backoff": -0.1}])
def test_numbers_out_of_range_are_refused(options: Any) -> None:
    """A run needs one attempt."""
    with pytest.raises(ValueError, match="at least"):
        Agents().agent("a", **options)
