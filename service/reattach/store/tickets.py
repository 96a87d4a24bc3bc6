"""Tickets: what each stands for, under a digest of it. Whoever reads Redis can use none of them; each goes by itself when it ends."""

import hashlib
import re
import secrets
from typing import Final

import msgspec

from .door import Door, all_of
from .keys import Keys
from .scripts import load_scripts

PREFIX: Final = "tkt_"
_FORM: Final = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


class TicketFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a ticket stands for: its run, and who it was made by with what."""

    run_id: str
    tenant: str
    subject: str
    scopes: tuple[str, ...]
    issued_at: float | None
    session: str | None


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A new ticket: the one moment at which it is known here.

    Attributes:
        expires: When it ends, milliseconds of the server's clock.
        seconds: How long it is good for.
    """

    ticket: str
    expires: int
    seconds: float


_decoder: Final = msgspec.json.Decoder(TicketFacts)


class Tickets:
    """The tickets of all processes."""

    def __init__(self, door: Door, keys: Keys) -> None:
        """Bind to a door and a set of key names."""
        self._door, self._keys = door, keys
        self._script = load_scripts()["ticket"]

    async def make(self, facts: TicketFacts, seconds: float) -> Ticket:
        """A new ticket.

        Args:
            facts: What it stands for.
            seconds: How long.

        Raises:
            StoreUnavailable: Redis cannot be reached; nobody has the ticket then.
        """
        ticket = PREFIX + secrets.token_urlsafe(32)
        keys = {"ticket": self._keys.ticket(_digest(ticket))}
        reply = await self._door.run(self._script, keys, msgspec.json.encode(facts), max(1, round(seconds * 1000)))
        return Ticket(ticket=ticket, expires=reply.integer(0), seconds=seconds)

    async def find(self, ticket: str) -> tuple[TicketFacts, float] | None:
        """What a ticket stands for and how many seconds it has left; None when it is none, or none any more.

        Args:
            ticket: As it was sent.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        if _FORM.fullmatch(ticket) is None:
            return None
        key = self._keys.ticket(_digest(ticket))
        stored, left = await all_of([self._door.call("GET", key), self._door.call("PTTL", key)])
        if stored is None or left <= 0:
            return None
        return _decoder.decode(stored), left / 1000


def _digest(ticket: str) -> str:
    # 256 random bits need neither salt nor many rounds.
    return hashlib.sha256(ticket.encode()).hexdigest()
