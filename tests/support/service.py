"""The API inside the test's own process: real uvicorn, real sockets; as many replicas as a test wants."""

import asyncio
from typing import Any

import httpx

from reattach.core.settings import Settings
from reattach.http.app import create_app
from reattach.http.auth import DevelopmentAuthenticator, DevelopmentAuthorizer
from reattach.http.server import serve
from reattach.store import Store
from reattach.tail import Hub

from .client import Follower, make_client
from .processes import free_port


class Service:
    """One replica.

    Attributes:
        base_url: Where it listens.
        client: An HTTP client of its own.
    """

    def __init__(self, settings: Settings, *, authenticator: Any = None, authorizer: Any = None) -> None:
        self.settings = settings
        self._authenticator = authenticator or DevelopmentAuthenticator()
        self._authorizer = authorizer or DevelopmentAuthorizer()
        self.store: Store
        self.hub: Hub
        self.client: httpx.AsyncClient
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> "Service":
        """Open the store and serve."""
        port = self.settings.port or free_port()
        self.store = await Store.open(self.settings)
        self.hub = Hub(self.store, self.settings)
        app = create_app(self.store, self.hub, self.settings, self._authenticator, self._authorizer)
        self.base_url = f"http://127.0.0.1:{port}"
        self.client = make_client(self.base_url)
        return self

    def follow(self, run_id: str, **options: Any) -> Follower:
        """A follower of one run on this replica; not yet connected."""
        return Follower(self.client, run_id, **options)

    async def close(self) -> None:
        """Drain and stop."""
