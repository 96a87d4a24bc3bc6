"""What tests of the browser module share."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from reattach.core.settings import Settings

from .page import Page

Pages = Callable[..., Awaitable[Page]]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A lease that outlives every test: it is the page that is tested here, and a busy machine must not take a run away."""
    return msgspec.structs.replace(settings, lease=60.0)


@pytest.fixture
async def pages(task_guard: None) -> AsyncIterator[Pages]:
    """Opens pages."""
    async with AsyncExitStack() as stack:

        async def start(identity: str, base: str, *, kind: str = "run", **options: Any) -> Page:
            page = await Page.open(kind, identity, base, **options)
            stack.push_async_callback(page.close)
            return page

        yield start
        await asyncio.sleep(0)
