"""``reattach serve``: the API."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import click
from starlette.types import ASGIApp

from ..core.settings import Settings
from ..http.app import create_app
from ..http.auth.choose import build_auth
from ..http.server import bind, url_of
from ..http.server import serve as serve_app
from ..store import Store
from ..tail import Hub
from .console import paint, say, start_logs
from .fleet import MOST, Fleet
from .folder import find_store
from .handshake import tell
from .help import Command
from .options import with_settings
from .signals import run, stop_signals


@click.command(cls=Command, short_help="The API alone.")
@click.option(
    "--workers",
    type=click.IntRange(1, MOST),
    default=1,
    show_default=True,
    envvar="REATTACH_WORKERS",
    show_envvar=True,
    metavar="N",
    help="API processes on the one port, for as many cores.",
)
@click.option("--socket-fd", type=int, default=None, hidden=True, help="A socket that listens already.")
@click.option("--ready-fd", type=int, default=None, hidden=True, help="Where to tell that requests are accepted.")
@with_settings()
def serve(settings: Settings, workers: int, socket_fd: int | None, ready_fd: int | None) -> None:
    """Serve the API, without workers that run agents.

        reattach serve --redis redis://cache:6379/0 --port 8080
        reattach serve --workers 4           four processes on one port; each takes up to --max-streams streams
        reattach serve                       beside a running `reattach dev`: the same store, another process

    Start as many as you like on one Redis: a client may reconnect to any of them. Ctrl-C (or SIGTERM) tells every stream that it ends,
    within --grace seconds; its clients go on elsewhere.
    """
    start_logs(settings)
    settings = find_store(settings)
    if socket_fd is not None:
        run(_serve(settings, socket.socket(fileno=socket_fd), ready_fd))
    elif workers == 1:
        run(_serve(settings))
    else:
        run(_serve_many(settings, workers))


async def _serve(settings: Settings, sock: socket.socket | None = None, ready_fd: int | None = None) -> None:
    stopping = asyncio.Event()
    with stop_signals(stopping.set):
        store = await Store.open(settings)
        try:
            async with running_api(store, settings, sock) as api:
                if ready_fd is None:
                    say("store", await describe_store(store))
                    say_api(api.url, settings)
                else:
                    tell(ready_fd, b"ready")
                await api.until(stopping)
        finally:
            await store.close()


async def _serve_many(settings: Settings, size: int) -> None:
    stopping = asyncio.Event()
    with stop_signals(stopping.set), bind(settings) as sock:
        store = await Store.open(settings)
        try:
            words = await describe_store(store)
        finally:
            await store.close()
        fleet = Fleet(settings, sock, size)
        await fleet.start()
        try:
            say("store", words)
            say_api(url_of(sock), settings)
            say("", f"{size} processes: {', '.join(map(str, fleet.pids))}")
            await stopping.wait()
        finally:
            # Before the processes drain, or whoever connects meanwhile waits here for an answer that nobody gives.
            sock.close()
            await fleet.stop()


class Api:
    """A running API.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, url: str, task: "asyncio.Task[None]") -> None:
        """Take over a server that has started."""
        self.url, self._task = url, task

    async def until(self, stopping: asyncio.Event) -> None:
        """Wait until somebody wants it to stop, or it failed.

        Raises:
            Exception: It failed.
        """
        waiter = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({waiter, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if self._task.done():
            self._task.result()


@asynccontextmanager
async def running_api(store: Store, settings: Settings, sock: socket.socket | None = None) -> AsyncGenerator[Api, None]:
    """Serve for the length of a block, then drain.

    Args:
        store: Open.
        settings: Of the API.
        sock: Listening already; without it one is bound.

    Raises:
        InvalidRequest: The address is taken, or may not be served without authentication; or the keys for tokens cannot be read.
    """
    async with build_auth(settings, store) as (authenticator, authorizer):
        hub = Hub(store, settings)
        app = create_app(store, hub, settings, authenticator, authorizer)
        async with _running(app, hub, store, settings, sock) as api:
            yield api


@asynccontextmanager
async def _running(app: ASGIApp, hub: Hub, store: Store, settings: Settings, sock: socket.socket | None) -> AsyncGenerator[Api, None]:
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    await hub.start()
    # An ended run is tidied up and a wait's limit fires also while no worker is there.
    sweep = asyncio.create_task(store.sweep.run(), name="reattach-sweep")
    task = asyncio.create_task(serve_app(app, hub, settings, sock=sock, on_started=url.set_result, stopping=stop), name="reattach-api")
    try:
        await asyncio.wait({task, url}, return_when=asyncio.FIRST_COMPLETED)
        if not url.done():
            await task
        yield Api(url.result(), task)
    finally:
        stop.set()
        sweep.cancel()
        await asyncio.wait({task, sweep})
        await hub.close()


def say_api(url: str, settings: Settings) -> None:
    """Where an API is, and who may use it."""
    say("api", paint(url, bold=True))
    if settings.jwt_keys:
        say(
            "auth",
            f"tokens, checked with {settings.jwt_keys.partition('?')[0]}"
            + (f"; also in the cookie {settings.cookie}" if settings.cookie else ""),
        )
    else:
        say("auth", paint("none: every program on this machine is the developer and may do everything", "yellow"))


async def describe_store(store: Store, where: str | None = None) -> str:
    """One line about the server behind a store, with what is dangerous about it.

    Args:
        store: Open.
        where: Said in place of its URL.
    """
    facts = await store.facts()
    words = [f"{facts.name} {facts.version}, {where or store.target.safe_url}"]
    if not facts.safe:
        words.append(paint("NOT SAFE for runs, see: reattach doctor", "red"))
    return "; ".join(words)
