"""Every key a command touches is declared, and in one slot: read from what the server did, and from the sources."""

import re
from pathlib import Path

import msgspec
import pytest

from reattach.core.receipt import Effect, EffectCall
from reattach.core.session import NewSession
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.store.limits import Who
from reattach.store.revocations import Target
from reattach.store.scripts import load_scripts, lua_folder
from reattach.store.tickets import TicketFacts

from ..support.drive import Hand, claim, create, new_run, start
from ..support.factories import OwnRedis
from ..support.monitor import Call, monitored
from ..support.waiting import wait_until

KEYLESS = {"TIME"}
SUBCOMMANDS = {"XGROUP", "XINFO"}
"""Commands in scripts whose key is the second argument. Every other one has exactly one key, its first argument."""


async def whole_life(store: Store) -> None:
    """Run every command of ``lua/`` at least once."""
    work, runs = store.work, store.runs
    await runs.create(new_run(session_id="s"), key="k", fingerprint="f")
    hand = await claim(store)
    call = EffectCall(call_id="c", tool="t.x", arguments=b"{}", mutating=True)
    assert (await work.intend(hand.lease, call)).kind == "go"
    await work.commit(hand.lease, Effect(call_id="c", tool="t.x", status="receipt", mutating=True, result=b"1"))
    await hand.emit(("message.delta", {"message_id": "m", "text": "x"}), ("message.checkpoint", {"message_id": "m", "text": "x"}))
    await hand.renew()
    folded = await store.checkpoints.fold(hand.run_id)
    await store.checkpoints.store(hand.run_id, folded.fold)
    said = ("message.checkpoint", b'{"message_id":"m","text":"x"}', "")
    await store.door.run(load_scripts()["cover"], store.keys.of_run(hand.run_id), hand.run_id, folded.fold.sequence, *said)
    await store.checkpoints.trim(hand.run_id, folded.fold.covered)
    await work.release(hand.lease, cause="drain")
    hand = await claim(store)
    await work.park(hand.lease, wait_id="w", reason="approval", timeout_ms=60_000)
    await runs.answer(hand.run_id, wait_id="w", value=b"1", by="me", key="a", fingerprint="f")
    hand = await claim(store)
    await hand.finish()
    await runs.read(hand.run_id)
    who = Who("dev", "me")
    await store.limits.charge(who, "support", "run_00")
    await store.limits.count(who, "tickets")
    await store.limits.hold(who, "p", 1, 1, lease=5.0, bounded=True)
    facts = TicketFacts(run_id=hand.run_id, tenant="dev", subject="me", scopes=(), issued_at=None, session=None)
    await store.tickets.make(facts, 60.0)
    target = Target(kind="subject", tenant="dev", name="me")
    await store.revocations.revoke(target, seconds=60, by="me")
    assert await store.revocations.read() and await store.revocations.restore(target)
    await start_timers(store)
    await converse(store)
    await lose_owners(store)
    await runs.cancel(await create(store, "stopped"), by="me", reason=None, key=None, fingerprint="")


async def converse(store: Store) -> None:
    """A session whose runs wait for each other, until nothing of it is left, and one that no run comes into."""
    made = NewSession(session_id="queue", tenant="dev", initiator="me", policy="queue")
    await store.sessions.create(made)
    brief = msgspec.structs.replace(new_run().retention, deltas_ms=1, events_ms=1, run_ms=1)
    first = await start(store, "talker", session_id="queue", retention=brief)
    assert (await store.runs.load(await create(store, "talker", session_id="queue", retention=brief))).held
    await first.finish()
    await (await swept(store, "talker")).finish()
    name = store.keys.session_name("dev", "empty")
    await store.sessions.create(msgspec.structs.replace(made, session_id="empty"))
    await store.door.call("ZADD", store.keys.timers(name[4:6]), "XX", 1, f"vacate:{name} {store.keys.tenant_sessions(name[4:6], 'dev')}")


async def start_timers(store: Store) -> None:
    """A wait that ends by its limit, and a run that goes at once."""
    hand = await start(store, "sleeper")
    await store.work.park(hand.lease, wait_id="w", reason="sleep", timeout_ms=1, sleep=True)
    brief = msgspec.structs.replace(new_run().retention, deltas_ms=1, events_ms=1, run_ms=1)
    gone = await start(store, "brief", retention=brief)
    await gone.finish()
    hand = await swept(store, "sleeper")
    await hand.finish()


