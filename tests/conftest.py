"""Fixtures for every folder: a real Redis, a store, a hub, API replicas, processes, a fault proxy, and checks after every test."""

import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reattach.core.settings import Settings

from .support.admin import Admin, connect
from .support.invariants import check_redis, clear
from .support.leaks import Baseline, guard_tasks
from .support.logs import LogCapture, captured
from .support.proxy import Proxy
from .support.secrecy import SECRECY
from .support.servers import RedisServer, any_redis, private_redis

if TYPE_CHECKING:
    from reattach.store import Store
    from reattach.tail import Hub

    from .support.launch import Launcher
    from .support.nginx import Nginx
    from .support.nursery import Nursery
    from .support.service import Service


SETTINGS = pytest.StashKey[Settings]()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server; each xdist worker has its own, unless ``REDIS_URL`` names one for all."""
    with any_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def admin(redis_url: str) -> Iterator[Admin]:
    """A plain client for looking at and breaking things."""
    client = connect(redis_url)
    client.ping()
    yield client
    client.close()


@pytest.fixture
def settings(redis_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """Short times, a prefix of the test's own."""
    request.node.stash[SETTINGS] = settings = Settings(
        redis=redis_url,
        prefix=f"t{secrets.token_hex(5)}",
        shards=4,
        port=0,
        lease=2.0,
        keepalive=1.0,
        grace=3.0,
        redis_timeout=2.0,
        data=str(tmp_path / "data"),
    )
    return settings


@pytest.fixture(scope="session", autouse=True)
def secrecy() -> Iterator[None]:
    """At the end, all logs of all tests are compared with all secrets of all tests."""
    yield
    SECRECY.check_all()


@pytest.fixture(autouse=True)
def logs(request: pytest.FixtureRequest) -> Iterator[LogCapture]:
    """What the product logs in this process: ``logs.at_least("warning")``. Errors that a test does not expect fail it (G8), secrets too."""
    with captured() as capture:
        yield capture
    SECRECY.check()
    if request.node.get_closest_marker("expects_errors") is None:
        assert capture.at_least("error") == [], "the product logged errors"


@pytest.fixture(autouse=True)
def invariants(request: pytest.FixtureRequest, logs: LogCapture) -> Iterator[None]:
    """After every test: nothing left over in this process, and in Redis what must hold for every run."""
    admin: Admin | None = request.getfixturevalue("admin") if "settings" in request.fixturenames else None
    baseline = Baseline(admin)
    yield
    settings = request.node.stash.get(SETTINGS, None)
    if admin is not None and settings is not None:
        try:
            if request.node.get_closest_marker("leaves_wreckage") is None:
                check_redis(admin, settings)
        finally:
            clear(admin, settings.prefix)
    baseline.check()


@pytest.fixture
async def task_guard(invariants: None) -> AsyncIterator[None]:
    """No task lives on after everything was closed. Every async test has it, set up before all its other async fixtures."""
    async for _ in guard_tasks():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every async test its guard."""
    for item in items:
        if isinstance(item, pytest.Function) and iscoroutinefunction(item.obj) and "task_guard" not in item.fixturenames:
            item.fixturenames.append("task_guard")


@pytest.fixture
async def store(settings: Settings, task_guard: None) -> AsyncIterator["Store"]:
    """An open store."""
    from reattach.store import Store

    opened = await Store.open(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def hub(store: "Store", settings: Settings) -> AsyncIterator["Hub"]:
    """A started hub on `store`."""
    from reattach.tail import Hub

    started = Hub(store, settings)
    await started.start()
    yield started
    await started.close()


@pytest.fixture
async def replicas(settings: Settings, task_guard: None) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """A function that starts API replicas in this process; keywords that are settings change them."""
    from .support.service import Service

    async with AsyncExitStack() as stack:

        async def start(given: Settings | None = None, *, authenticator: Any = None, authorizer: Any = None, **changes: Any) -> Service:
            changed = msgspec.structs.replace(given or settings, **changes)
            service = Service(changed, authenticator=authenticator, authorizer=authorizer)
            stack.push_async_callback(service.close)
            return await service.start()

        yield start


@pytest.fixture
async def service(replicas: Callable[..., Any]) -> "Service":
    """One API replica: ``service.client``, ``service.follow(run_id)``, ``service.base_url``."""
    return await replicas()


@pytest.fixture
async def workers(settings: Settings, task_guard: None) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """A function that starts workers in this process; keywords that are settings change them."""
    from .support.working import RunningWorker

    async with AsyncExitStack() as stack:

        async def start(agents: Any, given: Settings | None = None, *, name: str | None = None, **changes: Any) -> RunningWorker:
            worker = RunningWorker(msgspec.structs.replace(given or settings, **changes), agents, name)
            stack.push_async_callback(worker.close)
            return await worker.start()

        yield start


@pytest.fixture
async def proxies(task_guard: None) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """A function that starts fault proxies in front of a port, or of any URL with a host and a port."""
    async with AsyncExitStack() as stack:

        async def start(target: int | str, **options: Any) -> Proxy:
            port = target if isinstance(target, int) else int(target.rpartition(":")[2].partition("/")[0])
            proxy = Proxy(port, **options)
            stack.push_async_callback(proxy.close)
            return await proxy.start()

        yield start


@pytest.fixture
def launch(settings: Settings, tmp_path: Path) -> Iterator["Launcher"]:
    """Start the product's processes: ``launch.api()``, ``launch.worker()``."""
    from .support.launch import Launcher

    launcher = Launcher(settings, tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture
def nginx(invariants: None) -> Iterator[Callable[["Nginx"], "Nginx"]]:
    """Start nginx in front of something: ``nginx(as_shipped(port))``, ``nginx(with_defaults(port))``."""
    from .support.nginx import nginxes

    with nginxes() as start:
        yield start


@pytest.fixture(scope="session")
def nursery() -> Iterator["Nursery"]:
    """Processes of the product without the time it takes to start one."""
    from .support.nursery import Nursery

    started = Nursery()
    yield started
    started.close()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Start servers of the test's own, to be killed, flushed or restarted: ``own_redis(persist=True)``."""
    with ExitStack() as stack:
        count = 0

        def start(*, persist: bool = False, options: tuple[str, ...] = ()) -> RedisServer:
            nonlocal count
            count += 1
            return stack.enter_context(private_redis(tmp_path / f"own-redis-{count}", persist=persist, options=options))

        yield start


def pytest_configure(config: pytest.Config) -> None:
    """Markers this folder uses."""
    # A shell's background job ignores Ctrl-C and hands that down; the processes that are tested must not.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "leaves_wreckage(reason): the test breaks on purpose what is checked after every test")
    config.addinivalue_line("markers", "expects_errors(reason): the test makes the product log errors on purpose")
