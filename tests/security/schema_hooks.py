"""What schemathesis may not choose: to be kept waiting. Loaded by it, see `test_schema`."""

from collections.abc import Callable
from typing import Any, Final, cast

import schemathesis

SHORT: Final = 0.05
hook: Callable[[Callable[..., Any]], Callable[..., Any]] = cast(Any, schemathesis).hook


def impatient(given: Any, default: float) -> Any:
    """A wait that is allowed is made short; one that is not stays as it is."""
    wait = given.get("wait", default)
    return {**given, "wait": SHORT} if isinstance(wait, int | float) and 0 < wait <= 60 else given


@hook
def map_query(context: Any, query: Any) -> Any:
    """``?wait=``."""
    return impatient(query, 0) if isinstance(query, dict) else query


@hook
def map_body(context: Any, body: Any) -> Any:
    """The same for a worker that asks for a run, which waits where it does not say how long."""
    is_claim = isinstance(body, dict) and "agents" in body
    return impatient(cast(Any, body), 25) if is_claim else cast(Any, body)


@hook
def map_headers(context: Any, headers: Any) -> Any:
    """Events as pages: a stream does not end."""
    given: dict[str, Any] = headers or {}
    return {**given, "Accept": "application/json"} if context.operation.path.endswith("/events") else headers
