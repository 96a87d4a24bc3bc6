"""What was taken away: from a subject, a tenant, a login, or of a session or run. It counts for every credential made before that moment.

All of it is one small hash, since only operators write it. Every process keeps a copy and is told by a bell when it changed; the copy has
a version, so that asking whether it is still right costs next to nothing.
"""

from typing import Final, Literal, get_args

import msgspec

from ..core.ids import digest
from .door import Door
from .keys import Keys
from .scripts import Reply, load_scripts

Kind = Literal["subject", "tenant", "login", "session", "run"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
NEWS: Final = "revocations"
"""What the bell says."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a revocation is about; `name` is empty where it is the whole tenant."""

    kind: Kind
    tenant: str
    name: str = ""


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was taken away.

    Attributes:
        target: What.
        at: When, milliseconds on the server's clock: what was made later counts.
        until: When it is forgotten.
        by: Who did it.
        reason: Why, for people.
    """

    target: Target
    at: int
    until: int
    by: str
    reason: str | None


class _Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    target: Target
    by: str
    reason: str | None = None


_decoder: Final = msgspec.json.Decoder(_Facts)


class Revocations:
    """The revocations of all processes."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door, self._keys = door, keys
        self._scripts = load_scripts()

    async def revoke(self, target: Target, *, seconds: float, by: str, reason: str | None = None) -> int:
        """Take away what was given before now; when that was, milliseconds on the server's clock. Again: up to the new now.

        Args:
            target: From whom, or of what.
            seconds: How long to remember it: at least as long as what was given before may last.
            by: Who does it.
            reason: Why.

        Raises:
            StoreUnavailable: Redis cannot be reached; do it again.
        """
        facts = msgspec.json.encode(_Facts(target=target, by=by, reason=reason))
        reply = await self._run(target, round(seconds * 1000), facts)
        return reply.integer(0)

    async def restore(self, target: Target) -> bool:
        """Let what was given before count again; False where nothing was taken away.

        Raises:
            StoreUnavailable: Redis cannot be reached; do it again.
        """
        return (await self._run(target, 0, b"")).word == "OK"

    async def read(self, known: str = "") -> tuple[str, tuple[Revocation, ...]] | None:
        """All of them, with their version; None where that is `known`.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        reply = await self._door.run(self._scripts["revoked"], {"revoked": self._keys.revoked()}, known)
        if reply.word == "SAME":
            return None
        found: list[Revocation] = []
        for value in reply.values[1]:
            at, until, raw = bytes(value).split(b" ", 2)
            facts = _decoder.decode(raw)
            found.append(Revocation(target=facts.target, at=int(at), until=int(until), by=facts.by, reason=facts.reason))
        return reply.text(0), tuple(sorted(found, key=lambda each: each.at))

    async def _run(self, target: Target, ttl: int, facts: bytes) -> Reply:
        keys = {"revoked": self._keys.revoked(), "bell": self._keys.bell(self._keys.tags[0])}
        return await self._door.run(self._scripts["revoke"], keys, digest(target.kind, target.tenant, target.name), ttl, facts)
