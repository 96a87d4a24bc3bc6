"""``reattach dev``: everything on this machine, in one command."""

import asyncio
import os
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from typing import Final

import click
import msgspec

from ..core.errors import InvalidRequest
from ..core.settings import Settings
from ..store import Store
from .children import Child, Keeper
from .console import paint, say, start_logs
from .embedded import Embedded
from .folder import DataFolder
from .handshake import spawn_and_hear
from .help import Command
from .options import environment, with_settings
from .serve import describe_store, running_api, say_api
from .signals import run, stop_signals
from .unserved import Watch
from .work import Ready, check_module

DEMO: Final = "reattach.demo.agents:agents"
_DEMO_INPUT: Final = '{"ticket": 981}'
_MARGIN: Final = 5.0


@click.command(cls=Command, short_help="Everything on this machine: store, API, worker, demo.")
@click.argument("agents", metavar="[MODULE:AGENTS]", default=DEMO)
@with_settings()
def dev(settings: Settings, agents: str) -> None:
    """Start everything: an embedded server, the API, a worker with your agents, or with the demo's.

        reattach dev                                  the demo: agents support and refund, input {"ticket": 981}
        reattach dev shop.agents:agents               your agents
        reattach dev --port 0 --data /tmp/try         any free port, data elsewhere
        reattach dev --redis redis://localhost:6379   with a Redis of your own

    Without --redis a private server keeps everything in --data, also when the machine fails: start it again with the same folder and go
    on. It listens on a socket in that folder, not on the network; the other commands find it there. Each process that crashes is started
    again. Ctrl-C (or SIGTERM) ends the streams, hands over the runs under way and saves; a second Ctrl-C does not wait.
    """
    start_logs(settings, quiet=True)
    check_module(agents)
    run(_dev(settings, agents))


async def _dev(settings: Settings, agents: str) -> None:
    stopping = asyncio.Event()
    with stop_signals(stopping.set):
        everything = asyncio.create_task(_everything(settings, agents), name="reattach-dev")
        waiter = asyncio.create_task(stopping.wait())
        await asyncio.wait({everything, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if not everything.done():
            say("stop", "streams end, runs are handed over, the store saves; again Ctrl-C does not wait")
            everything.cancel()
        await asyncio.wait({everything})
        if not everything.cancelled():
            everything.result()
    say("stopped", "" if settings.redis is not None else f"everything is kept in {DataFolder(settings.data).path}")


async def _everything(settings: Settings, agents: str) -> None:
    """Start all parts; when this is cancelled, or one of them fails for good, they end in the opposite order."""
    async with AsyncExitStack() as stack:
        where = None
        if settings.redis is None:
            settings = await _embedded(settings, stack)
            where = f"everything is kept in {settings.data}"
        store = await Store.open(settings)
        stack.push_async_callback(store.close)
        say("store", await describe_store(store, where))
        worker = WorkerProcess(settings, agents)
        stack.push_async_callback(worker.stop)
        # Before the API: what cannot work is refused before anybody is told where to send work.
        ready = await worker.start()
        api = await stack.enter_async_context(running_api(store, settings))
        say_api(api.url, settings)
        say("worker", f"process {worker.pid}, {agents} ({', '.join(ready.agents)})")
        say("page", paint(f"{api.url}/", bold=True))
        _say_try(api.url, settings, ready.agents[0], demo=agents == DEMO)
        watch = asyncio.create_task(Watch(store).run(), name="reattach-unserved")
        stack.push_async_callback(_ended, watch)
        await api.until(asyncio.Event())


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _embedded(settings: Settings, stack: AsyncExitStack) -> Settings:
    folder = DataFolder(settings.data)
    server = Embedded(folder, command="reattach dev", report=lambda text: say("store", text))
    await server.start()
    stack.push_async_callback(server.stop)
    return msgspec.structs.replace(settings, redis=server.url, data=str(folder.path))


class WorkerProcess:
    """The worker, in a process of its own: an agent that blocks cannot freeze the page."""

    def __init__(self, settings: Settings, agents: str) -> None:
        """Prepare; `start` starts it."""
        self._settings, self._agents = settings, agents
        self._ready = Ready()
        self._keeper = Keeper(self._start, lambda text: say("worker", text))

    @property
    def pid(self) -> int:
        """Its process id; another one after each restart."""
        return 0 if self._keeper.child is None else self._keeper.child.pid

    async def start(self) -> Ready:
        """Start it and wait until it takes work.

        Raises:
            click.UsageError: There are no such agents.
            InternalError: It ended before it was ready; it said itself why.
        """
        try:
            await self._keeper.start()
        except InvalidRequest as e:
            raise click.UsageError(e.detail) from None
        return self._ready

    async def stop(self) -> None:
        """Let it hand over what it works on."""
        await self._keeper.stop(self._settings.grace + _MARGIN)

    async def _start(self) -> Child:
        program = [sys.executable, "-P", "-m", "reattach", "work", self._agents]
        child, line = await spawn_and_hear("the worker", program, env=environment(self._settings), orphaned=signal.SIGKILL)
        self._ready = msgspec.json.decode(line, type=Ready)
        if self._ready.error is not None:
            await child.wait()
            raise InvalidRequest(self._ready.error, field="agents")
        return child


def _token(settings: Settings) -> str:
    """The header that the first command needs where callers have tokens."""
    if not settings.jwt_keys:
        return ""
    keys = "" if os.environ.get("REATTACH_JWT_KEYS") == settings.jwt_keys else f" --jwt-keys {shlex.quote(settings.jwt_keys)}"
    made = "$TOKEN" if "://" in settings.jwt_keys else f"$(reattach token me{keys})"
    return f' -H "Authorization: Bearer {made}"'


def _say_try(url: str, settings: Settings, agent: str, *, demo: bool) -> None:
    """Two commands that can be pasted as they are."""
    body = f'{{"agent": "{agent}", "input": {_DEMO_INPUT if demo else "{}"}}}'
    say("try", f"curl -s {url}/agent-runs{_token(settings)} -H 'content-type: application/json' -d '{body}'")
    if settings.redis is not None and not settings.redis.startswith("unix:"):
        where = "" if os.environ.get("REATTACH_REDIS") == settings.redis else " --redis URL"
    else:
        where = "" if settings.data == str(DataFolder("./.reattach").path) else f" --data {shlex.quote(settings.data)}"
    say("", f"reattach tail RUN{where}")
