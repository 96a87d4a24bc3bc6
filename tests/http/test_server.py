"""Starting, draining and stopping: in this process, and as a process that gets signals (case O26)."""

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from reattach.core.errors import InvalidRequest
from reattach.core.settings import Settings
from reattach.http.server import bind, serve, url_of
from reattach.store import Store
from reattach.tail import Hub

from ..support import drive
from ..support.processes import ROOT, Child
from ..support.service import Service
from ..support.waiting import wait_until
from .raw import connection


async def test_draining_ends_every_stream_with_its_reason(replicas: Callable[..., Any], store: Store) -> None:
    """Idle streams are told, cut, and over in a moment; followers go on elsewhere without a gap."""
    one, two = await replicas(grace=10.0), await replicas()
    hand = await drive.start(store)
    followers = [await one.follow(hand.run_id).open() for _ in range(10)]
    for follower in followers:
        await follower.until(2)
    began = time.monotonic()
    await one.stop()
    assert time.monotonic() - began < 2
    for follower in followers:
        assert await follower.until_end() == "cut"
        assert [(f.event, json.loads(f.data)) for f in follower.control] == [("stream.closing", {"reason": "drain"})]
    await hand.finish()
    for follower in followers:
        await follower.open(on=two.base_url)
        assert await follower.until_end() == "clean"
        follower.check(1, 3)


async def test_draining_answers_long_polls(replicas: Callable[..., Any], store: Store) -> None:
    """With what there is, instead of an error."""
    service = await replicas(grace=10.0)
    run_id = await drive.create(store)
    path = f"/agent-runs/{run_id}"
    asked = [
        asyncio.create_task(service.client.get(path, params={"wait": "60"})),
        asyncio.create_task(service.client.get(f"{path}/events", params={"wait": "60", "after": "1"})),
    ]
    await wait_until(lambda: service.hub.stats().followers == 2, "both to wait")
    began = time.monotonic()
    await service.stop()
    assert time.monotonic() - began < 2
    assert [(await answer).status_code for answer in asked] == [200, 200]


async def test_a_viewer_that_takes_nothing_does_not_hold_up_the_drain(replicas: Callable[..., Any], store: Store) -> None:
    """It is cut; nothing waits for its buffers."""
    service = await replicas(grace=10.0)
    hand = await drive.start(store)
    async with connection(service.base_url, limit=1024) as raw:
        raw.ask("GET", f"/agent-runs/{hand.run_id}/events", "Accept: text/event-stream")
        await raw.until(b"run.started")
        for _ in range(60):
            await hand.emit(("step.done", {"text": "x" * 200_000}))
        began = time.monotonic()
        await service.stop()
        assert time.monotonic() - began < 4


async def test_a_stopping_process_says_it_is_not_ready(service: Service, store: Store) -> None:
    """And takes no new streams."""
    run_id = await drive.create(store)
    await service.hub.close("drain")
    assert (await service.client.get("/readyz")).json()["reason"] == "stopping"
    refused = await service.follow(run_id).open()
    assert refused.stream.status == 503 and int(refused.stream.headers["retry-after"]) >= 1


OFFER = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA")
"""What Java's client sends with its requests."""


@pytest.mark.parametrize("apart", [False, True])
async def test_a_request_that_offers_another_protocol_is_an_ordinary_one(service: Service, apart: bool) -> None:
    """Its body is read, wherever it was torn, and the connection goes on."""
    body = b'{"agent":"support","input":{"x":1}}'
    async with connection(service.base_url) as raw:
        for number in range(2):
            raw.seen = b""
            raw.ask("POST", "/agent-runs", *OFFER, "content-type: application/json", f"content-length: {len(body)}")
            if apart:
                await asyncio.sleep(0.05)
            raw.send(body)
            seen = await raw.until(b'/inputs"}}')
            assert seen.startswith(b"HTTP/1.1 201") and b'"input":{"x":1}' in seen, number
        raw.seen = b""
        raw.ask("GET", "/healthz", *OFFER)
        raw.ask("GET", "/healthz", "connection: close, upgrade", "upgrade: websocket")
        assert (await raw.until_end()).count(b'{"status":"ok"}') == 2
    async with connection(service.base_url) as raw:
        raw.ask("CONNECT", "/healthz")
        assert (await raw.until(b"}")).startswith(b"HTTP/1.1 405")


