"""Runs as their clients see them: create, read, list, cancel, answer."""

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
from .records import CancelReply, Created, RunPage, new_fields, pairs, to_record
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
    ) -> RunPage:
        """A tenant's runs, newest first.

        Args:
            tenant: Whose runs.
            state: Only runs in this state.
            session_id: Only runs of this session.
            agent: Only runs of this agent.
            limit: Most runs on the page.
            before: The last run id of the page before; an id that is unknown by now starts from the top of nothing older: an empty page.
        """
        names = self._lists(tenant, session_id)
        below: tuple[int, str] | None = None
        if before is not None:
            try:
                place = await self.load(before)
            except RunNotFound:
                return RunPage(runs=(), next_before=None)
            if place.tenant != tenant:  # as if there were no such run: whether there is one is its tenant's secret
                return RunPage(runs=(), next_before=None)
            below = place.created_at, before
            if session_id is not None:
                score = await self._door.call("ZSCORE", names[0], before)
                if score is None:
                    return RunPage(runs=(), next_before=None)
                below = int(float(score)), before
        found: list[RunRecord] = []
        while len(found) <= limit:
            ids = await self._older(names, below)
            if not ids:
                return RunPage(runs=tuple(found[:limit]), next_before=None)
            below = ids[-1]
            for record in await self._records([run_id for _, run_id in ids]):
                if record.tenant == tenant and state in (None, record.state) and agent in (None, record.agent):
                    found.append(record)
        return RunPage(runs=tuple(found[:limit]), next_before=found[limit - 1].run_id)

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
        replies: list[Any] = await all_of(self._door.call("HGETALL", self._keys.run(i)) for i in ids)
        return [to_record(pairs(flat)) for flat in replies if flat]

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
