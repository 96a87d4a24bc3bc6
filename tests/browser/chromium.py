"""One real browser for all tests of a process, on a thread and an event loop of its own: tests have a loop each, a browser has one.

What belongs to the browser is awaited there: ``await chromium.do(page.click("…"))``.
"""

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright, expect

from ..support.waiting import wait_until

T = TypeVar("T")

ARGUMENTS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none",
)  # fmt: skip
TIMEOUT: Final = 10.0


def binary() -> str | None:
    """The browser of this machine, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def descendants(pid: int, name: str) -> list[int]:
    """Processes below this one whose name contains a text; parents first."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                if name in Path(f"/proc/{child}/comm").read_text():
                    found.append(child)
                found += descendants(child, name)
    return found


class Chromium:
    """The browser."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def start(self) -> "Chromium":
        """Start it; it takes a second or two."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        return self

    async def _start(self) -> None:
        expect.set_options(timeout=TIMEOUT * 1000)
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=binary(), args=list(ARGUMENTS), ignore_default_args=["--disable-back-forward-cache"]
        )

    def close(self) -> None:
        """End it."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something of the browser's where it lives."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def profile(self, base_url: str, **options: Any) -> "Profile":
        """A browser as one person has it: tabs in it share storage and locks, and nothing with other profiles."""
        assert self._browser is not None
        context = await self.do(self._browser.new_context(base_url=base_url, locale="en", **options))
        return Profile(self, context, base_url)


class Profile:
    """One person's browser."""

    def __init__(self, chromium: Chromium, context: BrowserContext, base_url: str) -> None:
        self._chromium, self._base_url = chromium, base_url
        self.context = context
        self.tabs: list[Tab] = []

    async def prepare(self, script: str) -> None:
        """Run a script in every document from now on."""
        await self._chromium.do(self.context.add_init_script(script))

    async def tab(self, address: str = "/") -> "Tab":
        """Open another tab."""
        tab = Tab(self._chromium, await self._chromium.do(self.context.new_page()))
        self.tabs.append(tab)
        await tab.do(tab.watch(self._base_url))
        await tab.goto(address)
        return tab

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stop every process of the browser without its knowing, as a suspended laptop does. Nothing may be asked of it meanwhile."""
        processes = descendants(os.getpid(), "chrom")
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    async def cookie(self, cookie: Any) -> None:
        """Have a cookie; it has a name, a value and a url."""
        await self._chromium.do(self.context.add_cookies([cookie]))

    async def close(self) -> None:
        """Close all of it."""
        await self._chromium.do(self.context.close())


class Tab:
    """One page, watched: what it complains about and whom it asks is remembered.

    Attributes:
        page: Playwright's.
        complaints: Errors and warnings of the console, uncaught errors, violations of the policy.
        foreign: Addresses elsewhere that it asked for.
        asked: Every request: method and address.
    """

    def __init__(self, chromium: Chromium, page: Page) -> None:
        self._chromium, self.page = chromium, page
        self.complaints, self.foreign, self.asked = list[str](), list[str](), list[str]()

    async def watch(self, base_url: str) -> None:
        """Begin to watch it; on the browser's own loop, since it tells the browser so."""
        page = self.page
        page.set_default_timeout(TIMEOUT * 1000)
        page.on("console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._asks(request.method, request.url, base_url))

    def _asks(self, method: str, url: str, base_url: str) -> None:
        self.asked.append(f"{method} {url}")
        if not url.startswith((base_url, "data:", "blob:")):
            self.foreign.append(url)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something of the page's."""
        return await self._chromium.do(work)

    async def goto(self, address: str) -> None:
        """Go somewhere."""
        await self.do(self.page.goto(address))

    async def see(self, text: str, *, within: str = "body", exact: bool = False) -> None:
        """Wait until a text is in sight."""
        await self.do(expect(self.page.locator(within).get_by_text(text, exact=exact).first).to_be_visible())

    async def says(self, selector: str, text: str) -> None:
        """Wait until an element says exactly this."""
        await self.do(expect(self.page.locator(selector)).to_have_text(text))

    async def click(self, role: Any, name: str, *, exact: bool = True) -> None:
        """Press what has this role and name, as a person finds it."""
        await self.do(self.page.get_by_role(role, name=name, exact=exact).click())

    async def press(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            await self.do(self.page.keyboard.press(key))

    async def run(self, script: str, argument: Any = None) -> Any:
        """The value of an expression or function in the page."""
        return await self.do(self.page.evaluate(script, argument))

    async def until(self, script: str, argument: Any = None) -> Any:
        """Wait until an expression is true in the page."""
        # Not by the page's own means: its policy lets nobody make code out of a text.
        return await wait_until(lambda: self.run(script, argument), f"{script} in the page", timeout=TIMEOUT)

    async def closed(self) -> None:
        """Close it."""
        await self.do(self.page.close())

    def check(self, allowed: Callable[[str], bool] = lambda _: False) -> None:
        """What must hold for every page at its end.

        Args:
            allowed: A complaint that the test provoked.

        Raises:
            AssertionError: It complained, or asked for something elsewhere.
        """
        complaints = [text for text in self.complaints if not allowed(text)]
        assert not complaints, f"the page complained: {complaints}"
        assert not self.foreign, f"the page asked for {self.foreign}"
