"""O27 through a real nginx: as a person has it who changed nothing, and with the configuration in ``deploy/``."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import httpx
import pytest

from reattach.core.settings import Settings
from reattach.http.bodies import MAX_WAIT

from ..support.calls import check_problem
from ..support.client import Follower, make_client
from ..support.drive import claim, create, start
from ..support.factories import Proxies, Replicas
from ..support.nginx import SHIPPED, Nginx, as_shipped, with_defaults
from ..support.service import Service

ENCODINGS: Final = "gzip, br, zstd, deflate"
Start: TypeAlias = Callable[[Nginx], Nginx]
WAYS: Final = {"defaults": (with_defaults, False), "shipped": (as_shipped, False), "shipped, HTTP/2": (as_shipped, True)}


@asynccontextmanager
async def client_of(nginx: Nginx, *, http2: bool = False) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that trusts its certificate."""
    options: dict[str, Any] = {"verify": nginx.certificate, "http2": http2} if nginx.base_url.startswith("https") else {}
    async with make_client(nginx.base_url, **options) as client:
        yield client


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_held_back(service: Service, nginx: Start, way: str) -> None:
    """Head and first byte come before the run has begun; each small event follows its append; the headers arrive as they were sent."""
    kind, http2 = WAYS[way]
    async with client_of(nginx(kind(service.port)), http2=http2) as client:
        run_id = await create(service.store, "typing")
        follower = await Follower(client, run_id).open(accept_encoding=ENCODINGS)
        stream = follower.stream
        assert stream.head_after < 0.3
        hand = await claim(service.store, "typing")
        for n in range(5):
            appended = time.monotonic()
            await hand.emit(("message.delta", {"message_id": "m", "text": f"token {n} "}))
            await follower.until(3 + n, timeout=1.0)
            assert follower.frames[-1].at - appended < 0.3
            await asyncio.sleep(0.05)
        assert stream.first_byte_after < 0.3
        await hand.finish()
        assert await follower.until_end() == "clean"
        follower.check(1, 8)
        headers = stream.headers
        assert (headers["content-type"], headers["cache-control"]) == ("text/event-stream; charset=utf-8", "no-store")
        assert "content-encoding" not in headers and "content-length" not in headers
        # By its defaults nginx keeps this one to itself; another proxy in front of it needs it too.
        assert kind is with_defaults or headers["x-accel-buffering"] == "no"
        assert (
            await client.get(f"/agent-runs/{run_id}/events", headers={"accept": "text/event-stream", "last-event-id": "8"})
        ).status_code == 204


@pytest.mark.parametrize("way", WAYS)
async def test_a_stream_that_is_cut_does_not_look_complete(replicas: Replicas, nginx: Start, way: str) -> None:
    """A drain behind nginx ends the stream of an unfinished run as cut, never as a whole body; another replica goes on with it."""
    kind, http2 = WAYS[way]
    first, second = await replicas(), await replicas()
    hand = await start(second.store, "deployed")
    async with client_of(nginx(kind(first.port)), http2=http2) as client, client_of(nginx(kind(second.port)), http2=http2) as other:
        follower = await Follower(client, hand.run_id).open()
        await follower.until(2)
        await first.stop()
        assert await follower.until_end() == "cut"
        assert follower.control[-1].event == "stream.closing"
        await hand.emit(("step.done", {"n": 1}))
        follower.client = other
        await follower.open()
        await hand.finish()
        assert await follower.until_end() == "clean"
        follower.check(1, 4)


async def test_a_silent_stream_lives(replicas: Replicas, nginx: Start) -> None:
    """Keep-alives pass by themselves, one at a time."""
    service = await replicas(keepalive=0.3)
    async with client_of(nginx(as_shipped(service.port))) as client:
        hand = await start(service.store, "quiet")
        follower = await Follower(client, hand.run_id).open()
        await follower.until(lambda f: len(f.stream.parser.comments) >= 4)
        assert follower.stream.ended_at == 0.0
        await hand.finish()
        assert await follower.until_end() == "clean"


async def test_another_replica_takes_over(replicas: Replicas, nginx: Start) -> None:
    """With two servers behind one name, a client that resumes when one of them is gone is served by the other, without seeing an error."""
    first, second = await replicas(), await replicas()
    hand = await start(second.store, "deployed")
    async with client_of(nginx(as_shipped(first.port, second.port))) as client:
        viewers = [await Follower(client, hand.run_id).open() for _ in range(4)]
        for viewer in viewers:
            await viewer.until(2)
        await first.stop()
        cut = [viewer for viewer in viewers if viewer.stream.ended or viewer.control]
        assert len(cut) == 2, "the streams were not shared out between both"
        for viewer in cut:
            assert await viewer.until_end() == "cut"
            assert (await viewer.open()).stream.status == 200
        for _ in range(4):
            assert (await client.get(f"/agent-runs/{hand.run_id}")).status_code == 200
        await hand.finish()
        for viewer in viewers:
            assert await viewer.until_end() == "clean"
            viewer.check(1, 3)


