"""Many viewers of one stream that only keep what they are sent and when; everything is checked afterwards.

Looking at events while they arrive would measure the looking. So a viewer stores chunks with the time of their arrival, and `Viewers.check`
reads all of it when the run is over. A measurement counts only if every viewer was sent 1 … n, once and in order.
"""

import asyncio
import re
from array import array
from collections.abc import Callable, Sequence

from ..support.waiting import wait_until
from .measure import now_ns

_FRAME = re.compile(rb"id: [^\n:]+:(\d+)\n.*?\n\n", re.DOTALL)
_END = b"\r\n0\r\n\r\n"


class _Viewer(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self.data = bytearray()
        self.times, self.ends = array("q"), array("q")
        self.ended, self.lost = False, False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Keep it, and when it came."""
        self.times.append(now_ns())
        self.data += data
        self.ends.append(len(self.data))
        # Only the last bytes can be the end of the body; they may come in two pieces.
        self.ended = self.data.endswith(_END)

    def connection_lost(self, exc: Exception | None) -> None:
        """Over."""
        self.lost = True


class Viewers:
    """Clients of one URL."""

    def __init__(self, port: int, path: str, count: int, *, after: int = 0) -> None:
        cursor = f"Last-Event-ID: {after}\r\n" if after else ""
        self._request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n{cursor}\r\n".encode()
        self._port, self._count, self._after = port, count, after
        self._viewers: list[_Viewer] = []

    async def connect(self, sequence: int = 0) -> None:
        """Connect all, and wait until each was answered and has an event, unless that is 0."""
        loop = asyncio.get_running_loop()
        for _ in range(self._count):
            _, viewer = await loop.create_connection(lambda: _Viewer(self._request), "127.0.0.1", self._port)
            self._viewers.append(viewer)
        wanted = b"\r\n\r\n" if sequence == 0 else b":%d\nevent: " % sequence
        await self._until(lambda v: wanted in v.data, "every viewer to be connected")

    async def finished(self) -> None:
        """Wait until every body is complete."""
        await self._until(lambda v: v.ended or v.lost, "every viewer to have everything", timeout=120)

    async def _until(self, met: Callable[[_Viewer], bool], description: str, timeout: float = 30) -> None:
        await wait_until(lambda: all(map(met, self._viewers)), description, timeout=timeout)

    def close(self) -> None:
        """Hang up."""
        for viewer in self._viewers:
            viewer.transport.abort()

    def last_arrival(self) -> int:
        """When the last byte came."""
        return max(v.times[-1] for v in self._viewers)

    def check(self, last: int, sent: Sequence[int] | None = None, first: int = 1) -> list[float]:
        """Read everything that came; the delays in seconds of the events from `first` on, where it is known when they were sent.

        Args:
            last: Sequence of the last event.
            sent: When each event from `first` on was sent.
            first: See `sent`.

        Raises:
            AssertionError: A viewer was not sent every event once and in order, or its body is not complete.
        """
        delays: list[float] = []
        for viewer in self._viewers:
            assert viewer.ended, "a viewer's body is not complete"
            expected, chunk = self._after + 1, 0
            for match in _FRAME.finditer(viewer.data):
                assert int(match[1]) == expected, f"event {int(match[1])} where {expected} was next"
                if sent is not None and expected >= first and expected - first < len(sent):
                    while viewer.ends[chunk] < match.end():
                        chunk += 1
                    delays.append((viewer.times[chunk] - sent[expected - first]) / 1e9)
                expected += 1
            assert expected == last + 1, f"a viewer was sent {expected - 1} of {last} events"
        return delays
