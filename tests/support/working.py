"""Workers inside the test's own process."""

import asyncio

from reattach import Agents
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.worker.worker import Worker


class RunningWorker:
    """One worker with a store of its own.

    Attributes:
        worker: The worker.
    """

    def __init__(self, settings: Settings, agents: Agents, name: str | None) -> None:
        self._settings, self._agents, self._name = settings, agents, name
        self._task: asyncio.Task[None] | None = None
        self.store: Store
        self.worker: Worker

    async def start(self) -> "RunningWorker":
        """Open the store and work."""
        self.store = await Store.open(self._settings)
        self.worker = Worker(self.store, self._agents, self._settings, name=self._name)
        self._task = asyncio.create_task(self.worker.run(), name="worker under test")
        return self

    def stop(self) -> None:
        """Ask it to drain, as SIGTERM does."""
        self.worker.stop()

    async def crash(self) -> None:
        """Drop everything at once, as kill -9 would: no run is handed back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self.store.close()

    async def close(self) -> None:
        """Drain and close; a failure of the worker itself is the test's failure."""
        if self._task is not None:
            self.worker.stop()
            await asyncio.wait_for(self._task, self._settings.grace + 10)
            self._task = None
            await self.store.close()