async def test_commands_pass(service: Service, nginx: Start, proxies: Proxies) -> None:
    """Keys, bodies and refusals arrive as they were sent, over connections that are used again; metrics are not for everybody."""
    counted = await proxies(service.base_url)
    async with client_of(nginx(as_shipped(counted.port)), http2=True) as client:
        body = {"agent": "big", "input": {"text": "x" * 200_000}}
        made = [await client.post("/agent-runs", json=body, headers={"idempotency-key": "order-17"}) for _ in range(5)]
        assert [response.status_code for response in made] == [201, 200, 200, 200, 200]
        assert made[0].http_version == "HTTP/2" and made[1].headers["idempotency-replayed"] == "true"
        check_problem(await client.post("/agent-runs", json={"agent": "big", "input": {"text": "x" * 1_500_000}}), 413, "payload_too_large")
        refused = await client.get(f"/agent-runs/{made[0].json()['run_id']}/events", headers={"last-event-id": "run_x:1"})
        check_problem(refused, 400, "malformed_cursor")
        assert counted.accepted <= 2, "a connection to the API for each request"


async def broken_api() -> asyncio.Server:
    """An API that begins a stream and dies: every request through nginx becomes an error in its log."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n4\r\n: x\n\r\n")
        await writer.drain()
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


SECRET: Final = "ticket-that-nobody-may-read"


async def ask_with_ticket(nginx: Nginx) -> list[int]:
    """Read with a ticket whatever can be read with one; the status of every answer, 0 for one that broke off."""
    seen = list[int]()
    async with client_of(nginx) as client:
        for path in ("/agent-runs/run_x", "/agent-runs/run_x/events"):
            try:
                headers = {"referer": f"https://app.example/?ticket={SECRET}"}
                seen.append((await client.get(path, params={"ticket": SECRET, "after": "3"}, headers=headers)).status_code)
            except httpx.TransportError:
                seen.append(0)
    return seen


@pytest.mark.parametrize("kind", [with_defaults, as_shipped], ids=["defaults", "shipped"])
async def test_tickets_are_in_no_log(nginx: Start, kind: Callable[..., Nginx]) -> None:
    """A ticket in the address stays out of both logs, also when streams are cut or the API is gone; by default nginx writes it down."""
    server = await broken_api()
    front = nginx(kind(server.sockets[0].getsockname()[1]))
    assert await ask_with_ticket(front) == [0, 0]
    server.close()
    await server.wait_closed()
    assert await ask_with_ticket(front) == [502, 502]
    front.close_process()
    access, errors = front.logged("access"), front.logged("error")
    assert len(re.findall(r'"GET /agent-runs/run_x(?:/events)?\b', access)) == 4
    if kind is with_defaults:
        assert SECRET in access and SECRET in errors
    else:
        assert SECRET not in access + errors + front.output() + front.logged("early")
        assert '"GET /agent-runs/run_x/events" 502' in access


def test_the_redirect_to_tls_logs_nothing(nginx: Start) -> None:
    """Who comes without TLS is sent on with the whole address, which is written down nowhere."""
    front = nginx(as_shipped(1))
    transport = httpx.HTTPTransport(uds=str(front.folder / "redirect.sock"))
    with httpx.Client(transport=transport, base_url="http://api.example.com") as client:
        answer = client.get("/agent-runs/run_x/events", params={"ticket": SECRET})
    assert (answer.status_code, answer.headers["location"]) == (308, f"https://api.example.com/agent-runs/run_x/events?ticket={SECRET}")
    front.close_process()
    assert SECRET not in front.logged("access") + front.logged("error") + front.output()


def test_the_longest_wait_fits() -> None:
    """It waits longer for the API than the longest ``?wait=``, and takes larger bodies than the API does by default."""
    text = SHIPPED.read_text("utf-8")
    [read], [size] = re.findall(r"proxy_read_timeout (\d+)s;", text), re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(read) >= 2 * MAX_WAIT and int(read) >= 2 * Settings().keepalive
    assert int(size) * 1024 * 1024 > Settings().max_body
