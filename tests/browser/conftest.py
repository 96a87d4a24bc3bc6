"""What tests in a real browser share."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import msgspec
import pytest

from reattach.core.settings import Settings

from .chromium import Chromium, Profile, binary

Profiles = Callable[..., Awaitable[Profile]]

CUT = re.compile(r"Failed to load resource|net::ERR_")
"""What the browser itself says of requests that were refused or broken on purpose."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A lease that outlives every test: it is the page that is tested here, and a busy machine must not take a run away."""
    return msgspec.structs.replace(settings, lease=60.0)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser of this test process."""
    if binary() is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    started = Chromium().start()
    yield started
    started.close()


@pytest.fixture
async def profiles(chromium: Chromium, request: pytest.FixtureRequest, task_guard: None) -> AsyncIterator[Profiles]:
    """Opens the browser of one more person, on the service at an address. All its tabs are checked at the end."""
    opened: list[Profile] = []
    provoked = request.node.get_closest_marker("provokes_network_errors") is not None

    async def open_profile(base_url: str, **options: object) -> Profile:
        opened.append(await chromium.profile(base_url, **options))
        return opened[-1]

    yield open_profile
    for profile in opened:
        await profile.close()
    for profile in opened:
        for tab in profile.tabs:
            tab.check(lambda text: provoked and CUT.search(text) is not None)


def pytest_configure(config: pytest.Config) -> None:
    """Markers this folder uses."""
    config.addinivalue_line("markers", "provokes_network_errors: the test refuses or breaks requests, which the browser mentions")
