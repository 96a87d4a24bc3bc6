"""The workers' side of the store: take, claim, renew, append, intend, commit, park, finish, release.

Every call is idempotent: the worker's fence and its own numbers make a repeat recognisable, so a lost reply doubles and loses nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
import structlog

from ..core.errors import BatchGap, EffectUnresolved, InvalidRequest, LeaseLost, Nondeterminism, RunClosed
from ..core.event import TOOL_COMPLETED, TOOL_FAILED, TOOL_UNRESOLVED, Draft
from ..core.ids import is_run_id, new_token, shard_of
from ..core.payload import to_json
from ..core.receipt import Effect, EffectCall, decode_effect
from ..core.settings import Settings
from .door import Door
from .keys import KeyNames, Keys
from .leases import Appended, Claim, Delivery, Finished, Intended, Lease, Parked, Renewal
from .queues import Queue, Queues
from .records import pairs, to_record
from .room import Room
from .scripts import GROUP, Reply, load_scripts

_log = structlog.get_logger("reattach.work")
_ID: Final = re.compile(r"[A-Za-z0-9_.:#/@-]{1,128}")
_LARGEST: Final = 1 << 26
_COMMITTED: Final = {"receipt": TOOL_COMPLETED, "failed": TOOL_FAILED, "unresolved": TOOL_UNRESOLVED}
_KINDS: Final[dict[str, Literal["receipt", "failed", "unresolved"]]] = {
    "RECEIPT": "receipt",
    "FAILED": "failed",
    "UNRESOLVED": "unresolved",
}


class Work:
    """What a worker can do with runs."""

    def __init__(self, door: Door, keys: Keys, settings: Settings) -> None:
        """Bind to a door, a set of key names, and the lease time."""
        self._door = door
        self._keys = keys
        self._lease_ms = int(settings.lease * 1000)
        self._room = Room(settings)
        self._scripts = load_scripts()
        self._queues = Queues(door, keys)
        self._turn = 0
        self.ended: Callable[[], object] = lambda: None  # told when a run of a session ended here: another one may wait for that
        self._names = lru_cache(maxsize=1024)(keys.of_run)  # the same few leases over and over, and a dozen names each

    @property
    def shards(self) -> tuple[str, ...]:
        """Every shard an agent may have work in."""
        return self._keys.tags

    async def filled(self, agents: Iterable[str]) -> list[Queue]:
        """Agents and shards whose queues hold something, so that `take` may find work there; one command however many there are.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        return await self._queues.filled(agents)

    async def take(self, agent: str, consumer: str, *, limit: int = 1, shard: str | None = None) -> list[Delivery]:
        """Entries of this agent's queues that nobody has, without waiting.

        An entry whose reply is lost on the way here stays in the pending list and is returned to the queue by a sweep.

        Args:
            agent: Whose queues.
            consumer: The reader's name in the consumer groups.
            limit: Most entries.
            shard: Ask this one only; otherwise all, beginning with another one each time.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        found: list[Delivery] = []
        tags = self._keys.tags
        self._turn += 1
        for tag in (shard,) if shard is not None else (tags[(self._turn + i) % len(tags)] for i in range(len(tags))):
            found += await self._take(tag, agent, consumer, limit - len(found))
            if len(found) >= limit:
                break
        return found

    async def _take(self, tag: str, agent: str, consumer: str, count: int) -> list[Delivery]:
        queue = self._keys.queue(tag, agent)
        try:
            reply = await self._door.once("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", queue, ">")
        except Exception as e:
            if "NOGROUP" in str(e):
                return []
            raise
        found: list[Delivery] = []
        for _, entries in reply or ():
            for entry, fields in entries:
                named = pairs(fields or [])
                run_id = named.get("run", b"").decode("utf-8", "replace")
                if not is_run_id(run_id) or shard_of(run_id) != tag:
                    await self._set_aside(tag, agent, entry)
                    continue
                found.append(Delivery(run_id=run_id, agent=agent, shard=tag, entry=entry.decode()))
        return found

    async def _set_aside(self, tag: str, agent: str, entry: bytes) -> None:
        keys = {"queue": self._keys.queue(tag, agent), "poison": self._keys.poison(tag, agent)}
        await self._door.run(self._scripts["setaside"], keys, GROUP, entry)
        _log.error("queue.entry_set_aside", agent=agent, shard=tag, entry=entry.decode(), kept_in=keys["poison"])

    async def claim(
        self, d: Delivery, *, consumer: str, worker: str, max_losses: int, backoff_ms: int, fence: str | None = None
    ) -> Claim | None:
        """Become the owner of a delivered run; None when it has ended, was cancelled, or belongs to another entry or owner by now.

        Args:
            d: From `take`.
            consumer: The name `take` was called with.
            worker: Name for people, in `run.started`.
            max_losses: Owners that may be lost before the run fails with ``worker_lost``.
            backoff_ms: Pause before the second retry; it doubles from then on.
            fence: From `core.ids.new_token`, never used before for this entry but to ask again for the same claim; else a new one.

        Raises:
            StoreUnavailable: Redis cannot be reached; the entry comes back by a sweep.
        """
        fence = fence or new_token()
        name = to_json(worker, max_bytes=1024, what="worker", want_object=False)
        args = (d.run_id, GROUP, d.entry, consumer, fence, self._lease_ms, name, max_losses, backoff_ms)
        reply = await self._door.run(self._scripts["claim"], self._keys.of_run(d.run_id, d.agent), *args)
        session = reply.text(0) if reply.word == "SESSION" else None
        if session is not None:
            reply = await self._door.run(self._scripts["claim"], self._keys.of_run(d.run_id, d.agent, session), *args)
        if reply.word != "OK":
            return None
        lease = Lease(
            run_id=d.run_id, agent=d.agent, fence=fence, entry=d.entry, consumer=consumer, attempt=reply.integer(0), session=session
        )
        stored_run = pairs(await self._door.call("HGETALL", self._keys.run(d.run_id)))
        effects: dict[str, Effect] = {}
        answers: dict[str, bytes] = {}
        for field, value in pairs(await self._door.call("HGETALL", self._keys.effects(d.run_id))).items():
            status, _, _, stored = value.split(b" ", 3)
            if field.startswith("wait:"):
                if status == b"answered":
                    answers[field[5:]] = stored
            else:
                effects[field] = _effect(status, stored)
        resumed = stored_run.get("resumed") == b"1"
        return Claim(lease=lease, record=to_record(stored_run), effects=effects, answers=answers, resumed=resumed)

    async def renew(self, lease: Lease) -> Renewal:
        """Prolong a lease by the lease time from now, on the server's clock.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run has ended.
            StoreUnavailable: Redis cannot be reached.
        """
        reply = await self._door.run(
            self._scripts["renew"], self._of(lease), lease.run_id, GROUP, lease.entry, lease.consumer, lease.fence, self._lease_ms
        )
        self._owned(reply)
        return Renewal(cancel_version=reply.integer(0))

    async def append(self, lease: Lease, batch: int, drafts: Sequence[Draft]) -> Appended:
        """Append events as one batch, all or none.

        Args:
            lease: The acquisition to write under.
            batch: 1, 2, 3 … within the lease. A repeat of the last number answers as the first time and writes nothing.
            drafts: The events; their types were checked by `core.event.check_type`.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run has ended.
            BatchGap: An earlier number is missing.
            PayloadTooLarge: The run has appended as much as one may.
            TooManyRequests: It has in this minute; send the same batch again later.
            StoreUnavailable: Redis cannot be reached; send the same batch again.
        """
        flat = [part for draft in drafts for part in (draft.type, draft.payload, draft.scope or "")]
        limits = (*self._room.whole, *self._room.by_minute)
        reply = await self._door.run(self._scripts["append"], self._of(lease), lease.run_id, lease.fence, batch, *limits, *flat)
        self._room.check(reply)
        if reply.word == "GAP":
            raise BatchGap(f"batch {reply.integer(0)} has to come before batch {batch}", expected=reply.integer(0))
        self._owned(reply)
        return Appended(sequence=reply.integer(0), cancel_version=reply.integer(1))

    async def intend(self, lease: Lease, call: EffectCall, *, again: bool = False) -> Intended:
        """Ask the gate before a tool runs: one command checks lease, cancel request and earlier tries, and records `tool.requested`.

        Args:
            lease: The acquisition to act under.
            call: The tool call.
            again: Run it although an earlier owner may have run it: the caller's policy says so, or the tool only reads.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run has ended.
            Nondeterminism: This call id was used for another tool.
            InvalidRequest: The call id is outside its alphabet.
            PayloadTooLarge: The run has appended as much as one may.
            StoreUnavailable: Redis cannot be reached; ask again.
        """
        self._check_id(call.call_id, "call_id")
        about: dict[str, Any] = {"tool_call_id": call.call_id, "tool": call.tool}
        unresolved = to_json(about | {"why": "worker_lost"}, max_bytes=_LARGEST, what="tool")
        # Joined, not encoded again: arguments that came from another language keep their numbers as they were written.
        requested = msgspec.json.encode(about | {"arguments": msgspec.Raw(call.arguments)})
        record = Effect(call_id=call.call_id, tool=call.tool, arguments=call.arguments, status="intent", mutating=call.mutating)
        reply = await self._door.run(
            self._scripts["intend"],
            self._of(lease),
            lease.run_id,
            lease.fence,
            call.call_id,
            int(again),
            *self._room.whole,
            requested,
            unresolved,
            record.encode(),
        )
        self._room.check(reply)
        match reply.word:
            case "GO":
                return Intended(kind="go", effect=None, sequence=reply.integer(0))
            case "CANCELLED":
                return Intended(kind="cancelled", effect=None, sequence=0)
            case "RECEIPT" | "FAILED" | "UNRESOLVED":
                # Of an unresolved call: which tool.unresolved event it is about.
                sequence = reply.integer(1) if reply.word == "UNRESOLVED" else 0
                effect = _effect(_KINDS[reply.word].encode(), reply.values[0])
                if effect.tool != call.tool:
                    raise Nondeterminism(f"call id {call.call_id} was {effect.tool} in an earlier attempt, now it is {call.tool}")
                return Intended(kind=_KINDS[reply.word], effect=effect, sequence=sequence)
            case _:
                self._owned(reply)
                raise AssertionError("unreachable")

    async def effect(self, run_id: str, call_id: str) -> Effect | None:
        """What is recorded of a tool call; None when nothing is.

        Raises:
            InvalidRequest: The call id is outside its alphabet.
            StoreUnavailable: Redis cannot be reached.
        """
        self._check_id(call_id, "call_id")
        stored = await self._door.call("HGET", self._keys.effects(run_id), call_id)
        if stored is None:
            return None
        status, _, _, record = stored.split(b" ", 3)
        return _effect(status, record)

    async def commit(self, lease: Lease, effect: Effect, *, why: str | None = None) -> Appended:
        """Record what became of a tool call: status ``receipt``, ``failed``, or ``unresolved`` where its owner itself cannot tell.

        A cancel request does not stop it.

        Args:
            lease: The acquisition to write under.
            effect: The call and what became of it.
            why: Why nobody can tell, e.g. ``timeout``; for ``unresolved``.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run. The effect is then unresolved for the next attempt.
            RunClosed: The run has ended.
            EffectUnresolved: No intention is recorded for this call id.
            StoreUnavailable: Redis cannot be reached; commit again.
        """
        about: dict[str, Any] = {"tool_call_id": effect.call_id, "tool": effect.tool}
        for name in ("receipt_id", "result_version"):
            if getattr(effect, name) is not None:
                about[name] = getattr(effect, name)
        for name in ("result", "error"):
            if getattr(effect, name) is not None:
                about[name] = msgspec.Raw(getattr(effect, name))
        if why is not None:
            about["why"] = why
        reply = await self._door.run(
            self._scripts["commit"],
            self._of(lease),
            lease.run_id,
            lease.fence,
            effect.call_id,
            effect.status,
            _COMMITTED[effect.status],
            msgspec.json.encode(about),
            effect.encode(),
            int(effect.mutating),
        )
        if reply.word == "MISSING":
            raise EffectUnresolved(f"tool call {effect.call_id} has no recorded intention")
        self._owned(reply)
        return Appended(sequence=reply.integer(0), cancel_version=reply.integer(1))

    async def park(
        self, lease: Lease, *, wait_id: str, reason: str, prompt: str | None = None, timeout_ms: int | None, sleep: bool = False
    ) -> Parked:
        """Give the run up until it is answered or its time comes.

        Args:
            lease: The acquisition to act under.
            wait_id: Name of the wait, the same in every attempt.
            reason: Why it waits, for people and forms.
            prompt: What to ask a person.
            timeout_ms: The limit, counted from now on the server's clock; None for no limit.
            sleep: The limit is the purpose: the run goes on then, instead of failing with ``wait_expired``.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run has ended.
            InvalidRequest: The wait id is outside its alphabet.
            StoreUnavailable: Redis cannot be reached; park again.
        """
        self._check_id(wait_id, "wait_id")
        about: dict[str, Any] = {"wait_id": wait_id, "reason": reason}
        if prompt is not None:
            about["prompt"] = prompt
        payload = to_json(about, max_bytes=_LARGEST, what="wait")
        reply = await self._door.run(
            self._scripts["park"],
            self._of(lease),
            lease.run_id,
            GROUP,
            lease.fence,
            wait_id,
            "resume" if sleep else "fail",
            timeout_ms or 0,
            payload,
        )
        match reply.word:
            case "PARKED":
                return Parked(kind="parked")
            case "ANSWERED":
                return Parked(kind="answered", value=reply.values[0])
            case "CANCELLED":
                return Parked(kind="cancelled")
            case _:
                self._owned(reply)
                raise AssertionError("unreachable")

    async def finish(self, lease: Lease, *, state: str, outcome: bytes | None = None, error: bytes | None = None) -> Finished:
        """End the run. The first terminal writer wins.

        Args:
            lease: The acquisition to act under.
            state: ``succeeded``, ``failed``, or ``cancelled`` where a cancel was requested (its disposition follows from the receipts).
            outcome: JSON text of the result, for ``succeeded``.
            error: JSON object text with code and message, for ``failed``.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run is not running, or no cancel was requested.
            StoreUnavailable: Redis cannot be reached; finish again.
        """
        payload = b'{"outcome":%b}' % (outcome or b"null") if state == "succeeded" else b'{"error":%b}' % (error or b"null")
        reply = await self._door.run(self._scripts["finish"], self._of(lease), lease.run_id, GROUP, lease.fence, state, payload)
        self._owned(reply)
        if lease.session is not None:
            self.ended()
        return Finished(state=reply.text(0), disposition=reply.text(1) or None, sequence=reply.integer(2))

    async def release(self, lease: Lease, *, cause: str) -> None:
        """Give the run back so that another worker goes on at once; it does not count as a loss.

        Raises:
            LeaseLost: Another owner, or nobody, holds the run.
            RunClosed: The run has ended.
            StoreUnavailable: Redis cannot be reached; release again.
        """
        name = to_json(cause, max_bytes=1024, what="cause", want_object=False)
        reply = await self._door.run(self._scripts["release"], self._of(lease), lease.run_id, GROUP, lease.agent, lease.fence, name)
        self._owned(reply)

    def _of(self, lease: Lease) -> Mapping[str, KeyNames]:
        return self._names(lease.run_id, lease.agent, lease.session)

    @staticmethod
    def _owned(reply: Reply) -> None:
        if reply.word == "FENCED":
            raise LeaseLost()
        if reply.word == "CLOSED":
            raise RunClosed(f"the run is {reply.text(0)}", state=reply.text(0))

    @staticmethod
    def _check_id(text: str, what: str) -> None:
        if _ID.fullmatch(text) is None or text.startswith("wait:"):
            raise InvalidRequest(f"{what} is 1 to 128 characters of A-Z a-z 0-9 _ . : # / @ - and does not begin with wait:", field=what)


def _effect(status: bytes, record: bytes) -> Effect:
    """An effect as it stands: the word before its record is newer than the record, which a script cannot rewrite."""
    return msgspec.structs.replace(decode_effect(record), status=status.decode())
