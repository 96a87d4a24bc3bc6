"""How long streams wait for a store that is away."""

import asyncio
from collections.abc import Callable


class Patience:
    """Watches several ways in which the store can be away, and gives up when one of them lasts too long.

    Attributes:
        limit: How long that is, seconds.
        over: Whether it was reached, until the store is back.
    """

    __slots__ = ("_on_over", "_troubles", "limit", "over")

    def __init__(self, limit: float, on_over: Callable[[], None]) -> None:
        """Call `on_over` when patience ends."""
        self.limit, self.over = limit, False
        self._on_over = on_over
        self._troubles: dict[str, asyncio.TimerHandle] = {}

    def ill(self, what: str) -> None:
        """Something does not work; the clock runs from the first time."""
        if what not in self._troubles:
            self._troubles[what] = asyncio.get_running_loop().call_later(self.limit, self._give_up)

    def well(self, what: str) -> None:
        """It works."""
        handle = self._troubles.pop(what, None)
        if handle is not None:
            handle.cancel()
            self.over = self.over and bool(self._troubles)

    @property
    def troubled(self) -> bool:
        """Whether anything does not work now."""
        return bool(self._troubles)

    def close(self) -> None:
        """Stop every clock."""
        for handle in self._troubles.values():
            handle.cancel()
        self._troubles.clear()

    def _give_up(self) -> None:
        self.over = True
        self._on_over()
