"""Sessions in the store: what makes one, what it knows, and how it ends."""

import asyncio

import msgspec
import pytest

from reattach.core.errors import IdempotencyKeyReused, SessionExists, SessionNotFound
from reattach.core.ids import is_session_name, session_name
from reattach.core.run import Retention
from reattach.core.session import NewSession
from reattach.store import Store

from ..support.drive import claim, create, start
from ..support.waiting import wait_until

BRIEF = Retention(deltas_ms=100, events_ms=200, run_ms=300)
TALK = NewSession(session_id="talk", tenant="dev", initiator="developer")


async def keys(store: Store) -> dict[str, int]:
    """What is left of sessions, with the time it has left in milliseconds."""
    found: list[bytes] = await store.door.call("KEYS", f"{store.settings.prefix}:*session*")
    return {key.decode().partition("}:")[2]: int(await store.door.call("PTTL", key)) for key in found}


def test_names() -> None:
    """Of one shape, for any text, different for different sessions and tenants, and in the shard they say."""
    texts = ["", "a", "b", "{", "a}:{b", "ключ", "x" * 128]
    names = {session_name(tenant, text, 16) for tenant in ("t", "u") for text in texts}
    assert len(names) == 2 * len(texts) and all(is_session_name(name) and int(name[4:6]) < 16 for name in names)
    assert session_name("ab", "c", 16) != session_name("a", "bc", 16)
    for wrong in ("ses_", "run_" + "0" * 26, "ses_0u" + "0" * 24, "ses_00" + "0" * 25, "ses_00" + "i" * 24):
        assert not is_session_name(wrong)


async def test_the_first_run_makes_it(store: Store) -> None:
    """With who started it; others only add to it. A session nobody made is not there."""
    with pytest.raises(SessionNotFound):
        await store.sessions.find("dev", "talk")
    first = await create(store, session_id="talk", initiator="ann")
    second = await create(store, session_id="talk", initiator="ben")
    record = await store.sessions.find("dev", "talk")
    assert (record.initiator, record.policy, record.sequence, record.earliest_sequence) == ("ann", "parallel", 2, 1)
    assert record.open == (first, second)
    assert record.last_activity_at == (await store.runs.load(second)).created_at
    with pytest.raises(SessionNotFound):
        await store.sessions.find("elsewhere", "talk")


async def test_made_by_name(store: Store) -> None:
    """Once, whoever asks how often; a run that was there first has decided for parallel."""
    made = [await store.sessions.create(TALK) for _ in range(2)]
    assert [known for _, known in made] == [False, True] and made[0][0] == made[1][0]
    for other in ({"policy": "queue"}, {"initiator": "ben"}, {"metadata": b'{"a":1}'}):
        with pytest.raises(SessionExists):
            await store.sessions.create(msgspec.structs.replace(TALK, **other))
    await create(store, session_id="other")
    with pytest.raises(SessionExists):
        await store.sessions.create(msgspec.structs.replace(TALK, session_id="other", policy="reject"))
    assert (await store.sessions.create(msgspec.structs.replace(TALK, session_id="other")))[1]


async def test_made_at_once_by_many(store: Store) -> None:
    """Exactly one of them makes it, and a run that comes at the same time is in it."""
    queue = msgspec.structs.replace(TALK, policy="queue")
    made = await asyncio.gather(*(store.sessions.create(queue) for _ in range(10)))
    assert sorted(known for _, known in made) == [False, *[True] * 9]
    with pytest.raises(IdempotencyKeyReused):
        await store.sessions.create(queue, key="k", fingerprint="a")
        await store.sessions.create(queue, key="k", fingerprint="b")


async def test_it_goes_with_its_last_run(store: Store) -> None:
    """As long as one of its runs is kept it is; then nothing is left but the place where one of the same name would go on."""
    for _ in range(2):
        await create(store, session_id="talk", retention=BRIEF)
    hands = [await claim(store) for _ in range(2)]
    await hands[0].finish()
    await wait_until(lambda: _forgotten(store, hands[0].run_id), "the first run to go")
    assert (await store.sessions.find("dev", "talk")).open == (hands[1].run_id,)
    await hands[1].emit_many(3)
    await hands[1].finish()
    await wait_until(lambda: _forgotten(store, hands[1].run_id), "the second run to go")
    with pytest.raises(SessionNotFound):
        await store.sessions.find("dev", "talk")
    assert (await store.sessions.page("dev"))[0] == []
    name = store.keys.session_name("dev", "talk")
    [(key, ttl)] = (await keys(store)).items()
    assert key == f"session:{name}" and 0 < ttl <= 30 * 86_400_000


