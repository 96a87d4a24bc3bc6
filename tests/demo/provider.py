"""A model endpoint on a real socket that says what a test wants, in whatever portions the test wants."""

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

Ending = Literal["whole", "cut", "stall"]
Split = Callable[[bytes], Iterable[bytes]]


def at_once(raw: bytes) -> Iterator[bytes]:
    """Everything in one write."""
    yield raw


def by_byte(raw: bytes) -> Iterator[bytes]:
    """Every byte on its own: also the bytes of one character."""
    return (raw[i : i + 1] for i in range(len(raw)))


def at_random(seed: int, longest: int = 64) -> Split:
    """Portions of 1 to `longest` bytes, the same for the same seed."""

    def split(raw: bytes) -> Iterator[bytes]:
        chance, start = random.Random(seed), 0
        while start < len(raw):
            size = chance.randint(1, longest)
            yield raw[start : start + size]
            start += size

    return split


def sse(chunks: Iterable[str], *, newline: str = "\n", named: bool = False, noise: bool = False) -> bytes:
    """Data as an event stream, one event each.

    Args:
        newline: How lines end.
        named: Give every event the name of its type, as two of the protocols do.
        noise: Put comments and events without data in between.
    """
    lines: list[str] = [": hello", ""] if noise else []
    for number, chunk in enumerate(chunks):
        if noise and number % 3 == 0:
            lines += [": keep-alive", "", "event: nothing", ""]
        if named:
            lines.append(f"event: {json.loads(chunk).get('type')}")
        lines += [f"data: {chunk}", ""]
    return newline.join([*lines, ""]).encode()


@dataclass(frozen=True)
class Reply:
    """One answer.

    Attributes:
        body: Its body.
        split: Into what portions.
        ending: ``cut``: the connection breaks after the body, which is then not complete; ``stall``: it stays open, silent.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    split: Split = at_once
    ending: Ending = "whole"
    content_type: str = "text/event-stream"


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Provider:
    """Answers one request after the other with the replies it was given, the last of them for ever.

    Attributes:
        requests: Everything that was asked.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.requests = list(replies), list[Request]()
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = head[0].split(" ")
        self.requests.append(Request(method, path, headers, json.loads(body)))
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        said = {"Content-Type": reply.content_type, "Transfer-Encoding": "chunked", "Connection": "close", **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Said", *(f"{name}: {value}" for name, value in said.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for portion in reply.split(reply.body):
            writer.write(f"{len(portion):x}\r\n".encode() + portion + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if reply.ending == "stall":
            await reader.read()
        if reply.ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
