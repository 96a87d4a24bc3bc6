"""The server: uvicorn, drained our way.

Stock uvicorn waits for open streams when it is told to stop, and they never end. Here the hub is closed first: every follower wakes up,
every stream says why it ends and is cut, and what is left is over in a moment.
"""

import asyncio
import contextlib
import math
import signal
import socket
from collections.abc import Callable, Generator

import structlog
import uvicorn
from starlette.types import ASGIApp

from ..core.errors import InvalidRequest
from ..core.settings import Settings
from ..tail import Hub
from .wire import WireProtocol

_log = structlog.get_logger("reattach.server")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_KEEP_ALIVE = 75
"""Longer than clients (httpx 5 s) and proxies (nginx 60 s) keep idle connections, so that no request meets one just being closed."""


class Server(uvicorn.Server):
    """uvicorn's server that tells the hub to close before it waits for connections, and ends with 0 after a signal."""

    def __init__(self, config: uvicorn.Config, hub: Hub, *, on_started: Callable[[], None], own_signals: bool) -> None:
        super().__init__(config)
        self._hub, self._on_started, self._own_signals = hub, on_started, own_signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream, then accept nothing more and wait for what is under way."""
        _log.info("server.stopping", connections=len(self.server_state.connections))
        await self._hub.close("drain")
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at SIGINT and SIGTERM, unless the caller does that; a second SIGINT does not wait for anybody."""
        if not self._own_signals:
            yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True


def bind(settings: Settings) -> socket.socket:
    """The listening socket, bound before anything else starts.

    Raises:
        InvalidRequest: The address is taken or does not exist.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        sock = socket.create_server((str(address[0]), settings.port), family=family, backlog=2048)
    except OSError as e:
        why = (e.strerror or str(e)).partition(" (while")[0]
        raise InvalidRequest(
            f"cannot listen on {settings.host} port {settings.port}: {why}; choose another with --host or --port", field="port"
        ) from None
    # Inherited by what is accepted. asyncio sets it only on sockets that name their protocol, and then an answer's body, which leaves after
    # its head, would wait 40 ms for a client's delayed acknowledgement (RFC 1122, 4.2.3.4).
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def url_of(sock: socket.socket) -> str:
    """Where a listening socket is reached."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    app: ASGIApp,
    hub: Hub,
    settings: Settings,
    *,
    sock: socket.socket | None = None,
    on_started: Callable[[str], None] | None = None,
    stopping: asyncio.Event | None = None,
) -> None:
    """Serve until stopped, then drain within `settings.grace` seconds. Cancelling the call drains as well.

    Args:
        app: See `create_app`.
        hub: Closed when the server stops.
        settings: `host`, `port` and `grace` are taken from it.
        sock: Listens already, in place of `host` and `port`.
        on_started: Called with the URL as soon as requests are accepted; the port in it is the real one.
        stopping: Set it to stop. Without it, SIGINT and SIGTERM of this process stop the server.

    Raises:
        InvalidRequest: The address is taken or does not exist.
    """
    sock = sock or bind(settings)
    config = uvicorn.Config(
        app,
        http=WireProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, math.ceil(settings.grace)),
    )
    url = url_of(sock)

    def started() -> None:
        _log.info("server.started", url=url)
        if on_started is not None:
            on_started(url)

    server = Server(config, hub, on_started=started, own_signals=stopping is None)
    task = asyncio.create_task(server.serve(sockets=[sock]), name="reattach-server")
    try:
        await _until_stopped(server, task, stopping)
    finally:
        server.should_exit = True
        await asyncio.shield(task)
        sock.close()


async def _until_stopped(server: Server, task: asyncio.Task[None], stopping: asyncio.Event | None) -> None:
    if stopping is None:
        await asyncio.shield(task)
        return
    waiter = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({waiter, task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
    server.should_exit = True
