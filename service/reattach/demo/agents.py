"""The demo's two agents, as ``reattach dev`` runs them: ``support`` answers a ticket, ``refund`` waits for somebody's approval."""

import asyncio
from typing import Any, Final

from reattach import Agents, Run, RunFailed

from .ask import Ask, RefundAsk, no_such_ticket, read_ask
from .desk import Desk
from .model.endpoint import BadSetting, Endpoint, from_environment
from .refund import refund_after_approval
from .script import answer_from_data
from .support import answer_by_model
from .tickets import Answer, TicketNotFound, Tickets

agents: Final = Agents()


@agents.agent("support")
async def support(run: Run) -> dict[str, Any]:
    """Answer a ticket and leave a note on it: ``{"ticket": 981}``."""
    ask = read_ask(run.input, Ask, '{"ticket": 981}')
    desk = Desk(Tickets())
    told = await _told(ask.ticket, desk.tickets)
    endpoint = _endpoint()
    if endpoint is None:
        return await answer_from_data(run, ask, desk, told)
    return await answer_by_model(run, ask, desk, endpoint)


@agents.agent("refund")
async def refund(run: Run) -> dict[str, Any]:
    """Ask a person before giving money back: ``{"ticket": 981, "amount": 40}``."""
    ask = read_ask(run.input, RefundAsk, '{"ticket": 981, "amount": 40}')
    desk = Desk(Tickets())
    await _told(ask.ticket, desk.tickets)
    return await refund_after_approval(run, ask, desk)


async def _told(ticket: int, tickets: Tickets) -> Answer:
    try:
        return await asyncio.to_thread(tickets.answer, ticket)
    except TicketNotFound:
        raise no_such_ticket(ticket, tickets) from None


def _endpoint() -> Endpoint | None:
    try:
        return from_environment()
    except BadSetting as e:
        raise RunFailed("invalid_setting", str(e)) from None
