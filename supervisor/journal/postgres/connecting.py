"""Connections to the server: how values travel, and what an error of the server means.

Every connection commits by itself, and only a primary is taken: a replica may be behind. Texts are escaped
(dialect.py), numbers are always bigint so that a statement is prepared once, and truth comes back as 0 and 1,
as SQLite has it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper, TextLoader

from supervisor.journal.errors import JournalError, JournalFenced, JournalUnreachable, JournalUnwritable
from supervisor.journal.postgres.dialect import escaped, unescaped

Connection = psycopg.Connection["ServerRow"]

# A server that is there answers within milliseconds; one that restarts, within seconds.
_CONNECT_SECONDS = 5
# A peer that is gone without a word is noticed within this time, by the kernel.
_SILENT_SECONDS = 10
# Every statement of this package stays prepared.
_STATEMENTS_KEPT = 512

# Raised by the function `fence` of the schema.
FENCED = "HF001"
# The statement that updates the row of the life is named so.
LIFE = "life"
# A connection that ends; the server shuts down, or was restarted after a crash.
BROKEN = ("08", "57P")
_REFUSED = ("22", "23")
_NO_ROOM = ("53100",)
_RESTART = "restart the service: what is in the database stands"
# It would print errors of the server that are handled here, with details that may quote a person.
logging.getLogger("psycopg").disabled = True
_LOOK = "look at the server and at the network to it"


class ServerRow:
    """A row with names, as sqlite3.Row: `dict(row)` has the columns, an iteration gives the values."""

    __slots__ = ("_at", "_values")

    def __init__(self, at: dict[str, int], values: Sequence[Any]) -> None:
        self._at = at
        self._values = values

    def __getitem__(self, key: str | int) -> Any:
        return self._values[key if isinstance(key, int) else self._at[key]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        return list(self._at)


def _row_factory(cursor: "psycopg.Cursor[Any]") -> Callable[[Sequence[Any]], ServerRow]:
    at = {column.name: number for number, column in enumerate(cursor.description or ())}
    return lambda values: ServerRow(at, values)


class _EscapedText(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj))


class _UnescapedText(TextLoader):
    def load(self, data: Buffer) -> Any:
        return unescaped(str(super().load(data)))


class _Truth(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _WholeNumber(Loader):
    """The sum of bigint is numeric; here it has no fraction."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


def connect(url: str, name: str, password: str = "") -> Connection:
    """Return a new connection. `name` shows in the server's list of connections."""
    try:
        connection = psycopg.Connection[ServerRow].connect(
            url,
            autocommit=True,
            row_factory=_row_factory,
            application_name=name,
            client_encoding="utf8",
            connect_timeout=_CONNECT_SECONDS,
            target_session_attrs="read-write",
            keepalives_idle=_SILENT_SECONDS // 2,
            keepalives_interval=1,
            keepalives_count=_SILENT_SECONDS // 2,
            tcp_user_timeout=_SILENT_SECONDS * 1000,
            password=password or None,
        )
        connection.prepared_max = _STATEMENTS_KEPT
        adapters = connection.adapters
        adapters.register_dumper(str, _EscapedText)
        adapters.register_dumper(int, Int8Dumper)
        adapters.register_loader("text", _UnescapedText)
        adapters.register_loader("bool", _Truth)
        adapters.register_loader("numeric", _WholeNumber)
        # A role or a database may have another default; less than this is not durable.
        connection.execute(
            """SELECT set_config('synchronous_commit', 'on', false)
               WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"""
        )
    except psycopg.Error as error:
        raise named(error) from error
    return connection


def by_index(connection: Connection) -> Connection:
    """Let each statement of this connection find its rows by an index, as INDEXED BY does in SQLite.

    A statement that is prepared keeps its plan. One that was made while a table had a few rows would read the
    whole table for each batch later on.
    """
    try:
        connection.execute("SELECT set_config('enable_seqscan', 'off', false)")
    except psycopg.Error as error:
        raise named(error) from error
    return connection


def named(error: Exception) -> JournalError:
    """Translate an error. Only its primary message is used: the details may quote a row, and so a person."""
    if not isinstance(error, psycopg.Error):
        return JournalFenced("the journal refused a record (a value that a database cannot hold)", _RESTART)
    state, words = error.sqlstate or "", error.diag.message_primary or type(error).__name__
    if state == FENCED:
        where = error.diag.message_detail
        fault = f"the journal does not have {where} in the state that {words} ends (memory is ahead of it)"
        return JournalFenced(fault, _RESTART)
    if state.startswith(_REFUSED):
        return JournalFenced(f"the journal refused a record ({state}: {words})", _RESTART)
    if state in _NO_ROOM:
        return JournalUnwritable("the database has no space left", "free space on the server's disk")
    if not state and not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return JournalFenced(f"the journal refused a record ({type(error).__name__})", _RESTART)
    if not state or state.startswith(BROKEN):
        # An error of libpq has no parts; its words are about addresses and sockets.
        words = words if state else " ".join(str(error).split())
        return JournalUnreachable(f"the database does not answer ({words})", _LOOK)
    return JournalUnwritable(f"the database did not take a write ({state}: {words})", _LOOK)
