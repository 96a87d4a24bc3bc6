"""What a server really did: its MONITOR feed, with the commands a script issued under the call that ran it."""

import re
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_LINE = re.compile(rb"^\+[\d.]+ \[(\d+) (\S+)\] (.*)$")


@dataclass
class Call:
    """One command from a client.

    Attributes:
        words: The command, words as MONITOR quotes them.
        inner: What its script issued.
    """

    words: list[bytes]
    inner: list[list[bytes]] = field(default_factory=list[list[bytes]])

    @property
    def script(self) -> bytes | None:
        """The script's hash (or text), if it ran one."""
        return self.words[1] if self.words[0].upper() in (b"EVALSHA", b"EVAL") else None

    @property
    def declared(self) -> list[bytes]:
        """The keys it was given."""
        return self.words[3 : 3 + int(self.words[2])]


class Feed:
    """Everything the server ran while it was open."""

    def __init__(self, connection: socket.socket) -> None:
        self.calls: list[Call] = []
        self._connection = connection
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._seen = threading.Event()
        self._mark = b""
        self._thread.start()

    def _read(self) -> None:
        buffer = b""
        while chunk := self._receive():
            *lines, buffer = (buffer + chunk).split(b"\r\n")
            for line in lines:
                self._line(line)

    def _receive(self) -> bytes:
        try:
            return self._connection.recv(1 << 16)
        except OSError:
            return b""

    def _line(self, line: bytes) -> None:
        match = _LINE.match(line)
        if match is None:
            return
        words = _WORD.findall(match[3])
        if match[2] == b"lua":
            self.calls[-1].inner.append(words)
        else:
            self.calls.append(Call(words))
        if self._mark and self._mark in line:
            self._seen.set()

    def wait_for(self, mark: bytes) -> None:
        """Wait until a command with this word was seen; the caller sends it after asking for `expect`."""
        assert self._seen.wait(10), f"MONITOR did not show {mark!r}"

    def expect(self, mark: bytes) -> None:
        """Look out for a word."""
        self._seen.clear()
        self._mark = mark


@contextmanager
def monitored(port: int) -> Generator[Feed]:
    """Open the feed of the server on a port."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"MONITOR\r\n")
    assert connection.recv(5) == b"+OK\r\n"
    feed = Feed(connection)
    try:
        yield feed
    finally:
        connection.shutdown(socket.SHUT_RDWR)
        feed._thread.join(5)  # pyright: ignore[reportPrivateUsage]
        connection.close()
