"""Keys from an address: rotation, outages, and never a crowd at the issuer's door."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reattach.core.errors import AuthUnavailable
from reattach.core.settings import Settings
from reattach.http.auth import InvalidCredential
from reattach.http.auth.keyring import KeyRing
from reattach.http.auth.keys import BadKeys
from reattach.http.auth.sources import MAX_DOCUMENT, fetch, key_ring
from reattach.http.auth.tokens import Tokens

from ...support.issuer import SECRET, KeyServer, es256, hs256, rs256
from ...support.logs import LogCapture
from ...support.waiting import wait_until

OLD, NEW = rs256("old"), es256("new")


@pytest.fixture
async def server(task_guard: None) -> AsyncIterator[KeyServer]:
    """An address with the old key."""
    async with asyncio.timeout(20):
        started = await KeyServer(OLD).start()
        yield started
        started.open.set()
        await started.stop()


@pytest.fixture
async def ring(server: KeyServer) -> AsyncIterator[KeyRing]:
    """Its keys, looked up as often as anybody likes."""
    made = KeyRing(lambda: fetch(server.url), pause=0.0)
    yield made
    await made.close()


def of(ring: KeyRing) -> Tokens:
    """Tokens under a ring."""
    return Tokens(ring, Settings())


async def test_keys_are_looked_up_once(server: KeyServer, ring: KeyRing) -> None:
    """Not for every token."""
    for _ in range(5):
        assert (await of(ring).principal(OLD.token())).subject == "ann"
    assert server.asked == 1


async def test_an_unknown_key_is_looked_for(server: KeyServer, ring: KeyRing) -> None:
    """The issuer changes its key: the next token with it is good at once, and the old one no more."""
    await of(ring).principal(OLD.token())
    server.keys = [NEW.jwk()]
    assert (await of(ring).principal(NEW.token())).subject == "ann"
    assert server.asked == 2
    with pytest.raises(InvalidCredential, match="not signed with a key that is known"):
        await of(ring).principal(OLD.token())


async def test_a_crowd_looks_once(server: KeyServer, ring: KeyRing) -> None:
    """A hundred tokens of unknown keys at the same time, in the first moment and later, are one request each time."""
    server.open.clear()
    first = [asyncio.create_task(of(ring).principal(OLD.token())) for _ in range(100)]
    await wait_until(lambda: server.asked, "the first look")
    server.open.set()
    assert {principal.subject for principal in await asyncio.gather(*first)} == {"ann"}
    assert server.asked == 1
    server.open.clear()
    many = [asyncio.create_task(of(ring).principal(rs256(f"forged-{n}", 1).token())) for n in range(100)]
    await wait_until(lambda: server.asked > 1, "the second look")
    server.open.set()
    assert all(isinstance(found, InvalidCredential) for found in await asyncio.gather(*many, return_exceptions=True))
    assert server.asked == 2


async def test_strangers_cannot_make_it_look_again_and_again(server: KeyServer) -> None:
    """Between two looks passes a time, whoever asks; who has the good key is answered meanwhile."""
    ring = KeyRing(lambda: fetch(server.url), pause=60.0)
    await of(ring).principal(OLD.token())
    for number in range(20):
        with pytest.raises(InvalidCredential):
            await of(ring).principal(rs256(f"forged-{number}", 1).token())
    assert server.asked == 1
    await of(ring).principal(OLD.token())


async def test_a_bad_signature_of_a_known_key_is_no_reason_to_look(server: KeyServer, ring: KeyRing) -> None:
    """The key is there, the token is forged."""
    await of(ring).principal(OLD.token())
    with pytest.raises(InvalidCredential):
        await of(ring).principal(rs256("old", 1).token())
    assert server.asked == 1


async def test_a_client_that_leaves_takes_nobodys_keys(server: KeyServer, ring: KeyRing) -> None:
    """The one who caused the look is cancelled; it goes on for those who wait with it."""
    server.open.clear()
    leaver, stayer = (asyncio.create_task(of(ring).principal(OLD.token())) for _ in range(2))
    await wait_until(lambda: server.asked, "the look")
    leaver.cancel()
    await asyncio.wait({leaver})
    server.open.set()
    assert (await stayer).subject == "ann" and server.asked == 1


async def test_known_keys_outlive_an_outage(server: KeyServer, logs: LogCapture) -> None:
    """The issuer is away when the keys are due: they go on being good, and are renewed when it is back."""
    ring = KeyRing(lambda: fetch(server.url), refresh=0.0, pause=0.0)
    await of(ring).principal(OLD.token())
    await server.stop()
    for _ in range(3):
        assert (await of(ring).principal(OLD.token())).subject == "ann"
    await wait_until(lambda: logs.at_least("warning"), "a look that finds nobody")
    assert {entry["event"] for entry in logs.at_least("warning")} == {"auth.keys_not_read"}
    server.keys = [NEW.jwk()]
    await server.start()
    await of(ring).principal(NEW.token())
    await ring.close()


async def test_without_any_keys_it_says_so(server: KeyServer, ring: KeyRing) -> None:
    """Never had any: a 503 that asks to come back, not a 401 that logs people out; and back again without a restart."""
    await server.stop()
    with pytest.raises(AuthUnavailable) as caught:
        await of(ring).principal(OLD.token())
    assert caught.value.status == 503 and caught.value.retryable
    await server.start()
    assert (await of(ring).principal(OLD.token())).subject == "ann"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>" + SECRET.encode()), (200, SECRET.encode()), (200, b'{"keys": []}'), (500, b""), (404, b""), (302, b""), (204, b""),
        (200, b"{" + b" " * MAX_DOCUMENT + b'"keys": []}'), (200, json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}).encode()),
    ],
)  # fmt: skip
async def test_nonsense_at_the_address_changes_nothing(
    server: KeyServer, ring: KeyRing, logs: LogCapture, status: int, body: bytes
) -> None:
    """An error page, a redirect, too much, a secret: the known keys stay, and none of it is logged."""
    await of(ring).principal(OLD.token())
    server.status, server.body = status, body
    with pytest.raises(InvalidCredential):
        await of(ring).principal(NEW.token())
    assert server.asked == 2
    await of(ring).principal(OLD.token())
    [warning] = logs.at_least("warning")
    assert SECRET not in str(warning) and "c2VjcmV0" not in str(warning)


async def test_an_address_that_hangs_is_given_up(server: KeyServer, ring: KeyRing, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time; who asks for keys then is not left waiting."""
    monkeypatch.setattr("reattach.http.auth.sources.TIMEOUT", 0.2)
    server.open.clear()
    with pytest.raises(AuthUnavailable):
        await of(ring).principal(OLD.token())


