"""What a run does that comes into a session where another one goes on: by policy, decided once, whoever dies or comes at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from reattach.core.errors import SessionBusy
from reattach.core.run import RunRecord
from reattach.core.session import NewSession, Policy
from reattach.store import Store

from ..support.drive import Hand, claim, create, new_run, start
from ..support.waiting import wait_until
from .hands import lost, types


async def session(store: Store, policy: Policy) -> str:
    """A session with this policy; its name."""
    made, _ = await store.sessions.create(NewSession(session_id="talk", tenant="dev", initiator="developer", policy=policy))
    return made.name


async def add(store: Store, **facts: Any) -> RunRecord:
    """One more run of the session, as its record is a moment later."""
    return await store.runs.load(await create(store, session_id="talk", **facts))


async def swept(store: Store) -> None:
    """What the timers ask for now."""
    await store.sweep.once()


async def states(store: Store, *runs: RunRecord) -> list[tuple[str, bool]]:
    """State of each run, and whether it is held."""
    return [(record.state, record.held) for record in [await store.runs.load(run.run_id) for run in runs]]


async def nobody_takes(store: Store) -> None:
    """No run can be claimed now."""
    assert await store.work.take("support", "looker") == []


async def cancel(store: Store, run: RunRecord) -> str:
    """Ask a run to stop."""
    return (await store.runs.cancel(run.run_id, by="me", reason=None, key=None, fingerprint="")).disposition


async def test_parallel(store: Store) -> None:
    """Both can be claimed at once; it is what a session is that its first run made."""
    await session(store, "parallel")
    for _ in range(2):
        assert not (await add(store)).held
    for hand in [await claim(store) for _ in range(2)]:
        await hand.finish()


async def test_queue(store: Store) -> None:
    """One after the other, in the order in which they were created, also where they were created at the same moment."""
    await session(store, "queue")
    runs = [await add(store) for _ in range(4)]
    assert [run.held for run in runs] == [False, True, True, True]
    for n, run in enumerate(runs):
        hand = await claim(store)
        assert hand.run_id == run.run_id
        await nobody_takes(store)
        assert await states(store, *runs[n + 1 :]) == [("queued", True)] * (3 - n)
        await hand.finish()
        await swept(store)


async def test_reject(store: Store) -> None:
    """Refused with who goes on, and nothing is left of it; taken when that one ended."""
    await session(store, "reject")
    first = await add(store)
    with pytest.raises(SessionBusy) as refused:
        await add(store)
    assert refused.value.extra["active"] == [first.run_id] and len((await store.runs.page("dev")).runs) == 1
    await (await claim(store)).finish()
    assert not (await add(store)).held
    await (await claim(store)).finish()


async def test_replace(store: Store) -> None:
    """The one that goes on is asked to stop, and says by whom; the next starts when it really has."""
    await session(store, "replace")
    hand = await start(store, session_id="talk")
    second = await add(store, initiator="ben")
    assert second.held and (await hand.renew()).cancel_version == 1
    snapshot = await store.runs.snapshot(hand.run_id)
    assert (snapshot.cancel.by, snapshot.cancel.reason) == ("ben", f"replaced by {second.run_id}")
    await nobody_takes(store)
    await hand.finish("cancelled")
    await swept(store)
    following = await claim(store)
    assert following.run_id == second.run_id
    await following.finish()


async def test_replace_what_no_worker_has(store: Store) -> None:
    """It ends at once, and the next one starts within the same request; held ones in between never start."""
    await session(store, "replace")
    first, second = await add(store), await add(store)
    assert await states(store, first, second) == [("cancelled", False), ("queued", False)]
    hand = await claim(store)
    third, fourth = await add(store), await add(store)
    assert hand.run_id == second.run_id and await states(store, third, fourth) == [("cancelled", True), ("queued", True)]
    await hand.finish("cancelled")
    await swept(store)
    assert await states(store, fourth) == [("queued", False)]
    assert "run.started" not in await types(store, third.run_id)
    await (await claim(store)).finish()


async def test_a_held_run_is_cancelled(store: Store) -> None:
    """At once, before any effect; those behind it keep their place, and the one before it does not notice."""
    await session(store, "queue")
    hand = await start(store, session_id="talk")
    second, third = await add(store), await add(store)
    assert await cancel(store, second) == "cancelled_before_effect"
    await swept(store)
    assert await states(store, second, third) == [("cancelled", True), ("queued", True)]
    await hand.finish()
    await swept(store)
    last = await claim(store)
    assert last.run_id == third.run_id
    await last.finish()


async def test_the_one_before_is_cancelled_by_a_client(store: Store) -> None:
    """The next one starts with that very request."""
    await session(store, "queue")
    first, second = await add(store), await add(store)
    assert await cancel(store, first) == "cancelled_before_effect"
    assert await states(store, second) == [("queued", False)]
    await (await claim(store)).finish()


async def test_a_lost_worker_keeps_the_turn(store: Store) -> None:
    """Its run goes on elsewhere, and is still the one that goes on; so is one that waits for an answer."""
    await session(store, "queue")
    hand = await start(store, session_id="talk")
    second = await add(store)
    await lost(store, hand)
    assert await states(store, second) == [("queued", True)]
    again = await claim(store)
    assert again.run_id == hand.run_id
    await store.work.park(again.lease, wait_id="w", reason="approval", timeout_ms=None)
    await swept(store)
    assert await states(store, second) == [("queued", True)]
    await store.runs.answer(again.run_id, wait_id="w", value=b"1", by="me", key=None, fingerprint="")
    await (await claim(store)).finish()
    await swept(store)
    await (await claim(store)).finish()


@pytest.mark.parametrize("policy", ["queue", "replace"])
async def test_a_key_finds_its_held_run(store: Store, policy: Policy) -> None:
    """The same request again is the same run, with the same place, however often it is sent."""
    await session(store, policy)
    hand = await start(store, session_id="talk")
    again = [await store.runs.create(new_run(session_id="talk"), key="k", fingerprint="f") for _ in range(3)]
    assert len({made.record.run_id for made in again}) == 1 and [made.replayed for made in again] == [False, True, True]
    assert len((await store.sessions.find("dev", "talk")).open) == 2
    await hand.finish("cancelled" if policy == "replace" else "succeeded")
    await swept(store)
    await (await claim(store)).finish()


@pytest.mark.parametrize("policy", ["queue", "reject", "replace"])
async def test_many_at_the_same_moment(store: Store, policy: Policy) -> None:
    """From two processes at once: never two of them go on, and none is lost."""
    await session(store, policy)
    other = await Store.open(store.settings)
    made = ((store, other)[n % 2].runs.create(new_run(session_id="talk"), key=None, fingerprint="") for n in range(16))
    answers = await asyncio.gather(*made, return_exceptions=True)
    await other.close()
    refused = [answer for answer in answers if isinstance(answer, SessionBusy)]
    assert len(refused) == (15 if policy == "reject" else 0)
    assert not [answer for answer in answers if isinstance(answer, BaseException) and not isinstance(answer, SessionBusy)]
    worked = 0
    while (await store.sessions.find("dev", "talk")).open:
        await swept(store)
        hand = await claim(store)
        await nobody_takes(store)
        await hand.finish("succeeded")
        worked += 1
    runs = (await store.runs.page("dev", session_id="talk", limit=100)).runs
    assert len(runs) == 16 - len(refused) and all(run.terminal for run in runs)
    assert worked == {"queue": 16, "reject": 1, "replace": sum(run.state == "succeeded" for run in runs)}[policy]
    assert max(runs, key=lambda run: run.created_at).terminal


class Dying:
    """A process that stops at its n-th command: before the server hears of it, or after it was carried out."""

    def __init__(self, store: Store, last: int, carried_out: bool) -> None:
        self._left, self._carried_out = last, carried_out
        self._send: Callable[..., Any] = store.door._submit  # pyright: ignore[reportPrivateUsage]
        store.door._submit = self._submit  # pyright: ignore[reportPrivateUsage]

    @property
    def died(self) -> bool:
        """Whether it came so far."""
        return self._left < 0

    def _submit(self, command: tuple[Any, ...]) -> Any:
        self._left -= 1
        return self._send(command) if self._left >= 0 else self._die(command)

    async def _die(self, command: tuple[Any, ...]) -> Any:
        if self._carried_out and self._left == -1:
            await self._send(command)
        raise Died


class Died(BaseException):
    """The process is gone: nothing in it goes on, whatever it catches."""


@pytest.mark.parametrize("policy", ["queue", "replace"])
@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_process_dies_at_every_command(store: Store, policy: Policy, carried_out: bool) -> None:
    """Of creating a run that has to wait, and of ending the one before it: whoever sweeps next, and a client that asks again, mend it."""
    for last in range(60):
        name = f"talk-{last}"
        await store.sessions.create(NewSession(session_id=name, tenant="dev", initiator="developer", policy=policy))
        hand = await start(store, session_id=name)
        died = await _dies(store, last, carried_out, lambda mortal, n=name: _ask(mortal, n))
        second = await _ask(store, name)
        await swept(store)
        if policy == "replace":
            assert (await hand.renew()).cancel_version == 1
        await hand.finish("cancelled" if policy == "replace" else "succeeded")
        died = await _dies(store, last, carried_out, lambda mortal: mortal.sweep.once()) or died
        await wait_until(lambda run=second: _let_go(store, run), "the held run to be let go")
        following = await claim(store)
        assert following.run_id == second.run_id and len((await store.sessions.find("dev", name)).open) == 1
        await following.finish()
        if not died:
            assert last > 6, "it is meant to die at several commands"
            return
    raise AssertionError("it never came to the end")


async def _ask(store: Store, session_id: str) -> RunRecord:
    return (await store.runs.create(new_run(session_id=session_id), key=session_id, fingerprint="f")).record


async def _let_go(store: Store, run: RunRecord) -> bool:
    await swept(store)
    return not (await store.runs.load(run.run_id)).held


async def _dies(store: Store, last: int, carried_out: bool, act: Callable[[Store], Awaitable[Any]]) -> bool:
    mortal = await Store.open(store.settings)
    dying = Dying(mortal, last, carried_out)
    with suppress(Died):
        await act(mortal)
    await mortal.close()
    return dying.died


async def test_a_record_that_was_deleted_from_outside_holds_nobody_back(store: Store) -> None:
    """What is open is asked of the runs themselves; a list that names one that is gone is mended by whoever reads it."""
    name = await session(store, "reject")
    await store.door.call("ZADD", store.keys.session_open(name), 1, "run_00" + "z" * 24)
    run = await add(store)
    assert not run.held and (await store.sessions.find("dev", "talk")).open == (run.run_id,)
    await (await claim(store)).finish()


async def test_only_so_many_may_be_held(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's queue has an end: beyond it a run is refused, typed."""
    monkeypatch.setattr("reattach.store.runs.MOST_OPEN", 3)
    await session(store, "queue")
    hands: list[Hand] = [await start(store, session_id="talk")]
    for _ in range(2):
        assert (await add(store)).held
    with pytest.raises(SessionBusy):
        await add(store)
    await hands[0].finish()
    await swept(store)
    assert (await add(store)).held