async def lose_owners(store: Store) -> None:
    """An owner that is lost twice (the second retry waits), and a queue entry that names no run."""
    hand = await start(store, "lost")
    tag = hand.run_id[4:6]
    await store.door.call("XADD", store.keys.queue(tag, "lost"), "*", "nonsense", "1")
    await swept(store, "lost", backoff_ms=1)
    await swept(store, "lost", backoff_ms=1)
    await (await swept(store, "lost", backoff_ms=1)).finish()


async def swept(store: Store, agent: str, *, backoff_ms: int = 0) -> Hand:
    """Sweep until a run of this agent can be claimed; its new owner."""

    async def owned() -> Hand | None:
        await store.sweep.once()
        for delivery in await store.work.take(agent, "hand"):
            got = await store.work.claim(delivery, consumer="hand", worker="hand", max_losses=9, backoff_ms=backoff_ms)
            if got is not None:
                return Hand(store, got)
        return None

    return await wait_until(owned, f"a run of {agent} to come back")


def undeclared(call: Call) -> list[str]:
    """What is wrong with one script call."""
    declared, found = set(call.declared), list[str]()
    for words in call.inner:
        command = words[0].upper().decode()
        key = words[2 if command in SUBCOMMANDS else 1] if command not in KEYLESS else None
        if key is not None and key not in declared:
            found.append(f"{command} {key.decode()} is not among {sorted(declared)}")
    if len({key.partition(b"{")[2].partition(b"}")[0] for key in declared}) != 1:
        found.append(f"more than one slot in {sorted(declared)}")
    return found


@pytest.mark.expects_errors("a poisoned entry is reported as one")
async def test_every_key_a_command_touches_is_declared(own_redis: OwnRedis, settings: Settings) -> None:
    """Every command of ``lua/`` runs while the server tells what it does; no script reaches for a key it was not given."""
    server = own_redis()
    settings = msgspec.structs.replace(settings, redis=server.url, lease=0.5, shards=2)
    with monitored(server.port) as feed:
        store = await Store.open(settings)
        assert await store.check_scripts() == ()
        await whole_life(store)
        for _ in range(3):
            await store.sweep.once()
        await store.sweep.readers.tidy(["support"], idle_ms=0)
        await store.sweep.idle.retire()
        feed.expect(b"that-was-all")
        await store.door.call("GET", "{00}that-was-all")
        feed.wait_for(b"that-was-all")
        await store.close()
    calls = [call for call in feed.calls if call.script]
    by_hash = {script.sha.encode(): name for name, script in load_scripts().items()}
    ran = {by_hash[call.script] for call in calls if call.script in by_hash and call.inner}
    assert [problem for call in calls for problem in undeclared(call)] == []
    assert sorted(set(load_scripts()) - ran) == [], "commands that were not exercised"


SOURCES = sorted(lua_folder().rglob("*.lua"))
_CALL = re.compile(r"redis\.call\('(\w+)'(?:,\s*'(?:CREATE|CONSUMERS|DELCONSUMER)')?(?:,\s*([^,)]+))?")


def header(source: str) -> dict[str, str]:
    """The executable lines of a source's header."""
    return dict(re.findall(r"^-- (keys|args):[ \t]*(.*)$", source, re.MULTILINE))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_source_builds_a_key(path: Path) -> None:
    """The key of every call is a declared name or an include's parameter: never text that was put together, never an argument."""
    source = path.read_text()
    keys = {name.rstrip("?.") for name in header(source).get("keys", "").split()}
    known = {f"k.{name}" for script in load_scripts().values() for name in script.keys}
    parameters = {p.strip() for group in re.findall(r"function \w+\(([^)]*)\)", source) for p in group.split(",")}
    loops = set(re.findall(r"for _, (\w+) in ipairs", source))
    for command, key in _CALL.findall(source):
        assert command in KEYLESS or key in keys | known | parameters | loops, f"{path.name}: {command} {key}"
    body = re.sub(r"^--.*$", "", source, flags=re.MULTILINE)
    for key in keys:
        assert re.search(rf"\b{key}\b", body), f"{path.name} declares {key} and never uses it"
