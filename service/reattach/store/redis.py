"""The one door to Redis: how connections are made, how commands travel, what failures become.

Two regimes that must never share a connection:

- *commands* have a short timeout and travel in batches: everything asked for in one turn of the loop leaves in one pipeline, from a task of
  its own. A caller that is cancelled abandons its future, never a connection with a half-read reply (the next caller would get the answer).
- *blocking reads* wait for ever by design and get a client without a socket timeout (redis-py's default of 5 s would kill them).

Every command that comes through `Door.call` may be sent twice: reads, and scripts that recognise a repeat. That is why it is retried here,
once, for all.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import redis.asyncio as aioredis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MasterDownError,
    MaxConnectionsError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ..core.errors import InvalidRequest, StoreUnavailable
from .scripts import Reply, Script

Client = Any
"""redis-py's clients share `execute_command` but no useful base class."""

_TRIES: Final = 4
_MAX_BATCH: Final = 256
_LANES: Final = 2
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
_REFUSING: Final = (OutOfMemoryError, AuthenticationError, NoPermissionError, MaxConnectionsError)
_REFUSING_WORDS: Final = ("OOM", "MISCONF", "NOREPLICAS", "max number of clients")
"""What redis-py has no class for, and what reaches us through a script's error."""


class ServerRefused(StoreUnavailable):
    """The store does not accept the operation now."""


def _is_refusing(error: Exception) -> bool:
    return isinstance(error, _REFUSING) or any(word in str(error) for word in _REFUSING_WORDS)


def is_passing(error: Exception) -> bool:
    """Whether the same command may succeed a moment later: lost connections, failovers, a server that is loading."""
    return isinstance(error, _PASSING) and not _is_refusing(error)


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
        parts = urlsplit(url)
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
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def client(self, *, blocking: bool = False) -> Client:
        """A new client. Replies arrive raw: no callback parses them, so that both regimes and all topologies answer alike."""
        options: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": None if blocking else self.timeout,
            "socket_connect_timeout": min(self.timeout, 2.0),
            "socket_keepalive": True,
            "health_check_interval": 0,
        }
        if self.is_cluster:
            return self._cluster(options)
        if self.is_sentinel:
            return self._sentinel(options)
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
            extra["password"] = password
        if user:
            extra["username"] = user
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


_RAW: Final = (
    "HGETALL", "HMGET", "SMEMBERS", "TIME", "INFO", "CONFIG GET", "XRANGE", "XREVRANGE", "XREAD", "XREADGROUP", "XPENDING", "ZADD", "ZREM",
    "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYSCORE", "ZSCORE", "XINFO STREAM", "XINFO CONSUMERS", "HSETNX", "HSET",
)  # fmt: skip


def _raw(client: Client) -> Client:
    for name in _RAW:
        client.response_callbacks.pop(name, None)
    return client


async def _close(client: Client) -> None:
    await client.aclose()
    # A master's client asks Sentinels through clients of their own, which it does not close.
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for sentinel in getattr(manager, "sentinels", ()):
        await sentinel.aclose()


class Door:
    """All traffic of one process with one Redis, on one event loop."""

    def __init__(self, target: Target) -> None:
        """Prepare a door; nothing connects before the first call."""
        self.target = target
        self._client: Client = None
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._wanted = False
        self.observe: Callable[[int], None] | None = None

    async def close(self) -> None:
        """Let what is under way end, then close every connection."""
        while self._lanes:
            await asyncio.wait(self._lanes)
        if self._client is not None:
            await _close(self._client)
            self._client = None

    async def call(self, *command: Any) -> Any:
        """Run one command that may safely be sent twice; its raw reply.

        The command's first key must be its second word (as in ``XRANGE key …``), which holds for every command used here.

        Raises:
            StoreUnavailable: The server cannot be reached or refuses, also after a few tries over about a second.
        """
        for attempt in range(_TRIES):
            try:
                return await self._submit(command)
            except (RedisError, OSError) as e:
                if not is_passing(e) or attempt == _TRIES - 1:
                    raise translate(e) from e
                await asyncio.sleep(random.uniform(0.5, 1.0) * 0.05 * 4**attempt)
        raise AssertionError("unreachable")

    async def once(self, *command: Any) -> Any:
        """Run one command that must not be sent twice.

        Raises:
            StoreUnavailable: The server cannot be reached or refuses; whether it ran is then unknown.
        """
        try:
            return await self._submit(command)
        except (RedisError, OSError) as e:
            raise translate(e) from e

    async def run(self, script: Script, keys: Mapping[str, str | None], *args: Any) -> Reply:
        """Run one command of ``lua/``. A server that does not know it (restarted, flushed, failed over) is sent its text.

        Raises:
            StoreUnavailable: As in `call`.
        """
        bound = script.bind_keys(keys)
        try:
            raw = await self.call("EVALSHA", script.sha, len(bound), *bound, *args)
        except NoScriptError:
            raw = await self.call("EVAL", script.text, len(bound), *bound, *args)
        return script.decode(raw)

    def _submit(self, command: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((command, future))
        if not self._wanted:
            # One turn of the loop later, everything that was asked for meanwhile leaves together.
            self._wanted = True
            loop.call_soon(self._open_lane)
        return future

    def _open_lane(self) -> None:
        self._wanted = False
        if self._waiting and len(self._lanes) < _LANES:
            lane = asyncio.create_task(self._drain(), name="reattach-redis-lane")
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
            batch = [(command, future) for command, future in batch if not future.done()]
            if not batch:
                continue
            if self.observe is not None:
                self.observe(len(batch))
            try:
                replies: list[Any] = await self._send([command for command, _ in batch])
            except Exception as e:  # whatever it is, every caller of the batch must hear of it
                replies = [e] * len(batch)
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    if isinstance(reply, BaseException):
                        future.set_exception(reply)
                    else:
                        future.set_result(reply)

    async def _send(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._client is None:
            self._client = _raw(self.target.client())
        if self.target.is_cluster:
            await self._client.initialize()
            return await asyncio.gather(*(self._client.execute_command(*c) for c in commands), return_exceptions=True)
        try:
            if len(commands) == 1:
                return [await self._client.execute_command(*commands[0])]
            pipe = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            replies = await pipe.execute(raise_on_error=False)
        except ResponseError as e:
            replies = [e]
        if any(isinstance(r, ReadOnlyError) for r in replies):
            # The old primary was demoted: only new connections can find the new one.
            await self._client.connection_pool.disconnect(inuse_connections=False)
        return replies


class BlockingReader:
    """One connection for reads that wait. Not safe for two readers at once; after any error it is closed and must be made anew."""

    def __init__(self, target: Target) -> None:
        """Prepare a reader; nothing connects before the first read."""
        self._target = target
        self._client: Client = None

    async def read(self, *command: Any) -> Any:
        """Run one blocking command; its raw reply, None when it timed out on the server.

        Raises:
            StoreUnavailable: The connection is gone.
        """
        if self._client is None:
            self._client = _raw(self._target.client(blocking=True))
            if self._target.is_cluster:
                await self._client.initialize()
        try:
            return await self._client.execute_command(*command)
        except (RedisError, OSError) as e:
            await self.close()
            raise translate(e) from e

    async def close(self) -> None:
        """Drop the connection, also in the middle of a read."""
        client, self._client = self._client, None
        if client is not None:
            await _close(client)
