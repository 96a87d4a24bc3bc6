"""Runs as their clients see them: create, read, list, cancel, answer."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from ..core.cursor import LogBounds
from ..core.errors import IdempotencyKeyReused, InvalidRequest, RunNotFound, SessionBusy, StoreUnavailable, WaitNotOpen
from ..core.ids import digest, is_run_id, new_run_id, new_token, shard_for, shard_of
from ..core.payload import to_json
from ..core.run import NewRun, RunRecord, bounds
from ..core.snapshot import Snapshot
from .checkpoints import Checkpoints
from .door import Door, all_of
from .keys import Keys, idempotency_name
from .limits import Limits, Who
from .records import LISTED, CancelReply, Created, RunPage, new_fields, pairs, to_record
from .scripts import GROUP, Reply, load_scripts
from .turns import MOST_OPEN, Turns

_RESERVATION_MS: Final = 86_400_000
_SCAN: Final = 200
_TRIES: Final = 50
"""How often to look again which runs of a session go on, when others begin and end meanwhile."""


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A record and what its log can replay, read at one instant.

    Attributes:
        record: The record.
        bounds: What can be replayed.
        log_first: First sequence in the log, which has everything from there on; None when the log is gone.
    """

    record: RunRecord
    bounds: LogBounds
    log_first: int | None