async def _forgotten(store: Store, run_id: str) -> bool:
    await store.sweep.once()
    timers = [await store.door.call("ZRANGE", store.keys.timers(tag), 0, -1) for tag in store.keys.tags]
    return not any(run_id.encode() in member for members in timers for member in members)


async def test_one_of_the_same_name_goes_on_behind_it(store: Store) -> None:
    """No cursor into a session that is gone can be taken for one into the next: it is expired there, not silently short."""
    hand = await start(store, session_id="talk", retention=BRIEF)
    await hand.finish()
    await wait_until(lambda: _forgotten(store, hand.run_id), "the run to go")
    await create(store, session_id="talk")
    record = await store.sessions.find("dev", "talk")
    assert (record.sequence, record.earliest_sequence) == (4, 4)
    batch = await store.session_log.after(record.name, 3, 10)
    assert [(placed.place, placed.event.type) for placed in batch.events] == [(4, "run.created")]
    assert (await keys(store))[f"session:{record.name}"] == -1


async def test_forgetting_twice_spares_the_next_one(store: Store) -> None:
    """A sweeper that was held up, and says again that a run is gone, meets a new session of the same name: it stays."""
    hand = await start(store, session_id="talk", retention=BRIEF)
    tag = hand.run_id[4:6]
    await hand.finish()
    members = await store.door.call("ZRANGE", store.keys.timers(tag), 0, -1)
    forget = next(member for member in members if member.startswith(b"forget:"))
    await wait_until(lambda: _forgotten(store, hand.run_id), "the run to go")
    await store.sessions.create(TALK)
    await store.door.call("ZADD", store.keys.timers(tag), 1, forget)
    await store.sweep.once()
    assert (await store.sessions.find("dev", "talk")).initiator == "developer"


async def test_one_that_no_run_comes_into(store: Store) -> None:
    """It is kept as long as a run would be, and one that a run came into is not touched then."""
    for name in ("empty", "used"):
        await store.sessions.create(msgspec.structs.replace(TALK, session_id=name))
    await create(store, session_id="used")
    for name in ("empty", "used"):
        assert await _make_due(store, name) == 1
    await store.sweep.once()
    record = await store.sessions.find("dev", "empty")
    assert record.sequence == 0, "its time is not over, whatever the timer says"
    await store.door.call("HSET", store.keys.session(record.name), "created_at", 1)
    await _make_due(store, "empty")
    await store.sweep.once()
    with pytest.raises(SessionNotFound):
        await store.sessions.find("dev", "empty")
    assert [found.session_id for found in (await store.sessions.page("dev"))[0]] == ["used"]


async def _make_due(store: Store, session_id: str) -> int:
    """Let the timer that looks after a session without runs be due; 1 if it is set."""
    name = store.keys.session_name("dev", session_id)
    timer = f"vacate:{name} {store.keys.tenant_sessions(name[4:6], 'dev')}"
    return await store.door.call("ZADD", store.keys.timers(name[4:6]), "XX", "CH", 1, timer)


async def test_its_runs_in_order(store: Store) -> None:
    """By where they began, however many begin in one millisecond."""
    made = [await create(store, session_id="talk") for _ in range(12)]
    seen: list[str] = []
    before = None
    while True:
        page = await store.runs.page("dev", session_id="talk", limit=5, before=before)
        seen += [record.run_id for record in page.runs]
        before = page.next_before
        if before is None:
            break
    assert seen == made[::-1]


async def test_a_run_without_a_session_pays_nothing(store: Store) -> None:
    """Neither a key nor an entry more."""
    hand = await start(store)
    await hand.emit_many(2)
    await hand.finish()
    assert await keys(store) == {}
    bell = await store.door.call("XRANGE", store.keys.bell(hand.run_id[4:6]), "-", "+")
    assert {tuple(fields[::2]) for _, fields in bell} == {(b"run",)}
