"""TLS to Redis: ``rediss://`` is checked against a certificate, on a single server; nothing falls back to plain text."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from reattach.core.errors import StoreUnavailable
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import start
from ..support.processes import Child, free_port
from ..support.servers import chosen_binary, local_binary
from ..support.waiting import wait_until_sync

NAMES: Final = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]


@pytest.fixture
def guarded(tmp_path: Path, invariants: None) -> Iterator[int]:
    """A server that speaks TLS only; its port. Its certificate is ``cert.pem``."""
    if chosen_binary() != local_binary():
        pytest.skip("the bundled server is built without TLS")
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-x509"]
    subprocess.run(["openssl", "req", *kind, *files, *NAMES], check=True, capture_output=True, timeout=20)
    port = free_port()
    tls = ["--tls-port", str(port), "--tls-cert-file", str(tmp_path / "cert.pem"), "--tls-key-file", str(tmp_path / "key.pem")]
    own = ["--port", "0", "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", "", "--tls-auth-clients", "no"]
    child = Child(f"redis with TLS on {port}", [str(chosen_binary()), *own, *tls], log=tmp_path / "redis.log")
    child.start()
    try:
        wait_until_sync(lambda: "Ready to accept connections" in child.output() or not child.alive, "the server")
        assert child.alive, child.output()
        yield port
    finally:
        child.close()


async def test_a_run_over_tls(guarded: int, tmp_path: Path) -> None:
    """A whole life, over a connection whose certificate was checked against the one that is named."""
    store = await Store.open(Settings(redis=f"rediss://127.0.0.1:{guarded}/0?ssl_ca_certs={tmp_path}/cert.pem", redis_timeout=2.0))
    try:
        hand = await start(store)
        await hand.emit(("step.done", {"n": 1}))
        assert (await hand.finish()).state == "succeeded"
    finally:
        await store.close()


@pytest.mark.parametrize("scheme", ["rediss", "redis"])
async def test_no_trust_no_connection(guarded: int, scheme: str) -> None:
    """A certificate that nobody vouches for, or a URL without TLS: typed, and nothing is sent in the open."""
    with pytest.raises(StoreUnavailable):
        await Store.open(Settings(redis=f"{scheme}://127.0.0.1:{guarded}/0", redis_timeout=0.5))
