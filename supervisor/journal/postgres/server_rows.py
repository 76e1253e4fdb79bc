"""The reading side of a connection to the server, with the interface of rows.py."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import psycopg

from supervisor.journal.postgres.connecting import Connection, ServerRow, named
from supervisor.journal.postgres.dialect import is_numbered, translated
from supervisor.journal.postgres.own_statements import READS

_Read = TypeVar("_Read")
# Rows fetched at a time while a reader looks at each: they may be long.
_STEP_ROWS = 16


class ServerRows:
    """Reads, each bounded by its caller's SQL. A connection that was cut is opened again, once per read."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._names = count(1)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[ServerRow]:
        query, given = _asked(sql, values)
        return self._read(lambda connection: connection.execute(query, given).fetchall())

    def one(self, sql: str, values: Sequence[Any] = ()) -> ServerRow | None:
        found = self.all(sql, values)
        return found[0] if found else None

    def some(self, sql: str, values: Sequence[Any], enough: Callable[[Any], bool]) -> list[ServerRow]:
        """Return the first rows, up to the one for which `enough` holds; few others are read.

        `enough` may read more by the same connection, so this cursor lives in the server.
        """
        query, given = _asked(sql, values)

        def read(connection: Connection) -> list[ServerRow]:
            with connection.transaction(), connection.cursor(f"some_{next(self._names)}") as cursor:
                cursor.itersize = _STEP_ROWS
                for row in cursor.execute(query, given):
                    found.append(row)
                    if enough(row):
                        break
            return found

        found: list[ServerRow] = []
        return self._read(read, can_repeat=lambda: not found)

    def _read(
        self, read: Callable[[Connection], _Read], can_repeat: Callable[[], bool] = lambda: True
    ) -> _Read:
        try:
            return read(self._open())
        except psycopg.Error as error:
            if self._connection is None or not self._connection.closed or not can_repeat():
                raise named(error) from error
        try:
            return read(self._open())
        except psycopg.Error as error:
            raise named(error) from error

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection


def _asked(sql: str, values: Sequence[Any]) -> tuple[bytes, Sequence[Any] | Mapping[str, Any]]:
    sql = READS.get(sql, sql)
    if is_numbered(sql):
        return translated(sql), {f"p{number}": value for number, value in enumerate(values, 1)}
    return translated(sql), values