class Runs:
    """The clients' side of the store."""

    def __init__(self, door: Door, keys: Keys, checkpoints: Checkpoints, turns: Turns, limits: Limits) -> None:
        """Bind to a store's parts."""
        self._limits = limits
        self._door = door
        self._keys = keys
        self._checkpoints = checkpoints
        self._turns = turns
        self._scripts = load_scripts()

    async def create(self, new: NewRun, *, key: str | None, fingerprint: str, limited: bool = False) -> Created:
        """Create a run, or find the one that this idempotency key named before.

        With a key it takes two steps, since a session's runs live in the session's shard and a key's record in the key's: the key first
        reserves a run id, then the run is created under it. A crash between them leaves nothing visible, and a retry goes on with the
        same id.

        Args:
            new: What to create; its JSON fields were checked at the edge.
            key: The caller's idempotency key.
            fingerprint: Digest of the request's body as parsed JSON.
            limited: Whether it counts against what its tenant and initiator may. One that is there already never does.

        Raises:
            IdempotencyKeyReused: The key was used with another body.
            TooManyRequests: It is one too many; nothing of it is kept, not even the key.
            InvalidRequest: `parent_run_id` is no run of this tenant.
            SessionBusy: A run of its session goes on, and the session's policy refuses another one, or too many are held.
            StoreUnavailable: Redis cannot be reached; nothing was created, or the same key returns the run.
        """
        name = None if key is None else idempotency_name(new.tenant, new.initiator, key)
        run_id = new_run_id(self._shard(new, name))
        if not limited or (name is not None and await self._is_there(name)):
            return await self._reserved(run_id, new, name, fingerprint)
        who, member = Who(new.tenant, new.initiator), name or run_id
        await self._limits.charge(who, new.agent, member)
        try:
            return await self._reserved(run_id, new, name, fingerprint)
        except (IdempotencyKeyReused, InvalidRequest, SessionBusy):
            # Nothing was created. Where the store is away nobody knows; then the count is put right when it matters.
            await self._limits.forget(who, member)
            raise

    async def _reserved(self, run_id: str, new: NewRun, name: str | None, fingerprint: str) -> Created:
        if name is not None:
            reply = await self._door.run(
                self._scripts["reserve"], {"idempotency": self._keys.idempotency(name)}, run_id, fingerprint, _RESERVATION_MS
            )
            if reply.word == "REUSED":
                raise IdempotencyKeyReused()
            run_id = reply.text(0)
        await self._check_parent(run_id, new)
        created = await self._create(run_id, new, name, fingerprint)
        record = await self.load(run_id)
        if record.held and record.session is not None:
            # The timer that was set with it would do it too, a little later, if this process died now or the store is away.
            with suppress(StoreUnavailable):
                await self._turns.advance(record.session)
        return Created(record=record, replayed=created.word == "EXISTS")

    async def _is_there(self, name: str) -> bool:
        """Whether an idempotency key names a run that exists."""
        held: Any = await self._door.call("GET", self._keys.idempotency(name))
        return held is not None and bool(await self._door.call("EXISTS", self._keys.run(held.decode().partition(" ")[0])))

    async def _check_parent(self, run_id: str, new: NewRun) -> None:
        if new.parent_run_id is None:
            return
        tenant = await self._door.call("HGET", self._keys.run(new.parent_run_id), "tenant") if is_run_id(new.parent_run_id) else None
        # A run that was made while its parent was there is found again when its parent has expired.
        if tenant != new.tenant.encode() and not await self._door.call("EXISTS", self._keys.run(run_id)):
            raise InvalidRequest("parent_run_id names no run of yours", field="parent_run_id")

    def _shard(self, new: NewRun, name: str | None) -> int:
        if new.session_id is not None:
            return int(shard_of(self._keys.session_name(new.tenant, new.session_id)))
        return shard_for(name or digest(new_token()), self._keys.shards)

    async def _create(self, run_id: str, new: NewRun, name: str | None, fingerprint: str) -> Reply:
        tag = shard_of(run_id)
        if new.resource_scope is None:
            new = msgspec.structs.replace(new, resource_scope=f"{new.tenant}/{run_id}")
        session = None if new.session_id is None else self._keys.session_name(new.tenant, new.session_id)
        keys = self._keys.of_run(run_id, new.agent, session)
        keys["tenant"] = self._keys.tenant_runs(tag, new.tenant)
        keys["sessions"] = None if session is None else self._keys.tenant_sessions(tag, new.tenant)
        about = {"agent": new.agent, "initiator": new.initiator, "session_id": new.session_id, "parent_run_id": new.parent_run_id}
        payload = to_json({k: v for k, v in about.items() if v is not None}, max_bytes=1 << 20, what="run.created")
        fields = new_fields(new, idempotency=None if name is None else self._keys.idempotency(name), fingerprint=fingerprint)
        nonce = new_token()
        for _ in range(_TRIES):
            reply = await self._door.run(self._scripts["create"], keys, run_id, GROUP, new.agent, nonce, payload, *fields)
            if reply.word in ("OK", "EXISTS") or session is None:
                return reply
            # What its policy does depends on runs that go on.
            active = [record.run_id for record in await self._turns.open(session)]
            if (reply.word == "BUSY" and active) or len(active) >= MOST_OPEN:
                raise SessionBusy(
                    f"{len(active)} of this session's runs go on; its policy takes no other one now", active=active[:10], retry_after=1.0
                )
            keys["others"] = [self._keys.run(other) for other in active]
        raise StoreUnavailable("the runs of this session begin and end too quickly", retry_after=1.0)

    async def load(self, run_id: str) -> RunRecord:
        """The record alone.

        Raises:
            RunNotFound: There is no such run, or the text is not a run id.
        """
        self._check(run_id)
        flat = await self._door.call("HGETALL", self._keys.run(run_id))
        if not flat:
            raise RunNotFound()
        return to_record(pairs(flat))

    async def read(self, run_id: str) -> Read:
        """The record and the bounds of its log, at one instant.

        Raises:
            RunNotFound: There is no such run, or the text is not a run id.
        """
        self._check(run_id)
        reply = await self._door.run(self._scripts["read"], self._keys.of_run(run_id), 0, 0)
        if reply.word == "GONE":
            raise RunNotFound()
        record = to_record(pairs(reply.values[0]))
        log_first = reply.integer(1) or None
        return Read(record=record, bounds=bounds(record, log_first=log_first, audit_first=reply.integer(2) or None), log_first=log_first)

    async def snapshot(self, run_id: str) -> Snapshot:
        """The fold of the run's events 1 … its latest sequence.

        Raises:
            RunNotFound: There is no such run, or the text is not a run id.
        """
        return await self._checkpoints.snapshot(run_id)

    async def page(
        self,
        tenant: str,
        *,
        state: str | None = None,
        session_id: str | None = None,
        agent: str | None = None,
        limit: int = 50,
        before: str | None = None,
        allowed: Callable[[RunRecord], Awaitable[bool]] | None = None,
        look_at: int | None = None,
    ) -> RunPage:
        """A tenant's runs, newest first, without their input and metadata.

        Args:
            tenant: Whose runs.
            state: Only runs in this state.
            session_id: Only runs of this session.
            agent: Only runs of this agent.
            limit: Most runs on the page.
            before: `next_before` of the page before; an id that is unknown by now starts from the top of nothing older: an empty page.
            allowed: Only runs of which this is true.
            look_at: About how many runs to look at for it. Where that was not enough the page is shorter, perhaps empty, and `next_before`
                is where to go on.
        """
        names = self._lists(tenant, session_id)
        below = None if before is None else await self._place(names, tenant, before, in_session=session_id is not None)
        if below is None and before is not None:
            return RunPage(runs=(), next_before=None)
        found: list[tuple[int, RunRecord]] = []
        looked = 0
        while len(found) <= limit:
            ids = await self._older(names, below)
            if not ids:
                return RunPage(runs=tuple(record for _, record in found[:limit]), next_before=None)
            below, looked = ids[-1], looked + len(ids)
            scores = {run_id: score for score, run_id in ids}
            records = [r for r in await self._records(list(scores)) if r.tenant == tenant and state in (None, r.state)]
            records = [r for r in records if agent in (None, r.agent)]
            while records and len(found) <= limit:
                some, records = records[: limit + 1], records[limit + 1 :]
                answers = [True] * len(some) if allowed is None else await all_of(allowed(record) for record in some)
                found += [(scores[r.run_id], r) for r, shown in zip(some, answers, strict=True) if shown]
            if look_at is not None and looked >= look_at and len(found) <= limit and ids[0][0] != below[0]:
                # Not at a run, which may be one that the reader must not learn of, but between two moments: those of the last one, of
                # which there may be more, come on the next page.
                runs = tuple(record for score, record in found if score > below[0])
                return RunPage(runs=runs, next_before=str(below[0]))
        return RunPage(runs=tuple(record for _, record in found[:limit]), next_before=found[limit - 1][1].run_id)

    async def _place(self, names: list[str], tenant: str, before: str, *, in_session: bool) -> tuple[int, str] | None:
        """Where a page begins: below a run, or at a moment."""
        if before.isdigit():
            return int(before) + 1, ""
        try:
            place = await self.load(before)
        except RunNotFound:
            return None
        if place.tenant != tenant:  # as if there were no such run: whether there is one is its tenant's secret
            return None
        if not in_session:
            return place.created_at, before
        score = await self._door.call("ZSCORE", names[0], before)
        return None if score is None else (int(float(score)), before)

    def _lists(self, tenant: str, session_id: str | None) -> list[str]:
        if session_id is None:
            return [self._keys.tenant_runs(tag, tenant) for tag in self._keys.tags]
        return [self._keys.session_runs(self._keys.session_name(tenant, session_id))]

    async def _older(self, names: list[str], below: tuple[int, str] | None) -> list[tuple[int, str]]:
        """The next up to `_SCAN` (creation time or place in the session, run id) below a place in the order, over all shards."""
        top = "+inf" if below is None else str(below[0])
        merged: list[tuple[int, str]] = []
        calls = (self._door.call("ZREVRANGEBYSCORE", name, top, "-inf", "WITHSCORES", "LIMIT", 0, _SCAN + 1) for name in names)
        for flat in await all_of(calls):
            merged += [(int(float(score)), member.decode()) for member, score in zip(flat[::2], flat[1::2], strict=True)]
        if below is not None:
            merged = [place for place in merged if place < below]
        return sorted(merged, reverse=True)[:_SCAN]

    async def _records(self, ids: list[str]) -> list[RunRecord]:
        replies: list[Any] = await all_of(self._door.call("HMGET", self._keys.run(i), *LISTED) for i in ids)
        named = ({name: value for name, value in zip(LISTED, values, strict=True) if value is not None} for values in replies)
        return [to_record(hash_) for hash_ in named if "run_id" in hash_]

    async def cancel(self, run_id: str, *, by: str, reason: str | None, key: str | None, fingerprint: str) -> CancelReply:
        """Record a request to stop; a run that no worker holds ends at once.

        Raises:
            RunNotFound: There is no such run.
            IdempotencyKeyReused: The key asked for a cancel with another body before.
        """
        record = await self.load(run_id)
        about = {"cancel_version": 1, "by": by} | ({} if reason is None else {"reason": reason})
        name = "" if key is None else idempotency_name(record.tenant, by, key)
        reply = await self._door.run(
            self._scripts["cancel"],
            self._keys.of_run(run_id, record.agent, record.session),
            run_id,
            GROUP,
            name,
            fingerprint,
            to_json(about, max_bytes=1 << 20, what="cancel"),
        )
        match reply.word:
            case "DONE":
                if record.session is not None:
                    with suppress(StoreUnavailable):
                        await self._turns.advance(record.session)
                return CancelReply(disposition=reply.text(0), sequence=reply.integer(1))
            case "PENDING":
                return CancelReply(disposition="cancellation_pending", sequence=reply.integer(1))
            case "TERMINAL":
                return CancelReply(disposition="already_terminal", sequence=reply.integer(1))
            case "REUSED":
                raise IdempotencyKeyReused()
            case _:
                raise RunNotFound()

    async def answer(self, run_id: str, *, wait_id: str, value: bytes, by: str, key: str | None, fingerprint: str) -> int:
        """Answer a waiting run, once; the sequence of `input.received`.

        Args:
            run_id: The run.
            wait_id: Which wait; see the snapshot's ``waiting``.
            value: JSON text, checked at the edge.
            by: Who answers.
            key: The caller's idempotency key: the same answer again is the same answer.
            fingerprint: Digest of the request's body.

        Raises:
            RunNotFound: There is no such run.
            WaitNotOpen: The run does not wait, or not for this, or was answered before.
            IdempotencyKeyReused: The key gave another answer before.
        """
        record = await self.load(run_id)
        name = "" if key is None else idempotency_name(record.tenant, by, key)
        input_id = f"input_{digest(run_id, wait_id, name or new_token())[:20]}"
        about = {"input_id": input_id, "wait_id": wait_id, "by": by, "value": msgspec.Raw(value)}
        reply = await self._door.run(
            self._scripts["signal"],
            self._keys.of_run(run_id, record.agent, record.session),
            run_id,
            record.agent,
            wait_id,
            f'"{input_id}"',
            name,
            fingerprint,
            msgspec.json.encode(about),
            value,
        )
        match reply.word:
            case "OK" | "SEEN":
                return reply.integer(0)
            case "REUSED":
                raise IdempotencyKeyReused()
            case "GONE":
                raise RunNotFound()
            case _:
                raise WaitNotOpen(f"the run is {record.state}; its open wait, if any, is in the snapshot's waiting.wait_id")

    @staticmethod
    def _check(run_id: str) -> None:
        if not is_run_id(run_id):
            raise RunNotFound()
