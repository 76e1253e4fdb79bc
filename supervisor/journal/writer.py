"""Writes records as rows: a batch is one transaction, and a write that finds no row rolls it back."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from supervisor.core.records import Record
from supervisor.journal import fused_insert as beginnings
from supervisor.journal.errors import JournalError, JournalFenced, named
from supervisor.journal.file_store import FileStore
from supervisor.journal.fused_insert import BEGUN, EVENTS_BEGUN, FIRST_BEGUN, NEXT_BEGUN, Begun, folded
from supervisor.journal.prune import Store
from supervisor.journal.record_values import parameters
from supervisor.journal.statements import (
    EVENT,
    FIRST_TOLD,
    NEXT_TOLD,
    STATEMENTS,
    EachMessage,
    Statement,
    Sweep,
    Write,
)

# Pages of tables and indexes that a record touches, counted from the statements and rounded up.
_PAGES_PER_RECORD = 8
# Texts are stored twice, as row and as event, so a page holds half of its 4096 bytes in new text.
_CHARACTERS_PER_PAGE = 2048

# The callers keep each chore below this size.
_PAGES_PER_CHORE = 200

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Writer:
    """The one writing connection. Used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, journal: str) -> None:
        self._connection = connection
        self._journal = journal
        self.transactions = 0
        # Estimated pages in the write-ahead log since the last checkpoint.
        self.pages = 0

    def write(self, records: Sequence[Record]) -> None:
        """Write all records or, with a JournalError, none."""
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            for record in folded(records):
                if isinstance(record, Begun):
                    self._begin(record)
                else:
                    self._apply(record)
            run("COMMIT")
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            self._undo()
            raise named(error, self._journal) from error
        except JournalError:
            self._undo()
            raise
        self.transactions += 1

    def run(self, chore: Callable[[Store], bool]) -> bool:
        """Run a chore in a transaction of its own and return its result."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            more = chore(FileStore(self._connection))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise named(error, self._journal) from error
        finally:
            self.pages += _PAGES_PER_CHORE
        return more

    def _undo(self) -> None:
        """After some errors SQLite has rolled back by itself. Without COMMIT nothing of it is durable."""
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise named(error, self._journal) from error

    def _apply(self, record: Record) -> None:
        values = parameters(record)
        if record.seq:
            for told in FIRST_TOLD if record.seq == 1 else NEXT_TOLD:
                self._run(told, record, values)
            body = _ENCODE(record.fields())
            self._connection.execute(EVENT, (record.session, record.seq, record.at, record.type, body))
        for statement in STATEMENTS[type(record)]:
            self._run(statement, record, values)
        characters = sum(len(value) for value in values.values() if isinstance(value, str))
        self.pages += _PAGES_PER_RECORD + characters // _CHARACTERS_PER_PAGE

    def _begin(self, begun: Begun) -> None:
        values = beginnings.parameters(begun)
        for statement in (*(FIRST_BEGUN if begun.accepted.seq == 1 else NEXT_BEGUN), *BEGUN):
            self._run(statement, begun.accepted, values)
        told: list[Any] = []
        for record in begun.records:
            told += (record.session, record.seq, record.at, record.type, _ENCODE(record.fields()))
        self._connection.execute(EVENTS_BEGUN, told)
        self.pages += 2 * _PAGES_PER_RECORD + len(begun.accepted.text) // _CHARACTERS_PER_PAGE

    def _run(self, statement: Statement, record: Record, values: dict[str, Any]) -> None:
        if isinstance(statement, Write):
            if self._connection.execute(statement.sql, values).rowcount != 1:
                raise _ahead(statement.name, record, values)
        elif isinstance(statement, Sweep):
            self._connection.execute(statement.sql, values)
        else:
            values["content_at"] = max(self._each(statement, record, values))

    def _each(self, statement: EachMessage, record: Record, values: dict[str, Any]) -> Iterator[float]:
        for message in values["messages"]:
            found = self._connection.execute(statement.sql, {**values, "message": message}).fetchall()
            if len(found) != 1:
                raise _ahead(statement.name, record, values)
            yield found[0][0]

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the file. If that fails, the log still has everything."""
        self.pages = 0
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def _ahead(name: str, record: Record, values: dict[str, Any]) -> JournalFenced:
    where = values.get("turn") or values.get("message") or record.session
    fault = f"the journal does not have {where} in the state that {name} ends (memory is ahead of disk)"
    return JournalFenced(fault, "restart the service: what is on disk stands")
