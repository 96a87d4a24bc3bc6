"""A plain client for looking at a server and breaking things: never the product's own door."""

from typing import Any, TypeAlias

import redis

Admin: TypeAlias = Any
"""redis-py's synchronous client; its annotations are too loose for strict checking, so it is Any in the open."""

RedisError: type[Exception] = redis.RedisError


def connect(url: str, *, timeout: float = 10) -> Admin:
    """A client for a server; nothing connects before the first command. Close it."""
    cls: Any = redis.Redis
    return cls.from_url(url, socket_timeout=timeout)
