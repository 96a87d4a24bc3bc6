"""Writes to a connection that has just closed, on uvloop; prints what that raises, and what the store makes of it."""

import asyncio

import uvloop

from reattach.store.redis import named, translate


async def write() -> Exception:
    """What a write to a closed connection raises."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.transport.abort()
        try:
            for _ in range(100):
                await asyncio.sleep(0)
                writer.write(b"PING\r\n")
        except Exception as e:
            return e
    raise AssertionError("a closed connection took everything")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        error = runner.run(write())
    print(type(error).__name__, type(translate(named(error))).__name__)
