"""Where the demo's tickets are: one SQLite file, made from ``tickets.sql`` by whoever comes first."""

import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

FILE: Final = "demo.sqlite"
PATIENCE: Final = 10.0
"""Seconds to wait for another process's transaction."""


def data_folder() -> Path:
    """``REATTACH_DATA``, or ``./.reattach``."""
    return Path(os.environ.get("REATTACH_DATA") or "./.reattach")


class Database:
    """One file. A connection lives as long as one operation, so any thread of any process may use it."""

    def __init__(self, path: Path | None = None) -> None:
        """Name the file; it is made at first use.

        Args:
            path: Default: ``demo.sqlite`` in the data folder.
        """
        self.path = path or data_folder() / FILE

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection that sees one state of the data.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        with self._open() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection in a transaction of its own: all of it is on disk afterwards, or nothing.

        Raises:
            sqlite3.Error: The file cannot be written, or another process held it for too long.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection, None, None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            # A receipt must not outlive what it is for: the note is on disk before anybody hears of it.
            connection.execute("PRAGMA synchronous = FULL")
            _create(connection)
            yield connection
        finally:
            connection.close()


def _created(connection: sqlite3.Connection) -> bool:
    return connection.execute("PRAGMA user_version").fetchone()[0] > 0


def _create(connection: sqlite3.Connection) -> None:
    if _created(connection):
        return
    _write_ahead(connection)
    connection.execute("BEGIN IMMEDIATE")
    # Whoever waited here for another process's creation finds it done, and a process that died in the middle left nothing.
    if not _created(connection):
        for statement in _statements((files("reattach.demo") / "tickets.sql").read_text("utf-8")):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
    connection.execute("COMMIT")


def _write_ahead(connection: sqlite3.Connection) -> None:
    # Changing the journal needs the file alone, and SQLite refuses at once, without its usual patience, when two try it together.
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _statements(script: str) -> Iterator[str]:
    # executescript() would commit the surrounding transaction first, and a reader could see half of the data.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
