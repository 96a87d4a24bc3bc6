"""Clients that ask for a stream and then do not read it, as sleeping laptops and stopped programs do."""

import asyncio
import json
import re
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

_SMALL = 4096
_FRAME = re.compile(rb"id: [^\n:]+:(\d+)\nevent: [^\n]+\ndata: ([^\n]*)\n\n")


class Stalled:
    """One connection with a tiny receive buffer.

    Attributes:
        seen: What was read, once somebody read.
        ended: How the connection was found to have ended: ``clean`` for a complete body, ``cut`` for anything else.
    """

    def __init__(self, base_url: str, path: str, *headers: str) -> None:
        parts = urlsplit(base_url)
        self.seen, self.ended = bytearray(), ""
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
        self._socket.setblocking(False)
        self._address = (parts.hostname, parts.port)
        lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Accept: text/event-stream", *headers]
        self._request = "\r\n".join([*lines, "", ""]).encode()

    async def open(self) -> "Stalled":
        """Connect and ask."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, self._address)
        await loop.sock_sendall(self._socket, self._request)
        return self

    async def read(self, most: int = 1 << 30, *, timeout: float = 15) -> "Stalled":
        """Read until the connection ended, or `most` bytes were seen."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            while len(self.seen) < most:
                try:
                    data = await loop.sock_recv(self._socket, 1 << 16)
                except ConnectionError:
                    data = b""
                self.seen += data
                if self.seen.endswith(b"\r\n0\r\n\r\n"):
                    self.ended = "clean"
                elif not data:
                    self.ended = "cut"
                if self.ended:
                    break
        return self

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of all frames that arrived whole."""
        return [json.loads(data) for _, data in _FRAME.findall(self._body())]

    @property
    def sequences(self) -> list[int]:
        """Their sequences."""
        return [int(number) for number, _ in _FRAME.findall(self._body())]

    def _body(self) -> bytes:
        _, _, rest = bytes(self.seen).partition(b"\r\n\r\n")
        found, at = list[bytes](), 0
        while (end := rest.find(b"\r\n", at)) >= 0:
            with suppress(ValueError):
                size = int(rest[at:end], 16)
                found.append(rest[end + 2 : end + 2 + size])
                at = end + 4 + size
                continue
            break
        return b"".join(found)

    def close(self) -> None:
        """Leave."""
        self._socket.close()
