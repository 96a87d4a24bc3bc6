"""What the Redis server says of itself: for readiness, and for `reattach doctor`. Features are probed, versions never compared."""

import time

import msgspec

from ..core.errors import ReattachError
from .door import Door
from .scripts import load_scripts


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One server's answers.

    Attributes:
        name: ``valkey`` or ``redis``.
        version: For people only.
        role: ``master``, or ``slave`` for a read-only replica.
        eviction: The maxmemory-policy; anything but noeviction may lose runs. None when the server does not say.
        append_only: Whether the append-only file is on. None when the server does not say.
        clock_skew_ms: This host's clock minus the server's. Nothing depends on it; people compare logs.
        used_memory: Bytes.
    """

    name: str
    version: str
    role: str
    eviction: str | None
    append_only: bool | None
    clock_skew_ms: int
    used_memory: int

    @property
    def safe(self) -> bool:
        """Whether this server may hold runs: it takes writes and never evicts a key."""
        return self.role == "master" and self.eviction in (None, "noeviction")


async def read_facts(door: Door) -> ServerFacts:
    """Ask the server. On a cluster: one of its nodes.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    text: str = (await door.call("INFO")).decode("utf-8", "replace")
    info: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        info[name] = value
    seconds, micros = await door.call("TIME")
    skew = time.time() * 1000 - (int(seconds) * 1000 + int(micros) / 1000)
    return ServerFacts(
        name="valkey" if "valkey_version" in info else "redis",
        version=info.get("valkey_version") or info.get("redis_version", "?"),
        role=info.get("role", "?"),
        eviction=info.get("maxmemory_policy") or None,
        append_only=None if "aof_enabled" not in info else info["aof_enabled"] == "1",
        clock_skew_ms=round(skew),
        used_memory=int(info.get("used_memory", 0)),
    )


async def broken_scripts(door: Door) -> tuple[str, ...]:
    """Load every command; those the server refuses, with its words.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    broken: list[str] = []
    for script in load_scripts().values():
        try:
            # One word to the client library: so it knows that on a cluster this goes to every primary.
            await door.call("SCRIPT LOAD", script.text)
        except ReattachError:
            raise
        except Exception as e:
            broken.append(f"{script.name}: {str(e).partition(chr(10))[0]}")
    return tuple(broken)
