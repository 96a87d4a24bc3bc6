"""The API inside the test's own process: real uvicorn, real sockets; as many replicas as a test wants."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx

from reattach.core.settings import Settings
from reattach.http.app import create_app
from reattach.http.auth.choose import build_auth
from reattach.http.server import serve
from reattach.store import Store
from reattach.tail import Hub

from .client import Follower, make_client


class Service:
    """One replica.

    Attributes:
        base_url: Where it listens.
        client: An HTTP client of its own.
        store: The replica's own store.
        hub: The replica's own hub.
    """

    base_url: str
    client: httpx.AsyncClient
    store: Store
    hub: Hub

    def __init__(self, settings: Settings, *, authenticator: Any = None, authorizer: Any = None) -> None:
        self.settings = settings
        self._authenticator, self._authorizer = authenticator, authorizer
        self._auth = AsyncExitStack()
        self._stopping = asyncio.Event()
        self._followers: list[Follower] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> "Service":
        """Open the store and serve."""
        self.store = await Store.open(self.settings)
        self.hub = Hub(self.store, self.settings)
        await self.hub.start()
        try:
            authenticator, authorizer = await self._auth.enter_async_context(build_auth(self.settings, self.store))
            app = create_app(self.store, self.hub, self.settings, self._authenticator or authenticator, self._authorizer or authorizer)
        except BaseException:
            await self.hub.close()
            await self.store.close()
            raise
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = serve(app, self.hub, self.settings, on_started=started.set_result, stopping=self._stopping)
        self._task = asyncio.create_task(serving, name="service under test")
        await asyncio.wait({started, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task
        self.base_url = await started
        self.client = make_client(self.base_url)
        return self

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.base_url.rpartition(":")[2])

    def follow(self, run_id: str, **options: Any) -> Follower:
        """A follower of one run on this replica; not yet connected, closed with the replica."""
        follower = Follower(self.client, run_id, **options)
        self._followers.append(follower)
        return follower

    async def stop(self) -> None:
        """Drain, as at SIGTERM; clients and followers stay."""
        if self._task is not None:
            self._stopping.set()
            await self._task
            self._task = None
            await self.hub.close()
            await self._auth.aclose()
            await self.store.close()

    async def close(self) -> None:
        """Drain, and close what looked at it."""
        await self.stop()
        for follower in self._followers:
            await follower.close()
        if "client" in vars(self):  # it did start
            await self.client.aclose()