async def test_a_file_may_change(tmp_path: Path) -> None:
    """A new JWKS, or another secret in the same place, needs no restart."""
    path = tmp_path / "keys"
    path.write_text(json.dumps({"keys": [OLD.jwk()]}))
    ring = await key_ring(str(path))
    await of(ring).principal(OLD.token())
    path.write_text(json.dumps({"keys": [NEW.jwk()]}))
    await of(ring).principal(NEW.token())
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    ring = await key_ring(str(secret))
    await of(ring).principal(hs256().token())
    other = hs256(secret=SECRET[::-1])
    secret.write_text(other.private)
    await of(ring).principal(other.token())


async def test_a_variable_holds_what_a_file_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what injects secrets that way."""
    monkeypatch.setenv("SOME_KEYS", NEW.pem.decode())
    await of(await key_ring("env:SOME_KEYS")).principal(NEW.token())


@pytest.mark.parametrize(
    "source",
    [
        "env:NOT_SET_ANYWHERE", "/no/such/file", "http://keys.example/jwks", "ftp://keys.example/jwks", "https://", "https://[",
        "https://a:b@keys.example/jwks", "https://keys.example:99999/jwks", SECRET, "a\x00b", "/proc",
    ],
)  # fmt: skip
async def test_a_source_that_cannot_be_meant_is_refused_at_once(source: str) -> None:
    """Plain http is for this machine only. What was given is not repeated: it may be a secret in the wrong place."""
    with pytest.raises(BadKeys) as caught:
        await key_ring(source)
    assert SECRET not in caught.value.detail and "a:b" not in caught.value.detail
