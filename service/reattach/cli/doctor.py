"""``reattach doctor``: is this a store that runs are safe in?"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from typing import Final, Literal

import click
import msgspec

from ..core.errors import ReattachError
from ..core.settings import Settings
from ..store import ServerFacts, Store
from ..store.redis import ServerRefused
from .console import clean, paint, write
from .folder import find_store
from .help import Command
from .options import STORE, with_settings

Verdict = Literal["ok", "warn", "fail"]
_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_SKEW_MS: Final = 1000
_SLOW_MS: Final = 50


class Check(msgspec.Struct, frozen=True):
    """One line of the report: what was looked at, how it is, and what to do where it is not well."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


@click.command(cls=Command, short_help="Check that runs are safe in the store.")
@with_settings(STORE)
def doctor(settings: Settings) -> None:
    """Check that the store is reachable and safe for runs; a line for each check, with the remedy.

        reattach doctor
        reattach doctor --redis redis://cache:6379/0

    The exit code is 1 when a check fails; warnings do not count.
    """
    sys.exit(1 if asyncio.run(_doctor(settings)) else 0)


async def _doctor(settings: Settings) -> int:
    failed = 0
    async for check in checks(settings):
        failed += check.verdict == "fail"
        remedy = f"; {check.remedy}" if check.remedy else ""
        write(f"{paint(f'{check.verdict:<4}', _COLOURS[check.verdict])}  {check.name:<12}{clean(check.found)}{remedy}\n")
    return failed


async def checks(settings: Settings) -> AsyncGenerator[Check, None]:
    """Every check, as soon as it is made. Nothing follows when the store cannot be reached."""
    try:
        store = Store(find_store(settings))
    except ReattachError as e:
        yield Check("store", "fail", e.detail)
        return
    try:
        yield await _reachable(store)
        async for check in _all(store, settings):
            yield check
    except ReattachError as e:
        found = f"{store.target.safe_url}: {e.detail}{_because(e)}"
        yield Check("reachable", "fail", found, "is it running, is the URL right (--redis, REATTACH_REDIS)?")
    finally:
        await store.close()


async def _all(store: Store, settings: Settings) -> AsyncGenerator[Check, None]:
    try:
        facts = await store.facts()
    except ServerRefused as e:
        yield _forbidden("server", e)
        return
    for made in (_server(facts), _eviction(facts), await _persistence(store, facts), _clock(facts)):
        yield made
    looks = {
        "features": lambda: _features(store),
        "scripts": lambda: _scripts(store),
        "shards": lambda: _shards(store, settings),
        "size": lambda: _size(store, facts),
    }
    for name, look in looks.items():
        try:
            yield await look()
        except ServerRefused as e:
            yield _forbidden(name, e)


def _because(error: ReattachError) -> str:
    """What the client library said, e.g. that a certificate or a password is wrong; it repeats no secret."""
    return f" ({str(error.__cause__).partition(chr(10))[0].rstrip('.')})" if error.__cause__ else ""


def _forbidden(name: str, error: ServerRefused) -> Check:
    return Check(
        name, "fail", f"the server does not let itself be asked: {error.__cause__}", "allow this user all commands but dangerous ones"
    )


async def _reachable(store: Store) -> Check:
    await store.ping()
    start = time.perf_counter()
    await store.ping()
    ms = (time.perf_counter() - start) * 1000
    found = f"{store.target.safe_url} answers in {ms:.1f} ms"
    return Check("reachable", "ok", found) if ms < _SLOW_MS else Check("reachable", "warn", found, "every event takes at least that long")


def _server(facts: ServerFacts) -> Check:
    found = f"{facts.name} {facts.version}"
    if facts.role != "master":
        return Check("server", "fail", f"{found}, a read-only replica", "name the primary, or use a redis+sentinel:// URL that finds it")
    return Check("server", "ok", found)


def _eviction(facts: ServerFacts) -> Check:
    if facts.eviction is None:
        return Check("eviction", "warn", "the server does not say its maxmemory-policy", "make sure that it is noeviction")
    if facts.eviction != "noeviction":
        return Check(
            "eviction", "fail", f"maxmemory-policy is {facts.eviction}: it deletes runs when memory is short",
            "run: redis-cli CONFIG SET maxmemory-policy noeviction",
        )  # fmt: skip
    return Check("eviction", "ok", "noeviction")


async def _persistence(store: Store, facts: ServerFacts) -> Check:
    if facts.append_only is None:
        return Check("persistence", "warn", "the server does not say whether it keeps an append-only file", "make sure that it does")
    if not facts.append_only:
        return Check("persistence", "warn", "no append-only file: a restart loses runs", "run: redis-cli CONFIG SET appendonly yes")
    fsync = await _config(store, "appendfsync")
    if fsync in (None, "always"):
        return Check("persistence", "ok", "append-only file" + ("" if fsync is None else ", synced before every answer"))
    lost = "about a second" if fsync == "everysec" else "what the system had not written yet"
    return Check("persistence", "ok", f"append-only file, appendfsync {fsync}: a crash may lose {lost}")


def _clock(facts: ServerFacts) -> Check:
    found = f"this machine's is {abs(facts.clock_skew_ms)} ms {'ahead of' if facts.clock_skew_ms >= 0 else 'behind'} the server's"
    if abs(facts.clock_skew_ms) > _SKEW_MS:
        return Check("clock", "warn", found, "nothing depends on it, but times in logs will not match; synchronise both (NTP)")
    return Check("clock", "ok", found)


async def _features(store: Store) -> Check:
    try:
        # Came with Redis 7.0, like the rest of what is needed; harmless on any key.
        await store.door.call("EXPIRETIME", store.keys.config())
    except ReattachError:
        raise
    except Exception as e:
        if "unknown command" in str(e):
            return Check("features", "fail", "commands of Redis 7.0 are missing", "use Redis 7.0 or newer, or Valkey 8 or newer")
        return Check("features", "warn", f"the server does not let itself be asked: {e}")
    return Check("features", "ok", "the commands of Redis 7.0 are there")


async def _scripts(store: Store) -> Check:
    broken = await store.check_scripts()
    if broken:
        return Check("scripts", "fail", "; ".join(broken), "allow EVAL, EVALSHA and SCRIPT to this user, or use a server with Lua")
    return Check("scripts", "ok", "every command loads")


async def _shards(store: Store, settings: Settings) -> Check:
    raw: bytes | None = await store.door.call("HGET", store.keys.config(), "shards")
    if raw is None:
        return Check("shards", "ok", f"not fixed yet under the prefix {settings.prefix}; the first process fixes {settings.shards}")
    stored = int(raw)
    if stored != settings.shards:
        return Check("shards", "fail", f"the data has {stored}, this process would use {settings.shards}", f"give --shards {stored}")
    return Check("shards", "ok", f"{stored} under the prefix {settings.prefix}")


async def _size(store: Store, facts: ServerFacts) -> Check:
    count = int(await store.door.call("DBSIZE"))
    return Check("size", "ok", f"{count} keys in the database, {facts.used_memory / 1_048_576:.1f} MiB of memory used")


async def _config(store: Store, name: str) -> str | None:
    """A server setting; None where the server keeps it to itself."""
    try:
        reply: list[bytes] = await store.door.call("CONFIG GET", name)
        return reply[1].decode()
    except Exception:
        return None
