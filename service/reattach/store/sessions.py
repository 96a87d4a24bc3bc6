"""Sessions as their clients see them: make one, read it, list them. Their runs are created and read through `Runs`."""

from typing import Any, Final

from ..core.errors import IdempotencyKeyReused, SessionExists, SessionNotFound
from ..core.ids import ALPHABET, digest, new_token
from ..core.session import POLICIES, NewSession, Policy, SessionRecord
from .door import Door, all_of
from .keys import Keys, idempotency_name
from .records import pairs
from .scripts import Reply, load_scripts
from .session_log import to_entry

_SCAN: Final = 200
_MOST_OPEN: Final = 1000
"""Open runs that a session's facts name; those after them are found in the list of its runs."""
_POLICIES: Final[dict[bytes, Policy]] = {policy.encode(): policy for policy in POLICIES}
_FACTS: Final = ("initiator", "policy", "metadata")


class Sessions:
    """The clients' side of sessions."""

    def __init__(self, door: Door, keys: Keys, keep_ms: int) -> None:
        """Bind to a store's parts.

        Args:
            door: The door.
            keys: Key names.
            keep_ms: How long a session that no run comes into is kept.
        """
        self._door, self._keys, self._keep_ms = door, keys, keep_ms
        self._scripts = load_scripts()

    async def create(self, new: NewSession, *, key: str | None = None, fingerprint: str = "") -> tuple[SessionRecord, bool]:
        """Make a session; or find it, where this request was made before.

        Args:
            new: What to make. A session of this name that was made with the same facts is the same session.
            key: The caller's idempotency key.
            fingerprint: Digest of the request's body.

        Returns:
            The session, and whether it was there before.

        Raises:
            IdempotencyKeyReused: The key was used with another body.
            SessionExists: There is a session of this name with other facts.
            StoreUnavailable: Redis cannot be reached; nothing was made, or the same request finds it.
        """
        name = self._keys.session_name(new.tenant, new.session_id)
        if key is not None:
            idempotency = {"idempotency": self._keys.idempotency(idempotency_name(new.tenant, new.initiator, f"session {key}"))}
            reply = await self._door.run(self._scripts["reserve"], idempotency, name, fingerprint, self._keep_ms)
            if reply.word == "REUSED":
                raise IdempotencyKeyReused()
        fields: dict[str, Any] = {
            "session_id": new.session_id,
            "tenant": new.tenant,
            "initiator": new.initiator,
            "metadata": new.metadata,
        }
        if new.policy != "parallel":
            # Left out where it makes no difference: the commands then need not look at the other runs.
            fields["policy"] = new.policy
        flat = [item for pair in fields.items() for item in pair]
        keys = self._keys.of_session(name) | self._around(name, new.tenant)
        reply = await self._door.run(self._scripts["establish"], keys, new_token(), self._keep_ms, *flat)
        record = await self.load(name)
        if any(getattr(record, fact) != getattr(new, fact) for fact in _FACTS):
            raise SessionExists("a session of this name was made before, with another initiator, policy or metadata", policy=record.policy)
        return record, reply.word == "EXISTS"

    def _around(self, name: str, tenant: str) -> dict[str, str]:
        return {"timers": self._keys.timers(name[4:6]), "sessions": self._keys.tenant_sessions(name[4:6], tenant)}

    async def find(self, tenant: str, session_id: str) -> SessionRecord:
        """A tenant's session.

        Raises:
            SessionNotFound: There is none of this name.
            StoreUnavailable: Redis cannot be reached.
        """
        return await self.load(self._keys.session_name(tenant, session_id))

    async def load(self, name: str) -> SessionRecord:
        """A session's facts and the bounds of its log, at one instant.

        Args:
            name: See `core.ids.session_name`.

        Raises:
            SessionNotFound: There is no such session.
            StoreUnavailable: Redis cannot be reached.
        """
        reply = await self._door.run(self._scripts["session"], self._keys.of_session(name), _MOST_OPEN)
        if reply.word == "GONE":
            raise SessionNotFound()
        return _to_record(name, reply)

    async def page(self, tenant: str, *, limit: int = 50, before: str | None = None) -> tuple[list[SessionRecord], str | None]:
        """A tenant's sessions, newest first.

        Args:
            tenant: Whose.
            limit: Most sessions on the page.
            before: The last session id of the page before; one that is gone by now gives an empty page.

        Returns:
            The page, and what to pass as `before` for the next one.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        below: tuple[int, str] | None = None
        if before is not None:
            try:
                place = await self.find(tenant, before)
            except SessionNotFound:
                return [], None
            below = place.created_at, place.name
        found: list[SessionRecord] = []
        while len(found) <= limit:
            names = await self._older(tenant, below)
            if not names:
                return found[:limit], None
            below = names[-1]
            replies = await all_of(
                self._door.run(self._scripts["session"], self._keys.of_session(name), _MOST_OPEN) for _, name in names[: limit + 1]
            )
            below = names[: limit + 1][-1]
            found += [_to_record(name, r) for (_, name), r in zip(names, replies, strict=False) if r.word == "OK"]
        return found[:limit], found[limit - 1].session_id

    async def _older(self, tenant: str, below: tuple[int, str] | None) -> list[tuple[int, str]]:
        top = "+inf" if below is None else str(below[0])
        names = [self._keys.tenant_sessions(tag, tenant) for tag in self._keys.tags]
        merged: list[tuple[int, str]] = []
        calls = (self._door.call("ZREVRANGEBYSCORE", name, top, "-inf", "WITHSCORES", "LIMIT", 0, _SCAN + 1) for name in names)
        for flat in await all_of(calls):
            merged += [(int(float(score)), member.decode()) for member, score in zip(flat[::2], flat[1::2], strict=True)]
        if below is not None:
            merged = [place for place in merged if place < below]
        return sorted(merged, reverse=True)[:_SCAN]


def new_session_id(key: str | None, *owner: str) -> str:
    """A name for a session that was given none: the same for the same idempotency key of the same owner, so that a repeat finds it."""
    number = int(digest("session id", *owner, new_token() if key is None else f"key {key}"), 16)
    return "session_" + "".join(ALPHABET[number >> 5 * i & 31] for i in range(26))


def _to_record(name: str, reply: Reply) -> SessionRecord:
    facts = pairs(reply.values[0])
    sequence, created = int(facts.get("sequence", 0)), int(facts["created_at"])
    first, latest = ([to_entry(raw) for raw in reply.values[i]] for i in (1, 2))
    return SessionRecord(
        name=name,
        session_id=facts["session_id"].decode(),
        tenant=facts["tenant"].decode(),
        initiator=facts["initiator"].decode(),
        policy=_POLICIES.get(facts.get("policy", b""), "parallel"),
        metadata=facts.get("metadata", b"{}"),
        sequence=sequence,
        earliest_sequence=max(reply.integer(3), first[0].before if first else sequence) + 1,
        created_at=created,
        last_activity_at=latest[0].at if latest else created,
        open=tuple(run_id.decode() for run_id in reply.values[4]),
    )
