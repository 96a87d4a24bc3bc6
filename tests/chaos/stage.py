"""Where it happens: a Redis that keeps its append-only file, three workers and two APIs, each behind a link of its own that can break."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec

from reattach.core.settings import Settings

from ..support.admin import RedisError
from ..support.launch import Api, WorkerProcess
from ..support.processes import Child, free_port
from ..support.proxy import Proxy
from ..support.servers import RedisServer
from ..support.waiting import wait_until
from .plan import APIS, WORKERS, Trouble

Say = Callable[[str], None]


class Actor:
    """One process, its link to Redis, and at most one trouble at a time."""

    def __init__(self, child: Child, proxy: Proxy) -> None:
        self.child, self.proxy, self.lock = child, proxy, asyncio.Lock()
        self.lives = 0

    def start(self) -> None:
        """Start it without waiting: its link is served by this very loop."""
        self.lives += 1
        Child.start(self.child)


class Stage:
    """All of it.

    Attributes:
        settings: Of the deployment, with Redis reached directly.
        redis: The server.
        actors: By name.
    """

    def __init__(self, folder: Path, say: Say) -> None:
        self.folder, self._say = folder, say
        self.redis = RedisServer(folder / "redis", persist=True)
        self.settings = Settings(
            redis=self.redis.url,
            prefix="chaos",
            shards=4,
            lease=1.5,
            keepalive=1.0,
            grace=3.0,
            redis_timeout=1.5,
            concurrency=8,
            stream_lifetime=15.0,
            data=str(folder / "data"),
        )
        self.actors: dict[str, Actor] = {}
        self.began = 0.0
        self._kinds: dict[str, Callable[[Actor, Trouble], Awaitable[None]]] = {
            "kill": self._kill,
            "drain": self._drain,
            "freeze": self._freeze,
            "cut": self._cut,
            "outage": self._outage,
            "delay": self._delay,
            "drop replies": self._drop_replies,
            "hold replies": self._hold_replies,
        }

    @property
    def bases(self) -> list[str]:
        """The APIs' addresses."""
        return [child.base_url for name in APIS if isinstance(child := self.actors[name].child, Api)]

    async def open(self) -> None:
        """Start everything and wait until it serves."""
        await self.redis_up()
        for name in (*WORKERS, *APIS):
            proxy = await Proxy(self.redis.port).start()
            settings = msgspec.structs.replace(self.settings, redis=proxy.redis, port=free_port())
            child = WorkerProcess(settings, self.folder) if name in WORKERS else Api(settings, self.folder)
            self.actors[name] = Actor(child, proxy)
            self.actors[name].start()
        await self.ready()
        self.began = time.monotonic()

    async def ready(self) -> None:
        """Wait until both APIs say that they are ready."""
        async with httpx.AsyncClient(timeout=2, trust_env=False) as client:

            async def serves(actor: Actor, base: str) -> bool:
                child = actor.child
                if not child.alive:
                    # Started while its link to Redis was broken, it ends with a sentence and is started again, as whatever runs it does.
                    assert "[store_unavailable]" in child.output(), f"{child.name} ended:\n{child.output()[-4000:]}"
                    actor.start()
                with suppress(httpx.TransportError):
                    return (await client.get(f"{base}/readyz")).status_code == 200
                return False

            for name, base in zip(APIS, self.bases, strict=True):
                actor = self.actors[name]
                await wait_until(lambda actor=actor, base=base: serves(actor, base), f"{name} to be ready", timeout=30)

    async def redis_up(self) -> None:
        """Start the server and wait until it has read its file."""
        self.redis.child.start()

        def answers() -> bool:
            with self.redis.admin() as admin, suppress(RedisError):
                return bool(admin.ping())
            if not self.redis.child.alive:
                self.redis.child.start()
            return False

        await wait_until(lambda: asyncio.to_thread(answers), "Redis to answer", timeout=20)

    async def play(self, troubles: tuple[Trouble, ...]) -> None:
        """Let everything happen at its time, then make everything well again."""
        async with asyncio.TaskGroup() as group:
            for trouble in troubles:
                await asyncio.sleep(max(0.0, self.began + trouble.at - time.monotonic()))
                self._say(str(trouble))
                group.create_task(self._happen(trouble))
        for actor in self.actors.values():
            actor.proxy.drop_replies(0)
            if not actor.child.alive:
                actor.start()
        await self.ready()

    async def _happen(self, trouble: Trouble) -> None:
        if trouble.kind == "restart":
            self.redis.kill9()
            await asyncio.sleep(trouble.seconds)
            await self.redis_up()
            return
        actor = self.actors[trouble.target]
        async with actor.lock:
            await self._kinds[trouble.kind](actor, trouble)

    async def _kill(self, actor: Actor, trouble: Trouble) -> None:
        actor.child.kill9()
        await asyncio.sleep(trouble.seconds)
        actor.start()

    async def _drain(self, actor: Actor, trouble: Trouble) -> None:
        if actor.child.alive:
            actor.child.term()
            await wait_until(lambda: not actor.child.alive, f"{actor.child.name} to drain", timeout=15)
            actor.child.wait()
        await asyncio.sleep(trouble.seconds)
        actor.start()

    async def _freeze(self, actor: Actor, trouble: Trouble) -> None:
        if actor.child.alive:
            actor.child.freeze()
            await asyncio.sleep(trouble.seconds)
            actor.child.thaw()

    async def _cut(self, actor: Actor, trouble: Trouble) -> None:
        actor.proxy.cut()

    async def _outage(self, actor: Actor, trouble: Trouble) -> None:
        await actor.proxy.outage(trouble.seconds)

    async def _delay(self, actor: Actor, trouble: Trouble) -> None:
        actor.proxy.latency = 0.05 * trouble.amount
        await asyncio.sleep(trouble.seconds)
        actor.proxy.latency = 0.0

    async def _drop_replies(self, actor: Actor, trouble: Trouble) -> None:
        actor.proxy.drop_replies(trouble.amount)

    async def _hold_replies(self, actor: Actor, trouble: Trouble) -> None:
        actor.proxy.replies.clear()
        await asyncio.sleep(trouble.seconds)
        actor.proxy.replies.set()

    async def stop(self) -> list[str]:
        """Ask every process to stop, as a deploy does; what was wrong about how they ended, and what they logged in all their lives."""
        found: list[str] = []
        for actor in self.actors.values():
            actor.child.term()
        for name, actor in self.actors.items():
            with suppress(AssertionError):
                await wait_until(lambda actor=actor: not actor.child.alive, f"{name} to stop", timeout=self.settings.grace + 7)
            if actor.child.alive or actor.child.wait() != 0:
                found.append(f"{name} did not stop by itself with code 0")
            found += [f"{name} said: {line[:3000]}" for line in actor.child.output().splitlines() if _is_wrong(line)]
        return found

    async def close(self) -> None:
        """End whatever still runs."""
        for actor in self.actors.values():
            actor.child.close()
            await actor.proxy.close()
        self.redis.close()


def _is_wrong(line: str) -> bool:
    """G8: an error in the log, or a traceback outside it. What a handler raised is logged with its traceback, as a warning."""
    if not line.startswith("{"):
        return line.startswith(("Traceback", "Exception", "Task ", "sys:"))
    return json.loads(line)["level"] in ("error", "critical")
