"""The one door to Redis: how commands travel.

Everything asked for in one turn of the loop leaves in one pipeline, from a task of its own. A caller that is cancelled abandons its future,
never a connection with a half-read reply (the next caller would get the answer).

Every command that comes through `Door.call` may be sent twice: reads, and scripts that recognise a repeat. That is why it is retried here,
once, for all.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from redis.exceptions import DataError, NoScriptError, ReadOnlyError, RedisError, ResponseError

from .keys import KeyNames
from .redis import Client, Target, close_client, is_passing, named, raw_replies, translate
from .scripts import Reply, Script

_TRIES: Final = 4
_MAX_BATCH: Final = 256
_LANES: Final = 2

T = TypeVar("T")


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """What all of them answer. Where one fails, the others are waited for first: none goes on behind its caller, or after `Door.close`."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


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
            await close_client(self._client)
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

    async def run(self, script: Script, keys: Mapping[str, KeyNames], *args: Any) -> Reply:
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
        # A lane that has ended leaves the set a turn later; counted as busy, it would leave what waits now without one.
        if self._waiting and sum(not lane.done() for lane in self._lanes) < _LANES:
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
                replies: list[Any] = await self._answers([command for command, _ in batch])
            except Exception as e:  # whatever it is, every caller of the batch must hear of it
                replies = [named(e)] * len(batch)
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    if isinstance(reply, BaseException):
                        future.set_exception(reply)
                    else:
                        future.set_result(reply)

    async def _answers(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        try:
            return await self._send(commands)
        except (UnicodeError, DataError) as e:
            if len(commands) == 1:
                return [e]
            # One of them cannot be written, which is found out before any is sent: the others, of other runs, are asked for alone.
            return [reply for command in commands for reply in await self._answers([command])]

    async def _send(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._client is None:
            self._client = raw_replies(self.target.client())
        if self.target.is_cluster:
            await self._client.initialize()
            replies = await asyncio.gather(*(self._client.execute_command(*c) for c in commands), return_exceptions=True)
            return [named(r) if isinstance(r, Exception) else r for r in replies]
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
        try:
            if self._client is None:
                self._client = raw_replies(self._target.client(blocking=True))
                if self._target.is_cluster:
                    await self._client.initialize()
                else:
                    # Held between reads too: a pool would mend a connection that is lost then without a word, and whoever reads must
                    # know that the server may be another one since.
                    self._client.connection = await self._client.connection_pool.get_connection()
            return await self._client.execute_command(*command)
        except (RedisError, OSError, AttributeError, RuntimeError) as e:
            await self.close()
            raise translate(named(e)) from e

    async def close(self) -> None:
        """Drop the connection, also in the middle of a read."""
        client, self._client = self._client, None
        if client is not None:
            await close_client(client)
