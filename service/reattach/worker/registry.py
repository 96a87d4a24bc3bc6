"""Which agents a worker can run."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..core.run import AGENT_PATTERN

if TYPE_CHECKING:
    from .context import Run

Handler = Callable[["Run"], Awaitable[Any]] | Callable[["Run"], AsyncIterator[Any]]
"""``async def`` returning any JSON value, or an async generator of strings and ``(type, payload)`` pairs."""

H = TypeVar("H", bound=Callable[..., Any])


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One registered handler.

    Attributes:
        name: What runs name as their agent.
        handler: Called with the `Run`.
        attempts: Workers that may be lost on one run before it fails with ``worker_lost``.
        backoff: Seconds before the second retry, and up to a quarter more; doubles from then on. The first retry is at once.
        generator: Whether the handler is an async generator.
    """

    name: str
    handler: Handler
    attempts: int
    backoff: float
    generator: bool


class Agents:
    """A set of agents, filled by its decorator: ``@agents.agent("support")`` above ``async def support(run: Run) -> dict: …``."""

    def __init__(self) -> None:
        """Start empty."""
        self._agents: dict[str, Agent] = {}

    def agent(self, name: str, *, attempts: int = 3, backoff: float = 1.0) -> Callable[[H], H]:
        """Register the decorated handler.

        Args:
            name: Lower-case letters, digits, ``.`` ``_`` ``-``; at most 64 characters.
            attempts: Workers that may be lost on one run before it fails with ``worker_lost``; at least 1. An exception in the
                handler is an outcome, not a lost worker: it ends the run and is never retried.
            backoff: Seconds before the second retry, and up to a quarter more; doubles from then on.

        Raises:
            ValueError: The name is taken or outside its alphabet, or a number is out of range.
            TypeError: The handler is neither ``async def`` nor an async generator.
        """
        if re.fullmatch(AGENT_PATTERN[1:-1], name) is None:
            raise ValueError(f"agent name {name!r} does not match {AGENT_PATTERN}")
        if name in self._agents:
            raise ValueError(f"there is an agent {name!r} already")
        if attempts < 1 or backoff < 0:
            raise ValueError("attempts is at least 1, backoff at least 0")

        def register(handler: H) -> H:
            generator = _is(inspect.isasyncgenfunction, handler)
            if not generator and not _is(inspect.iscoroutinefunction, handler):
                raise TypeError(f"the handler of agent {name!r} must be an async function or an async generator")
            self._agents[name] = Agent(name=name, handler=handler, attempts=attempts, backoff=backoff, generator=generator)
            return handler

        return register

    def include(self, other: "Agents") -> None:
        """Add all agents of another set.

        Raises:
            ValueError: A name is in both.
        """
        for name in other:
            if name in self._agents:
                raise ValueError(f"there is an agent {name!r} already")
        self._agents.update(other._agents)

    def __getitem__(self, name: str) -> Agent:
        return self._agents[name]

    def __contains__(self, name: object) -> bool:
        return name in self._agents

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)


def _is(kind: Callable[[Any], bool], handler: Any) -> bool:
    # An object with an async __call__ is as good as a function; so is a partial, which inspect looks through by itself.
    return kind(handler) or kind(getattr(handler, "__call__", None))  # noqa: B004
