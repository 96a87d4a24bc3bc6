"""Tickets at the door: what a client that cannot send headers, as a browser's ``EventSource``, shows in place of a token.

A ticket is good for reading one run. Everything opened with it ends when it ends, and it ends no later than the credential it was made
with; whoever made it is who reads, so what is taken from them is taken from their tickets. A header wins over a ticket, a ticket over a
cookie, which a browser sends by itself.
"""

from typing import Final

from starlette.requests import Request

from ...store.tickets import TicketFacts, Tickets
from .expiry import left, now
from .principal import Authenticator, InvalidCredential, Principal

PARAMETER: Final = "ticket"


async def identify(authenticator: Authenticator, tickets: Tickets, request: Request) -> Principal:
    """Who asks, where a ticket for the path's run is enough.

    Raises:
        Unauthenticated: Neither a valid ticket nor another valid credential.
        Forbidden: See `Authenticator`.
        StoreUnavailable: Redis cannot be reached.
    """
    given = set(request.query_params.getlist(PARAMETER))
    if not given or "authorization" in request.headers:
        return await authenticator.authenticate(request)
    found = await tickets.find(given.pop()) if len(given) == 1 else None
    # One answer for all: a ticket for one run tells nothing of another, not even whether it exists.
    if found is None or found[0].run_id != request.path_params["run_id"]:
        raise InvalidCredential("the ticket has ended, or is none for this run")
    facts, seconds = found
    return Principal(
        tenant=facts.tenant,
        subject=facts.subject,
        scopes=frozenset(facts.scopes),
        expires_at=now() + seconds,
        issued_at=facts.issued_at,
        session=facts.session,
        run_id=facts.run_id,
    )


def facts_for(principal: Principal, run_id: str) -> TicketFacts:
    """What a ticket that this principal makes stands for."""
    return TicketFacts(
        run_id=run_id,
        tenant=principal.tenant,
        subject=principal.subject,
        scopes=tuple(sorted(principal.scopes)),
        issued_at=principal.issued_at,
        session=principal.session,
    )


def lifetime_for(principal: Principal, longest: float) -> float:
    """How long a ticket that this principal makes is good for, seconds: not longer than the principal."""
    rest = left(principal)
    return longest if rest is None else min(longest, rest)
