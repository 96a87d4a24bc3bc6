"""Redis itself: how clients are made, and what their failures become. Only ``store`` imports redis-py, only this file makes clients.

Two regimes that must never share a connection: *commands* have a short timeout; *blocking reads* wait for ever by design and get a client
without a socket timeout (redis-py's default of 5 s would kill them). ``store.door`` is the way in for both.
"""

from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import hiredis
import redis.asyncio as aioredis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    DataError,
    MasterDownError,
    MaxConnectionsError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ..core.errors import InvalidRequest, StoreUnavailable

Client = Any
"""redis-py's clients share `execute_command` but no useful base class."""

_PASSING: Final = (
    RedisConnectionError,  # includes a server that is loading
    RedisTimeoutError,
    OSError,
    ReadOnlyError,
    ClusterDownError,
    MasterDownError,
    TryAgainError,
    MovedError,
    AskError,
)
_PASSING_WORDS: Final = ("UNBLOCKED ", "BUSY ")
"""What redis-py has no class for: a blocked read on a primary that was demoted, a server held up by a script."""

_REFUSING: Final = (OutOfMemoryError, AuthenticationError, NoPermissionError, MaxConnectionsError)
_REFUSING_WORDS: Final = ("OOM", "MISCONF", "NOREPLICAS", "max number of clients")
"""What redis-py has no class for, and what reaches us through a script's error."""


class ServerRefused(StoreUnavailable):
    """The store does not accept the operation now."""


def _is_refusing(error: Exception) -> bool:
    return isinstance(error, _REFUSING) or any(word in str(error) for word in _REFUSING_WORDS)


def is_passing(error: Exception) -> bool:
    """Whether the same command may succeed a moment later: lost connections, failovers, a server that is loading."""
    passing = isinstance(error, _PASSING) or (isinstance(error, RedisError) and str(error).startswith(_PASSING_WORDS))
    return passing and not _is_refusing(error)


def named(error: Exception) -> Exception:
    """A lost connection under its own name.

    Writing to a transport that just closed is an AttributeError in Python 3.12 and 3.13, a RuntimeError in uvloop.
    """
    closed = isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    if closed or (isinstance(error, AttributeError) and error.name == "_add_writer"):
        return RedisConnectionError("the connection was lost while a command was written")
    return error


def translate(error: Exception) -> Exception:
    """Turn a failure of the client or the server into one of ours; a bug stays what it is."""
    if _is_refusing(error):
        return ServerRefused("the store refuses writes now (memory, disk or permissions)", retry_after=5.0)
    if is_passing(error):
        return StoreUnavailable("the store cannot be reached now", retry_after=1.0)
    return error


