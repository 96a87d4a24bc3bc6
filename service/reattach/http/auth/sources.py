"""Where keys come from: an address, a file, or a variable."""

import asyncio
import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx

from .hosts import is_loopback
from .keyring import KeyRing, Load
from .keys import BadKeys, Key, parse

TIMEOUT: Final = 5.0
MAX_DOCUMENT: Final = 256 * 1024
_VARIABLE: Final = "env:"


async def key_ring(source: str) -> KeyRing:
    """The keys that a setting names. A file or variable is read now; an address is asked from now on, and may be away.

    Args:
        source: The setting `jwt_keys`.

    Raises:
        BadKeys: They cannot be read, or the address is none that keys may come from.
    """
    if "://" in source:
        _check_address(source)
        ring = KeyRing(lambda: fetch(source))
        ring.look()
        return ring
    load = _loader(source)
    return KeyRing(load, await load())


def _loader(source: str) -> Load:
    async def load() -> tuple[Key, ...]:
        if source.startswith(_VARIABLE):
            return parse(_from_environment(source.removeprefix(_VARIABLE)), secrets=True)
        return parse(await asyncio.to_thread(_from_file, Path(source)), secrets=True)

    return load


def _from_environment(name: str) -> bytes:
    value = os.environb.get(os.fsencode(name))
    if not value:
        raise BadKeys(f"the variable {name} is not set")
    return value


def _from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_DOCUMENT + 1)
    except (OSError, ValueError) as e:
        # Its name is not repeated: it may be a secret that was given in place of a file.
        why = e.strerror if isinstance(e, OSError) else "not a file's name"
        raise BadKeys(f"the file cannot be read ({why}); give an https:// URL, env:NAME or a file") from None
    if len(raw) > MAX_DOCUMENT:
        raise BadKeys(f"the file is larger than {MAX_DOCUMENT} bytes")
    return raw


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.scheme not in ("https", "http"):
        raise BadKeys("an address begins with https://")
    if parts.username is not None or parts.password is not None:
        raise BadKeys("an address of public keys has no password in it")
    if parts.scheme == "http" and not is_loopback(host):
        raise BadKeys("an address begins with https://: over http:// anybody on the way could answer with keys of their own")


async def fetch(url: str) -> tuple[Key, ...]:
    """The keys at an address.

    Raises:
        BadKeys: What is there are no keys, or too much.
        httpx.HTTPError: It cannot be reached.
        TimeoutError: It takes too long.
    """
    # Redirects are not followed: where keys come from is the operator's decision. A proxy has no business between this machine and itself.
    local = is_loopback(urlsplit(url).hostname or "")
    async with (
        asyncio.timeout(TIMEOUT),
        httpx.AsyncClient(timeout=TIMEOUT, trust_env=not local) as client,
        client.stream("GET", url, headers={"accept": "application/jwk-set+json, application/json"}) as response,
    ):
        if response.status_code != 200:
            raise BadKeys(f"the address answers with {response.status_code}")
        raw = bytearray()
        async for chunk in response.aiter_bytes():
            raw += chunk
            if len(raw) > MAX_DOCUMENT:
                raise BadKeys(f"the document is larger than {MAX_DOCUMENT} bytes")
    return parse(bytes(raw), secrets=False)
