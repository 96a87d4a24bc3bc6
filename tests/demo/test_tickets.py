"""The ticket database: made once whoever comes first, and every change provable."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reattach.demo.database import Database, data_folder
from reattach.demo.script import pieces
from reattach.demo.tickets import Change, KeyTaken, NoteNotFound, TicketNotFound, Tickets

from ..support.processes import ROOT

PROCESSES = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database will be, in a folder that is not there yet."""
    return tmp_path / "new" / "folder" / "demo.sqlite"


@pytest.fixture
def tickets(path: Path) -> Tickets:
    """Tickets in a database of the test's own."""
    return Tickets(Database(path))


def test_first_use_makes_the_database(path: Path, tickets: Tickets) -> None:
    """The folder and the file are made when a ticket is first asked for."""
    ticket = tickets.read(981)
    assert path.exists()
    assert (ticket.customer.name, ticket.version, len(ticket.notes)) == ("Tomás Herrera", "v18", 3)


def test_the_data_folder_follows_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``REATTACH_DATA`` moves the database; unset or empty, it is in the current folder."""
    monkeypatch.setenv("REATTACH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("REATTACH_DATA", "")
    assert data_folder() == Path(".reattach")


USE = """
import sys
from pathlib import Path
from reattach.demo.database import Database
from reattach.demo.tickets import Tickets

sys.stdin.read()  # closed for all of them at once
Tickets(Database(Path(sys.argv[1]))).add_note(981, f"note of process {sys.argv[2]}", author="test", key=f"key {sys.argv[2]}")
"""


def test_processes_that_come_first_together(path: Path, tickets: Tickets) -> None:
    """Several processes make the database and change it at the same moment: one set of data, and every change counted once."""
    command = [sys.executable, "-c", USE, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "service")}
    started = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, env=environment) for n in range(PROCESSES)]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait(30) for process in started] == [0] * PROCESSES
    ticket = tickets.read(981)
    assert ticket.version == f"v{18 + PROCESSES}"
    assert len(ticket.notes) == 3 + PROCESSES
    assert len(tickets.numbers()) == 12


def test_a_creation_that_died_left_nothing(path: Path, tickets: Tickets) -> None:
    """A process that dies in the middle of making the database is followed by one that makes all of it."""
    path.parent.mkdir(parents=True)
    dying = sqlite3.connect(path, isolation_level=None)
    dying.executescript("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; CREATE TABLE customers (id INTEGER PRIMARY KEY);")
    dying.close()
    assert tickets.read(970).subject == "Grinder arrived without the hopper"


def test_a_note_is_added_once_for_each_key(tickets: Tickets) -> None:
    """Asked twice under one key, there is one note, one new version, and the same proof."""
    first = tickets.add_note(981, "checked", author="test", key="k1")
    assert first == Change(receipt_id="receipt_558", result_version="ticket_981:v19")
    tickets.add_note(981, "something else in between", author="test", key="k2")
    assert tickets.add_note(981, "checked", author="test", key="k1") == first
    assert [note.body for note in tickets.read(981).notes].count("checked") == 1
    assert tickets.read(981).version == "v20"


def test_a_key_names_one_note(tickets: Tickets) -> None:
    """The same key with another text, or for another ticket, is refused, and nothing changes."""
    tickets.add_note(981, "checked", author="test", key="k1")
    for ticket, body in ((981, "another text"), (970, "checked")):
        with pytest.raises(KeyTaken):
            tickets.add_note(ticket, body, author="test", key="k1")
    assert (tickets.read(981).version, tickets.read(970).version) == ("v19", "v3")


def test_a_probe_finds_what_took_effect(tickets: Tickets) -> None:
    """By its key alone, a change is found with its first proof; one that never happened is not."""
    assert tickets.find_note("k1") is None
    added = tickets.add_note(981, "checked", author="test", key="k1")
    tickets.add_note(981, "later", author="test", key="k2")
    assert tickets.find_note("k1") == added


def test_a_note_can_be_taken_back(tickets: Tickets) -> None:
    """Taking a note back hides it and is a new version; doing so again changes nothing, and neither does adding it again."""
    added = tickets.add_note(981, "checked", author="test", key="k1")
    removed = tickets.remove_note(added.receipt_id)
    assert removed == Change(receipt_id=added.receipt_id, result_version="ticket_981:v20")
    assert tickets.remove_note(added.receipt_id) == removed
    assert tickets.add_note(981, "checked", author="test", key="k1") == added
    assert [note.body for note in tickets.read(981).notes].count("checked") == 0
    assert tickets.read(981).version == "v20"


@pytest.mark.parametrize("receipt", ["receipt_1", "receipt_", "receipt_x", "558; DROP TABLE notes", "receipt_" + "9" * 40, "receipt_²"])
def test_a_receipt_that_is_none(tickets: Tickets, receipt: str) -> None:
    """Receipts of notes that do not exist, and texts that are no receipts, are refused alike."""
    with pytest.raises(NoteNotFound):
        tickets.remove_note(receipt)


@pytest.mark.parametrize("number", [0, -1, 982, 2**63, 10**30])
def test_a_ticket_that_does_not_exist(tickets: Tickets, number: int) -> None:
    """Any number without a ticket gives the same typed error, and no note is added for one."""
    for attempt in (lambda: tickets.read(number), lambda: tickets.add_note(number, "x", author="test", key="k")):
        with pytest.raises(TicketNotFound):
            attempt()
    assert tickets.find_note("k") is None


def test_a_refused_change_leaves_the_file_usable(tickets: Tickets) -> None:
    """After an error inside a transaction the next one works."""
    with pytest.raises(TicketNotFound):
        tickets.add_note(1, "x", author="test", key="k")
    assert tickets.add_note(981, "x", author="test", key="k").result_version == "ticket_981:v19"


def test_the_data_is_consistent(tickets: Tickets) -> None:
    """Every ticket has an answer long enough to watch, and its version is not behind its notes."""
    for number in tickets.numbers():
        ticket, told = tickets.read(number), tickets.answer(number)
        assert str(number) in told.opening
        assert 100 <= sum(len(list(pieces(text))) for text in (told.opening, told.thinking, told.answer)) <= 350
        assert all(note.created_at > ticket.opened_at for note in ticket.notes)
        assert int(ticket.version[1:]) > len(ticket.notes)


@pytest.mark.parametrize("text", ["", " ", "one", "  two  words \n\n and  a verylongwordindeed 👩‍👩‍👧 Ω\u2028x", "\n"])
def test_pieces_are_the_text(text: str) -> None:
    """Cut into pieces and joined again, a text is unchanged."""
    assert "".join(pieces(text)) == text
    assert all(piece and len(piece.strip()) <= 9 for piece in pieces(text))
