"""What a process may leave behind after a test: nothing."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from .admin import Admin
from .waiting import wait_until, wait_until_sync


def open_sockets() -> set[str]:
    """This process's open sockets and pipes, where the system can tell."""
    folder, found = Path("/proc/self/fd"), set[str]()
    if not folder.is_dir():
        return found
    for link in folder.iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(("socket:", "pipe:")):
            found.add(target)
    return found


def child_processes() -> set[int]:
    """Processes this one started that still exist."""
    found = set[int]()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found |= {int(pid) for pid in task.read_text().split()}
        except OSError:
            continue
    return found


OWN_CONNECTIONS = 4
"""What a process needs of Redis however much it does: two lanes for commands, one for hints, one for its leases."""


def client_count(admin: Admin) -> int:
    """Connections the server has (G6); 0 where it is not ours alone, since nothing can be said then."""
    return 0 if "REDIS_URL" in os.environ else len(admin.client_list())


class Baseline:
    """How things were before the test."""

    def __init__(self, admin: Admin | None) -> None:
        self._admin = admin
        self._clients = client_count(admin) if admin else 0
        self._threads, self._sockets, self._children = set(threading.enumerate()), open_sockets(), child_processes()

    def check(self) -> None:
        """Compare.

        Raises:
            AssertionError: Something is left over.
        """

        def leftovers() -> list[str]:
            found = [f"thread {t.name}" for t in set(threading.enumerate()) - self._threads if t.is_alive()]
            found += [f"process {pid}" for pid in child_processes() - self._children]
            if extra := open_sockets() - self._sockets:
                gc.collect()
                found += sorted(extra & open_sockets())
            if self._admin and (clients := client_count(self._admin)) > self._clients:
                found.append(f"{clients - self._clients} Redis connections")
            return found

        wait_until_sync(lambda: not leftovers(), f"no leftovers of the test, but there are {leftovers()}", timeout=5)


async def guard_tasks() -> AsyncIterator[None]:
    """Body of a fixture: no task of the product may live on when everything was closed."""
    before = asyncio.all_tasks()
    yield
    own = asyncio.current_task()

    def others() -> list[str]:
        return [str(t) for t in asyncio.all_tasks() - before if t is not own and not t.done()]

    await wait_until(lambda: not others(), f"no task to be left, but there are {others()}", timeout=3)
