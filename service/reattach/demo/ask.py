"""What a run of the demo is asked, and what a person is told who asked wrongly."""

import os
from typing import Annotated, Any, Final, TypeVar

import msgspec

from reattach import RunFailed

from .tickets import Tickets

SPEED: Final = 30.0
"""Pieces of text a second: a pace to read along."""

TicketNumber = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
Speed = Annotated[float, msgspec.Meta(ge=0, le=100_000)]


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Input of ``support``.

    Attributes:
        ticket: Number of a ticket.
        question: What to answer, where that is not simply the ticket.
        speed: Pieces of text a second; 0: as fast as possible. Default: ``REATTACH_DEMO_SPEED``, else 30.
    """

    ticket: TicketNumber
    question: Annotated[str, msgspec.Meta(max_length=4000)] | None = None
    speed: Speed | None = None


class RefundAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Input of ``refund``.

    Attributes:
        ticket: Number of a ticket.
        amount: In euro.
        timeout: How long to wait for somebody's approval, seconds.
    """

    ticket: TicketNumber
    amount: Annotated[float, msgspec.Meta(ge=0.01, le=10_000)] = 40.0
    timeout: Annotated[float, msgspec.Meta(gt=0, le=7 * 86_400)] = 3600.0


A = TypeVar("A", Ask, RefundAsk)


def read_ask(given: Any, kind: type[A], example: str) -> A:
    """Check an input.

    Args:
        given: The decoded input.
        kind: What it should be.
        example: One that is right.

    Raises:
        RunFailed: ``invalid_input``.
    """
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as e:
        known = ", ".join(kind.__struct_fields__)
        raise RunFailed("invalid_input", f"{e}. An input is an object like {example}; it may have: {known}.") from None


def no_such_ticket(ticket: int, tickets: Tickets) -> RunFailed:
    """The failure of a run whose ticket does not exist; names those that do."""
    numbers = ", ".join(map(str, tickets.numbers()))
    return RunFailed("ticket_not_found", f"There is no ticket {ticket}. The demo has these: {numbers}.")


def speed_of(ask: Ask) -> float:
    """Pieces of text a second; 0: as fast as possible.

    Raises:
        RunFailed: ``invalid_setting``: ``REATTACH_DEMO_SPEED`` is not a number.
    """
    if ask.speed is not None:
        return ask.speed
    try:
        return msgspec.convert(os.environ.get("REATTACH_DEMO_SPEED") or SPEED, Speed, strict=False)
    except msgspec.ValidationError:
        raise RunFailed(
            "invalid_setting", "REATTACH_DEMO_SPEED is a number of pieces of text a second, 0 for as fast as possible."
        ) from None


def is_yes(answer: object) -> bool:
    """Whether somebody agreed: ``true`` or ``{"approved": true}``. Everything else is a no."""
    match answer:
        case True | {"approved": True}:
            return True
        case _:
            return False
