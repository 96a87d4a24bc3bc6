"""What an agent can do with the tickets, and how a model is told of it."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from .model.dialect import Tool
from .tickets import Change, Ticket, Tickets

AUTHOR = "support agent"


class Desk:
    """The tools' functions. They block, so they run in threads; every one of them may be called again."""

    def __init__(self, tickets: Tickets) -> None:
        """Work on a set of tickets."""
        self.tickets = tickets

    def read(self, ticket: int) -> Ticket:
        """Read a ticket.

        Raises:
            TicketNotFound: There is none of this number.
        """
        return self.tickets.read(ticket)

    def add_note(self, ticket: int, body: str, idempotency_key: str) -> Change:
        """Add a note, at most once for each key.

        Raises:
            TicketNotFound: There is none of this number.
            KeyTaken: Another note was added under this key.
        """
        return self.tickets.add_note(ticket, body, author=AUTHOR, key=idempotency_key)

    def find_note(self, ticket: int, body: str, idempotency_key: str) -> Change | None:
        """Look whether `add_note` took effect, when nobody lived to tell."""
        return self.tickets.find_note(idempotency_key)

    def remove_note(self, receipt_id: str) -> Change:
        """Take a note back.

        Raises:
            NoteNotFound: No note has this receipt.
        """
        return self.tickets.remove_note(receipt_id)


class ReadTicket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``tickets.read``."""

    ticket: Annotated[int, msgspec.Meta(description="Number of the ticket.")]


class AddNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``tickets.add_note``."""

    ticket: Annotated[int, msgspec.Meta(description="Number of the ticket.")]
    body: Annotated[str, msgspec.Meta(description="What colleagues should know, in one or two sentences.", min_length=1, max_length=4000)]


class RemoveNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``tickets.remove_note``."""

    receipt_id: Annotated[str, msgspec.Meta(description="The receipt_id that adding the note returned.")]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a model may call.

    Attributes:
        name: As events name it.
        description: For the model.
        arguments: What its arguments must be.
        fn: Called with them.
        on_unresolved: As for `Run.effect`.
        read_only: Whether it changes nothing.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    fn: Callable[..., Any]
    on_unresolved: Any = "stop"
    read_only: bool = False

    @property
    def wire_name(self) -> str:
        """The name without what protocols refuse in one."""
        return self.name.replace(".", "_")

    def described(self) -> Tool:
        """The tool as a request describes it."""
        _, found = msgspec.json.schema_components([self.arguments])
        schema = {name: value for name, value in found[self.arguments.__name__].items() if name in ("type", "properties", "required")}
        return Tool(name=self.wire_name, description=self.description, parameters=msgspec.Raw(msgspec.json.encode(schema)))


def offers(desk: Desk) -> tuple[Offered, ...]:
    """The tools of the support agent."""
    return (
        Offered(
            name="tickets.read",
            description="Read a ticket with its customer and the notes of colleagues.",
            arguments=ReadTicket,
            fn=desk.read,
            read_only=True,
        ),
        Offered(
            name="tickets.add_note",
            description="Leave a note for colleagues on a ticket. Returns a receipt.",
            arguments=AddNote,
            fn=desk.add_note,
            on_unresolved=desk.find_note,
        ),
        Offered(
            name="tickets.remove_note",
            description="Take back a note, by the receipt of adding it.",
            arguments=RemoveNote,
            fn=desk.remove_note,
            on_unresolved="retry",
        ),
    )
