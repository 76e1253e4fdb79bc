"""The reading side of a connection to the server, with the interface of rows.py."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any, TypeVar

import psycopg

from supervisor.journal.postgres.connecting import Connection, ServerRow, named
from supervisor.journal.postgres.dialect import is_numbered, translated
from supervisor.journal.postgres.own_statements import READS

_Read = TypeVar("_Read")
# Rows fetched at a time while a reader looks at each: they may be long.
_STEP_ROWS = 16
_FIRST = b"SELECT * FROM (%b) AS ordered LIMIT 16"


class ServerRows:
    """Reads, each bounded by its caller's SQL; a connection per thread that reads.

    A connection that was cut is opened again, once per read.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._own = threading.local()
        self._opened: list[Connection] = []
        self._names = count(1)
        # Set while the service runs: a read in the thread of the event loop would stop it.
        self.refuses_loop = False

    def close(self) -> None:
        """Called when no thread reads any more."""
        for connection in self._opened:
            connection.close()

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[ServerRow]:
        query, given = _asked(sql, values)
        return self._read(lambda connection: connection.execute(query, given).fetchall())

    def run(self, use: Callable[[Connection], _Read]) -> _Read:
        """Use the connection of this thread for statements that may be repeated after a cut."""
        return self._read(use)

    def one(self, sql: str, values: Sequence[Any] = ()) -> ServerRow | None:
        found = self.all(sql, values)
        return found[0] if found else None

    def some(self, sql: str, values: Sequence[Any], enough: Callable[[Any], bool]) -> list[ServerRow]:
        """Return the first rows, up to the one for which `enough` holds; few others are read.

        Mostly there are few rows, and they come in one round trip. `enough` may read more by the same
        connection, so the cursor for the others lives in the server.
        """
        query, given = _asked(sql, values)

        def read(connection: Connection) -> list[ServerRow]:
            first = connection.execute(_FIRST % query, given).fetchall()
            if is_enough(first) or len(first) < _STEP_ROWS:
                return found
            with connection.transaction(), connection.cursor(f"some_{next(self._names)}") as cursor:
                cursor.itersize = _STEP_ROWS
                is_enough(islice(cursor.execute(query, given), _STEP_ROWS, None))
            return found

        def is_enough(rows: Iterable[ServerRow]) -> bool:
            for row in rows:
                found.append(row)
                if enough(row):
                    return True
            return False

        found: list[ServerRow] = []
        return self._read(read, can_repeat=lambda: not found)

    def _read(
        self, read: Callable[[Connection], _Read], can_repeat: Callable[[], bool] = lambda: True
    ) -> _Read:
        connection = self._open()
        try:
            return read(connection)
        except psycopg.Error as error:
            if not connection.closed or not can_repeat():
                raise named(error) from error
        try:
            return read(self._open())
        except psycopg.Error as error:
            raise named(error) from error

    def _open(self) -> Connection:
        if self.refuses_loop:
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                raise AssertionError("the event loop must not wait for the database")
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            connection = self._own.connection = self._connect()
            self._opened = [each for each in self._opened if not each.closed]
            self._opened.append(connection)
        return connection


def _asked(sql: str, values: Sequence[Any]) -> tuple[bytes, Sequence[Any] | Mapping[str, Any]]:
    sql = READS.get(sql, sql)
    if is_numbered(sql):
        return translated(sql), {f"p{number}": value for number, value in enumerate(values, 1)}
    return translated(sql), values
