"""A socket that speaks HTTP by hand, to see the bytes that clients hide."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Raw:
    """One connection and every byte that came back.

    Attributes:
        seen: All bytes so far.
        reset: Whether the connection ended with a reset rather than an end of data.
        ended: Whether it ended.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.seen, self.reset, self.ended = b"", False, False

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(data)

    def ask(self, method: str, path: str, *headers: str, version: str = "1.1", body: bytes = b"") -> None:
        """Send one request."""
        lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
        self.send("\r\n".join([*lines, "", ""]).encode() + body)

    def abort(self) -> None:
        """Leave with a reset, without reading what is there."""
        self._writer.transport.abort()

    def body(self) -> bytes:
        """The body seen so far, without its chunks' headers; what is left of a torn one at the end is kept."""
        head, _, rest = self.seen.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" not in head.lower():
            return rest
        found, at = list[bytes](), 0
        while (end := rest.find(b"\r\n", at)) >= 0:
            size = int(rest[at:end], 16)
            found.append(rest[end + 2 : end + 2 + size])
            at = end + 4 + size
        return b"".join(found)

    async def until(self, text: bytes, *, timeout: float = 5) -> bytes:
        """Read until `text` was seen or the connection ended; everything seen."""
        async with asyncio.timeout(timeout):
            while text not in self.seen and not self.ended:
                await self._more()
        assert text in self.seen, self.seen[-500:]
        return self.seen

    async def until_end(self, *, timeout: float = 5) -> bytes:
        """Read until the connection ended; everything seen."""
        async with asyncio.timeout(timeout):
            while not self.ended:
                await self._more()
        return self.seen

    async def _more(self) -> None:
        try:
            data = await self._reader.read(65536)
        except ConnectionResetError:
            self.reset, data = True, b""
        self.seen += data
        self.ended = not data


@asynccontextmanager
async def connection(base_url: str, *, limit: int = 2**16) -> AsyncGenerator[Raw]:
    """Connect to a server."""
    parts = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=limit)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
