"""The reading side of a journal: rows with named columns; and that of a file, with its errors named."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Protocol

from supervisor.journal.errors import named


class Row(Protocol):
    """`dict(row)` has the columns by name, an iteration gives their values."""

    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> Iterable[str]: ...


class Rows(Protocol):
    """Reads, each bounded by its caller's SQL."""

    def all(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]: ...
    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None: ...
    def some(self, sql: str, values: Sequence[Any], enough: Callable[[Any], bool]) -> Sequence[Row]:
        """Return the first rows, up to the one for which `enough` holds."""


class FileRows:
    """The reads of a file."""

    def __init__(self, connection: sqlite3.Connection, journal: str) -> None:
        self._connection = connection
        self._journal = journal

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        try:
            cursor = self._connection.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise named(error, self._journal) from error

    def some(self, sql: str, values: Sequence[Any], enough: Callable[[Any], bool]) -> list[sqlite3.Row]:
        """The rows behind the last one are not read."""
        found: list[sqlite3.Row] = []
        try:
            cursor = self._connection.cursor()
            cursor.row_factory = sqlite3.Row
            with closing(cursor):
                for row in cursor.execute(sql, values):
                    found.append(row)
                    if enough(row):
                        break
        except sqlite3.Error as error:
            raise named(error, self._journal) from error
        return found

    def one(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Row | None:
        """Return the first row. The cursor is read to its end: an open read would hold back a checkpoint."""
        found = self.all(sql, values)
        return found[0] if found else None
