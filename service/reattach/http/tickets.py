"""Tickets: short-lived permissions to read one run, for clients that can send nothing but an address."""

from starlette.types import ASGIApp

from ..core.errors import InvalidRequest
from ..core.run import links, when
from ..store.limits import Who
from .answers import TicketAnswer
from .auth import facts_for, lifetime_for
from .bodies import MakeTicket, NoQuery
from .service import Call, answer


async def make_ticket(call: Call) -> ASGIApp:
    """``POST /agent-runs/{run_id}/tickets``."""
    call.query(NoQuery)
    body = await call.body(MakeTicket)
    longest = call.service.settings.ticket_lifetime
    if body.expires_in is not None and body.expires_in > longest:
        raise InvalidRequest(f"expires_in is at most {longest:g} seconds here", field="expires_in", maximum=longest)
    run_id = (await call.run()).run_id
    await call.service.store.limits.count(Who(call.principal.tenant, call.principal.subject), "tickets")
    seconds = lifetime_for(call.principal, body.expires_in or longest)
    made = await call.service.store.tickets.make(facts_for(call.principal, run_id), seconds)
    return answer(
        TicketAnswer(
            ticket=made.ticket,
            expires_at=when(made.expires) or "",
            expires_in=round(made.seconds, 3),
            url=f"{links(run_id)['events']}?ticket={made.ticket}",
        ),
        201,
        cache_control="no-store",
    )
