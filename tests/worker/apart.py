"""A worker with a thread and a loop of its own, so that what blocks its loop does not block the test."""

import asyncio
import threading

from reattach import Agents
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.worker import Worker


class ApartWorker:
    """Start it with ``with``; it drains at the end."""

    def __init__(self, settings: Settings, agents: Agents, *, name: str = "apart") -> None:
        self._settings, self._agents, self._name = settings, agents, name
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()), name=f"worker {name}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._started = threading.Event()

    async def _work(self) -> None:
        store = await Store.open(self._settings)
        self._worker = Worker(store, self._agents, self._settings, name=self._name)
        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._worker.run()
        await store.close()

    def __enter__(self) -> "ApartWorker":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None and self._worker is not None
        self._loop.call_soon_threadsafe(self._worker.stop)
        self._thread.join(30)
        assert not self._thread.is_alive()