async def test_cancelling_serve_drains_too(store: Store, settings: Settings, hub: Hub) -> None:
    """A caller that is torn down leaves no socket and no task behind."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    task = asyncio.create_task(serve(app, hub, settings, on_started=started.set_result, stopping=asyncio.Event()))
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(await started)).status_code == 204
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hub.closing == "drain"


def test_the_port_is_known_before_anything_starts() -> None:
    """Port 0 becomes a real one; a taken one is one clear sentence."""
    for host in ("127.0.0.1", "::1", "localhost"):
        with bind(Settings(host=host, port=0)) as sock:
            assert url_of(sock).startswith("http://") and not url_of(sock).endswith(":0")
            with pytest.raises(InvalidRequest, match=r"cannot listen on .* port \d+: .*choose another with --host or --port"):
                bind(Settings(host=host, port=sock.getsockname()[1]))
    with pytest.raises(InvalidRequest):
        bind(Settings(host="no-such-host.invalid", port=0))


PROGRAM = """
import asyncio, sys
import msgspec, uvloop
from reattach.core.settings import Settings
from reattach.http.app import create_app
from reattach.http.auth import DevelopmentAuthenticator, DevelopmentAuthorizer
from reattach.http.server import serve
from reattach.obs.log import setup_logging
from reattach.store import Store
from reattach.tail import Hub

async def main() -> None:
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    setup_logging("json")
    store = await Store.open(settings)
    hub = Hub(store, settings)
    await hub.start()
    app = create_app(store, hub, settings, DevelopmentAuthenticator(settings), DevelopmentAuthorizer())
    await serve(app, hub, settings, on_started=lambda url: print(f"URL {url}", flush=True))
    await store.close()

if sys.argv[2] == "uvloop":
    uvloop.run(main())
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_with_0(
    settings: Settings, store: Store, tmp_path: Path, loop: str, number: signal.Signals
) -> None:
    """With open streams, within its grace, without a traceback."""
    hand = await drive.start(store)
    text = msgspec.json.encode(msgspec.structs.replace(settings, grace=8.0)).decode()
    command = [sys.executable, "-c", PROGRAM, text, loop]
    child = Child("server", command, log=tmp_path / "server.log", env={"PYTHONPATH": str(ROOT / "service")})
    try:
        child.start()
        await asyncio.to_thread(child.wait_for_output, "URL http")
        url = next(line for line in child.output().splitlines() if line.startswith("URL ")).removeprefix("URL ")
        async with connection(url) as raw:
            raw.ask("GET", f"/agent-runs/{hand.run_id}/events", "Accept: text/event-stream")
            await raw.until(b"run.started")
            began = time.monotonic()
            child.send(number)
            seen = await raw.until_end()
            assert seen.endswith(b'{"reason":"drain"}\n\n\r\n') and not raw.reset
        assert await asyncio.to_thread(child.wait, 8) == 0
        assert time.monotonic() - began < 4
        assert "Traceback" not in child.output() and '"error"' not in child.output(), child.output()
        records = [json.loads(line) for line in child.output().splitlines() if line.startswith("{")]
        assert [r["close_reason"] for r in records if r["event"] == "connection"] == ["drain"]
    finally:
        child.close()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(url.rpartition(":")[2])))


def test_an_answer_is_not_held_back() -> None:
    """A body leaves right behind its head, whichever loop serves: what is accepted inherits that from the listening socket."""
    with bind(Settings(port=0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
