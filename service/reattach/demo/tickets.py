"""The tickets: reading one, adding a note once, taking it back."""

import sqlite3
from datetime import UTC, datetime

import msgspec

from .database import Database


class TicketNotFound(Exception):
    """There is no such ticket."""


class NoteNotFound(Exception):
    """There is no such note."""


class KeyTaken(Exception):
    """Another note was added under this idempotency key."""


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks."""

    name: str
    email: str
    country: str
    since: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody of the team wrote on a ticket."""

    note: str
    author: str
    body: str
    created_at: str


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket as an agent reads it.

    Attributes:
        version: Grows by one with every change of the ticket.
        notes: Oldest first, without those taken back.
    """

    ticket: int
    subject: str
    body: str
    product: str
    priority: str
    status: str
    opened_at: str
    version: str
    customer: Customer
    notes: tuple[Note, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent says about a ticket when no model is set."""

    opening: str
    thinking: str
    note: str
    answer: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a change.

    Attributes:
        receipt_id: Names the note for ever.
        result_version: The ticket and its version right after the change, e.g. ``ticket_981:v19``.
    """

    receipt_id: str
    result_version: str


class Tickets:
    """The demo's database. Every method does one transaction; none of them is async."""

    def __init__(self, database: Database | None = None) -> None:
        """Use a database; default: the one in the data folder."""
        self._database = database or Database()

    def read(self, ticket: int) -> Ticket:
        """A ticket with its customer and notes.

        Raises:
            TicketNotFound: There is none of this number.
        """
        with self._database.reading() as db:
            row = _row(db, ticket)
            customer = db.execute("SELECT * FROM customers WHERE id = ?", (row["customer_id"],)).fetchone()
            notes = db.execute("SELECT * FROM notes WHERE ticket_id = ? AND removed_at IS NULL ORDER BY id", (ticket,)).fetchall()
        return Ticket(
            ticket=ticket,
            subject=row["subject"],
            body=row["body"],
            product=row["product"],
            priority=row["priority"],
            status=row["status"],
            opened_at=row["opened_at"],
            version=f"v{row['version']}",
            customer=Customer(**{name: customer[name] for name in Customer.__struct_fields__}),
            notes=tuple(
                Note(note=_receipt(note["id"]), author=note["author"], body=note["body"], created_at=note["created_at"]) for note in notes
            ),
        )

    def numbers(self) -> list[int]:
        """The numbers of all tickets, ascending."""
        with self._database.reading() as db:
            return [row["id"] for row in db.execute("SELECT id FROM tickets ORDER BY id")]

    def answer(self, ticket: int) -> Answer:
        """What the agent says about a ticket when no model is set.

        Raises:
            TicketNotFound: There is none of this number.
        """
        with self._database.reading() as db:
            row = db.execute("SELECT opening, thinking, note, answer FROM answers WHERE ticket_id = ?", (ticket,)).fetchone()
            if row is None:
                raise TicketNotFound(f"there is no answer for ticket {ticket}")
            return Answer(**dict(row))

    def add_note(self, ticket: int, body: str, *, author: str, key: str) -> Change:
        """Add a note, once for each idempotency key: asked again, it adds nothing and proves the first addition again.

        Raises:
            TicketNotFound: There is none of this number.
            KeyTaken: Another note was added under this key.
        """
        with self._database.writing() as db:
            known = db.execute("SELECT * FROM notes WHERE idempotency_key = ?", (key,)).fetchone()
            if known is not None:
                if (known["ticket_id"], known["body"]) != (ticket, body):
                    raise KeyTaken("another note was added under this idempotency key")
                return _added(known)
            version = _row(db, ticket)["version"] + 1
            added = db.execute(
                "INSERT INTO notes (ticket_id, author, body, version, created_at, idempotency_key) VALUES (?, ?, ?, ?, ?, ?)",
                (ticket, author, body, version, _now(), key),
            )
            db.execute("UPDATE tickets SET version = ? WHERE id = ?", (version, ticket))
            return _added(db.execute("SELECT * FROM notes WHERE id = ?", (added.lastrowid,)).fetchone())

    def find_note(self, key: str) -> Change | None:
        """What was added under an idempotency key, also if it was taken back since; None if nothing was."""
        with self._database.reading() as db:
            known = db.execute("SELECT * FROM notes WHERE idempotency_key = ?", (key,)).fetchone()
            return None if known is None else _added(known)

    def remove_note(self, receipt_id: str) -> Change:
        """Take a note back. Asked again, it changes nothing and proves the first removal again.

        The row stays, hidden, with its idempotency key: adding it again by accident, under the same key, would undo this.

        Raises:
            NoteNotFound: No note has this receipt.
        """
        number = receipt_id.removeprefix("receipt_")
        with self._database.writing() as db:
            note = db.execute("SELECT * FROM notes WHERE id = ?", (int(number),)).fetchone() if _is_number(number) else None
            if note is None:
                raise NoteNotFound("no note has this receipt")
            version = note["removed_version"]
            if version is None:
                version = _row(db, note["ticket_id"])["version"] + 1
                db.execute("UPDATE notes SET removed_at = ?, removed_version = ? WHERE id = ?", (_now(), version, note["id"]))
                db.execute("UPDATE tickets SET version = ? WHERE id = ?", (version, note["ticket_id"]))
            return Change(receipt_id=_receipt(note["id"]), result_version=f"ticket_{note['ticket_id']}:v{version}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _row(db: sqlite3.Connection, ticket: int) -> sqlite3.Row:
    row = db.execute("SELECT * FROM tickets WHERE id = ?", (ticket,)).fetchone() if abs(ticket) < 2**63 else None
    if row is None:
        raise TicketNotFound(f"there is no ticket {ticket}")
    return row


def _receipt(note: int) -> str:
    return f"receipt_{note}"


def _added(note: sqlite3.Row) -> Change:
    return Change(receipt_id=_receipt(note["id"]), result_version=f"ticket_{note['ticket_id']}:v{note['version']}")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
