"""The fault proxy: each fault is what its name says."""

import asyncio

import pytest

from ..support.admin import Admin
from ..support.factories import Proxies
from ..support.proxy import Proxy
from ..support.resp import CommandSplitter, command_words
from ..support.waiting import wait_until


async def talk(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A plain connection to a Redis."""
    return await asyncio.open_connection("127.0.0.1", port)


async def ping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """One command and its answer; empty when the connection ended, raises when it was reset."""
    writer.write(b"*1\r\n$4\r\nPING\r\n")
    return await reader.read(100)


@pytest.fixture
async def proxy(redis_url: str, proxies: Proxies) -> Proxy:
    """A proxy in front of the tests' Redis."""
    return await proxies(redis_url)


async def test_forwards_and_cuts(proxy: Proxy) -> None:
    """Bytes pass in both directions; `cut` resets both halves."""
    reader, writer = await talk(proxy.port)
    assert await ping(reader, writer) == b"+PONG\r\n"
    assert proxy.open_links == 1
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        await reader.read(1)
    await wait_until(lambda: proxy.open_links == 0, "the link to be gone")
    writer.close()


async def test_drops_the_reply_of_one_command(proxy: Proxy, admin: Admin) -> None:
    """A trap lets the command through and swallows its answer, or swallows the command."""
    proxy.counting = True
    for forward, expected in ((True, b"1"), (False, None)):
        admin.delete("harness-trap")
        reader, writer = await talk(proxy.port)
        trap = proxy.set_trap(2, forward=forward, match=b"harness-trap")
        writer.write(b"*2\r\n$3\r\nGET\r\n$12\r\nharness-trap\r\n")
        assert await reader.read(100) == b"$-1\r\n"
        writer.write(b"*2\r\n$4\r\nINCR\r\n$12\r\nharness-trap\r\n")
        with pytest.raises(ConnectionResetError):
            await reader.read(100)
        assert trap.sprung
        await wait_until(lambda expected=expected: admin.get("harness-trap") == expected, "the command's effect")
        writer.close()
    admin.delete("harness-trap")


async def test_holds_delays_and_times_out(proxy: Proxy) -> None:
    """Blackhole, latency and the idle limit of a balancer."""
    reader, writer = await talk(proxy.port)
    proxy.gate.clear()
    held = asyncio.create_task(ping(reader, writer))
    done, _ = await asyncio.wait({held}, timeout=0.1)
    assert not done
    proxy.latency = 0.05
    proxy.gate.set()
    assert await held == b"+PONG\r\n"
    writer.close()
    proxy.latency, proxy.idle_timeout = 0.0, 0.1
    reader, writer = await talk(proxy.port)
    assert await ping(reader, writer) == b"+PONG\r\n"
    assert await reader.read(10) == b""
    assert proxy.idle_cuts == 1
    writer.close()


def test_commands_are_told_apart_in_any_portions() -> None:
    """RESP arrays, payloads with line breaks, inline commands."""
    stream = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n*1\r\n$4\r\nPING\r\n"
    for size in (1, 3, 7, 100):
        splitter = CommandSplitter()
        commands = [c for i in range(0, len(stream), size) for c in splitter.feed(stream[i : i + size])]
        assert [command_words(c) for c in commands] == [[b"GET", b"a\r\nb"], [b"PING"], [b"PING"]]