class Target:
    """A parsed Redis URL; makes clients of both regimes.

    Forms: ``redis://`` ``rediss://`` ``unix://`` (single server), ``redis+sentinel://[:password@]host:26379,host/NAME[/DB]``,
    ``redis+cluster://[user:password@]host:port,host:port``. A trailing ``s`` in the scheme (``rediss+cluster``) means TLS.
    """

    def __init__(self, url: str, *, timeout: float) -> None:
        """Parse a URL.

        Args:
            url: See above.
            timeout: Longest wait for one answer of the command regime, seconds.

        Raises:
            InvalidRequest: The URL has no known form. Its text is not repeated: it may hold a password.
        """
        self.timeout = timeout
        self._url = url
        try:
            parts = urlsplit(url)
        except ValueError:
            raise _unreadable() from None
        self.scheme = parts.scheme
        self.is_cluster = self.scheme in ("redis+cluster", "rediss+cluster")
        self.is_sentinel = self.scheme in ("redis+sentinel", "rediss+sentinel")
        if not (self.is_cluster or self.is_sentinel) and self.scheme not in ("redis", "rediss", "unix"):
            raise InvalidRequest(
                "the Redis URL must begin with redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://", field="redis"
            )
        if self.is_sentinel and not parts.path.strip("/"):
            raise InvalidRequest("a Sentinel URL names its master: redis+sentinel://host:26379/mymaster", field="redis")

    @property
    def safe_url(self) -> str:
        """The URL without its credentials, for people and logs."""
        parts = urlsplit(self._url)
        if "@" in parts.path + parts.query + parts.fragment:
            # A password with a slash, a question mark or a hash in it: what stands before that is taken for the host.
            return f"{parts.scheme}://…"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def client(self, *, blocking: bool = False) -> Client:
        """A new client. Replies arrive raw: no callback parses them, so that both regimes and all topologies answer alike.

        Raises:
            InvalidRequest: A part of the URL is not what it should be.
        """
        options: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": None if blocking else self.timeout,
            "socket_connect_timeout": min(self.timeout, 2.0),
            "socket_keepalive": True,
            "health_check_interval": 0,
        }
        try:
            if self.is_cluster:
                return self._cluster(options)
            client: Client = self._sentinel(options) if self.is_sentinel else self._single(options)
            # Nothing is sent yet; an option that no connection knows is found now.
            client.connection_pool.connection_class = _packing(client.connection_pool.connection_class)
            client.connection_pool.make_connection()
        except (ValueError, TypeError):
            raise _unreadable() from None
        return client

    def _single(self, options: dict[str, Any]) -> Client:
        if self.scheme == "unix":
            options.pop("socket_keepalive")
        client_class: Any = aioredis.Redis
        return client_class.from_url(self._url, retry=Retry(NoBackoff(), 0), **options)

    def _hosts(self) -> tuple[list[tuple[str, int]], dict[str, Any]]:
        parts = urlsplit(self._url)
        credentials, _, netloc = parts.netloc.rpartition("@")
        user, _, password = credentials.partition(":")
        default = 26379 if self.is_sentinel else 6379
        hosts = [(h.partition(":")[0], int(h.partition(":")[2] or default)) for h in netloc.split(",")]
        extra: dict[str, Any] = dict(parse_qsl(parts.query))
        if password:
            extra["password"] = unquote(password)
        if user:
            extra["username"] = unquote(user)
        if self.scheme.startswith("rediss"):
            extra["ssl"] = True
        return hosts, extra

    def _cluster(self, options: dict[str, Any]) -> Client:
        hosts, extra = self._hosts()
        options.pop("health_check_interval")
        nodes = [ClusterNode(host, port) for host, port in hosts]
        return RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), 3), **options, **extra)

    def _sentinel(self, options: dict[str, Any]) -> Client:
        hosts, extra = self._hosts()
        name, _, db = urlsplit(self._url).path.strip("/").partition("/")
        sentinel: Any = Sentinel(hosts, sentinel_kwargs={"socket_timeout": min(self.timeout, 2.0), "protocol": 2})
        return sentinel.master_for(name, db=int(db or 0), retry=Retry(NoBackoff(), 0), **options, **extra)


@cache
def _packing(connection: type[Any]) -> type[Any]:
    """The same kind of connection, with commands written by hiredis as well: redis-py lets it read replies only, where there is a loop."""
    # Its stub means any tuple and says a tuple of one.
    pack: Any = getattr(hiredis, "pack_command")  # noqa: B009

    def pack_command(_: Any, *args: Any) -> list[bytes]:
        # The client library joins the words of a command's name, which are sent apart.
        words = args[0].encode().split() if isinstance(args[0], str) else [args[0]]
        try:
            return [pack((*words, *args[1:]))]
        except TypeError as e:
            raise DataError(str(e)) from None

    return type(connection.__name__, (connection,), {"pack_command": pack_command})


def _unreadable() -> InvalidRequest:
    return InvalidRequest("the Redis URL cannot be used: a host, port, database or ?option=value in it is not a valid one", field="redis")


_RAW: Final = (
    "HGETALL", "HMGET", "SMEMBERS", "TIME", "INFO", "CONFIG GET", "XRANGE", "XREVRANGE", "XREAD", "XREADGROUP", "XPENDING", "ZADD", "ZREM",
    "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYSCORE", "ZSCORE", "XINFO STREAM", "XINFO CONSUMERS", "HSETNX", "HSET", "SET",
)  # fmt: skip


def raw_replies(client: Client) -> Client:
    """Let replies through as they come, so that all topologies and both regimes answer alike."""
    for name in _RAW:
        client.response_callbacks.pop(name, None)
    return client


async def close_client(client: Client) -> None:
    """Close a client with everything it opened."""
    await client.aclose()
    # A master's client asks Sentinels through clients of their own, which it does not close.
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for sentinel in getattr(manager, "sentinels", ()):
        await sentinel.aclose()
