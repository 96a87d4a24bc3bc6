"""A TCP proxy in user space that misbehaves on command, for client-API and process-Redis links alike."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from .resp import CommandSplitter, command_words

Filter = Callable[[bytes], bytes]


@dataclass
class Trap:
    """A cut that waits for a Redis command.

    Attributes:
        countdown: Fires at this many matching commands from now; 1 is the next one.
        forward: Whether the command reaches Redis before its reply is dropped, or is dropped itself.
        match: Bytes the command must contain, e.g. ``XADD`` or a script's hash; of several, one of them.
        sprung: Set when it fired.
    """

    countdown: int
    forward: bool
    match: tuple[bytes, ...] = (b"",)
    sprung: bool = False


class Link:
    """One client's connection through the proxy."""

    def __init__(self, proxy: "Proxy", client: asyncio.StreamWriter, upstream: asyncio.StreamWriter) -> None:
        self.proxy, self.client, self.upstream = proxy, client, upstream
        self.dropping = False
        self.splitter = CommandSplitter()
        self.filter: Filter | None = proxy.filter() if proxy.filter else None

    async def up(self, reader: asyncio.StreamReader) -> None:
        """Client to server."""
        while chunk := await reader.read(65536):
            await self.proxy.gate.wait()
            if not self.proxy.counting:
                self.upstream.write(chunk)
            elif not self._forward_commands(chunk):
                return self.reset()
            await self.upstream.drain()

    def _forward_commands(self, chunk: bytes) -> bool:
        for command in self.splitter.feed(chunk):
            self.proxy.commands.append(command)
            trap = self.proxy.spring(command)
            if trap is not None and not trap.forward:
                return False
            self.dropping = self.dropping or trap is not None
            self.upstream.write(command)
        return True

    async def down(self, reader: asyncio.StreamReader) -> None:
        """Server to client."""
        while chunk := await self._read(reader):
            if self.proxy.latency:
                await asyncio.sleep(self.proxy.latency)
            await self.proxy.gate.wait()
            await self.proxy.replies.wait()
            if self.dropping or self.proxy.take_drop():
                return self.reset()
            if self.filter is not None:
                chunk = self.filter(chunk)
            await self._write(chunk)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        if self.proxy.idle_timeout is None:
            return await reader.read(65536)
        try:
            async with asyncio.timeout(self.proxy.idle_timeout):
                return await reader.read(65536)
        except TimeoutError:
            self.proxy.idle_cuts += 1
            return b""

    async def _write(self, chunk: bytes) -> None:
        size = self.proxy.segment or len(chunk) or 1
        for start in range(0, len(chunk), size):
            self.client.write(chunk[start : start + size])
            await self.client.drain()
            if self.proxy.segment:
                await asyncio.sleep(0)

    def reset(self) -> None:
        """Break both halves with RST, so that neither side takes it for an end."""
        for writer in (self.client, self.upstream):
            with suppress(OSError, AttributeError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on a port of its own in front of one server.

    Attributes:
        latency: Seconds added to everything the server sends.
        segment: Bytes per TCP segment towards the client, 0 for as they come.
        idle_timeout: The link is closed when the server sends nothing for so long, as balancers do.
        idle_cuts: How often that happened.
        refusing: New connections are reset at once.
        counting: Treat the client's bytes as Redis commands: count them, let traps spring.
        commands: Every command seen while counting, as sent.
        filter: Makes a function for one link that rewrites what the server sends.
        gate: Cleared: bytes are held in both directions, as in a network that swallows packets.
        replies: Cleared: only what the server sends is held.
    """

    link: type[Link] = Link

    def __init__(self, port: int, *, host: str = "127.0.0.1", filter: Callable[[], Filter] | None = None, counting: bool = False) -> None:
        self.upstream_host, self.upstream_port = host, port
        self.filter, self.counting = filter, counting
        self.latency, self.segment = 0.0, 0
        self.idle_timeout: float | None = None
        self.idle_cuts, self.refusing, self.accepted = 0, False, 0
        self.commands: list[bytes] = []
        self.gate = asyncio.Event()
        self.replies = asyncio.Event()
        self.gate.set()
        self.replies.set()
        self._drops = 0
        self._trap: Trap | None = None
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> "Proxy":
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    @property
    def http(self) -> str:
        """Base URL through the proxy."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def redis(self) -> str:
        """Redis URL through the proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def open_links(self) -> int:
        """Connections through the proxy right now."""
        return len(self._links)

    def words(self) -> list[list[bytes]]:
        """The commands seen while counting, taken apart."""
        return [command_words(command) for command in self.commands]

    def cut(self) -> int:
        """Reset every open connection now; how many there were."""
        links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    async def outage(self, seconds: float) -> None:
        """Reset everything and refuse new connections for a while."""
        self.refusing = True
        self.cut()
        await asyncio.sleep(seconds)
        self.refusing = False

    def drop_replies(self, count: int) -> None:
        """Cut the next `count` links at the moment the server's answer comes back: it did the work, nobody is told."""
        self._drops = count

    def set_trap(self, nth: int, *, forward: bool, match: bytes | tuple[bytes, ...] = b"") -> Trap:
        """Cut the link at the nth matching Redis command, with or without letting it through."""
        self._trap = Trap(countdown=nth, forward=forward, match=(match,) if isinstance(match, bytes) else match)
        return self._trap

    def spring(self, command: bytes) -> Trap | None:
        """The trap, if this command sets it off."""
        trap = self._trap
        if trap is None or not any(part in command for part in trap.match):
            return None
        trap.countdown -= 1
        if trap.countdown > 0:
            return None
        trap.sprung, self._trap = True, None
        return trap

    def take_drop(self) -> bool:
        """Whether this link's answer is to be dropped."""
        if self._drops <= 0:
            return False
        self._drops -= 1
        return True

    def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            if self.refusing:
                raise ConnectionRefusedError
            upstream_reader, upstream = await asyncio.open_connection(self.upstream_host, self.upstream_port)
        except OSError:
            client.transport.abort()
            return
        link = self.link(self, client, upstream)
        self._links.add(link)
        pumps = {asyncio.ensure_future(link.up(reader)), asyncio.ensure_future(link.down(upstream_reader))}
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for writer in (client, upstream):
                writer.close()

    async def close(self) -> None:
        """Stop listening and drop what is open."""
        if self._server is not None:
            self._server.close()
        self.gate.set()
        self.replies.set()
        self.cut()
        while self._tasks:
            await asyncio.wait(self._tasks)
