"""Moves a journal that no service uses: from its file to a PostgreSQL server, back, or to another server.

Problem: a person trusts a copy only when it was compared, and a move that is cut off half-way must leave one
journal that is whole.

Method: the target takes all rows in one transaction, table after table. Then every table is read back from
the target and compared with what the source gave, by the number of rows and a sum over the digests of all
rows. A sum does not depend on the order: two databases need not sort alike. Only then the target commits, and
only then the source is retired, so that no service goes on with it by mistake.

    the source is read ── rows are written ── and compared ── the target commits ── the source is retired
    cut off here: nothing was moved, the target is as before ┘      │
                  both are whole, the target is refused as not empty ┘

A row is compared as the values that a reader of the journal gets, after U+0000 was unescaped and truth became
0 and 1. The tables and columns are those of the newest schema of a file. Tallies and days are summed over
lives, which a file does not have; owners, homes and requests of hosts are not moved: all hosts are stopped.
Clips are files beside a journal file, and rows on a server.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from supervisor.journal.errors import JournalError
from supervisor.journal.journal import connect
from supervisor.journal.maintenance import tables
from supervisor.journal.migrate import migrate

Row = tuple[Any, ...]

_DIGEST_BITS = 256
_CLIPS = "clips"
_DIFFERS = "nothing was moved: look at the memory and disks of this host and the server, then try again"


@dataclass(frozen=True)
class MovedTable:
    """A table of the journal with its columns, as a file has them."""

    name: str
    columns: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(f'"{column}"' for column in self.columns)


class Source(Protocol):
    """A journal that is given away; it is read as of one moment."""

    @property
    def epoch(self) -> int: ...
    def rows(self, table: MovedTable) -> Iterator[Row]: ...
    def clips(self) -> Iterator[Row]:
        """Yield name and content of the clips of its messages, as far as they are there."""

    def retire(self) -> str:
        """Keep every service from it; return where it is kept."""


class Target(Protocol):
    """An empty journal. Unless it is finished, it is empty again at the end."""

    def take(self, table: MovedTable, rows: Iterable[Row]) -> None: ...
    def rows(self, table: MovedTable) -> Iterator[Row]: ...
    def take_clips(self, clips: Iterable[Row]) -> None: ...
    def clips(self) -> Iterator[Row]:
        """Yield the clips that it has taken, as it has them."""

    def finish(self, epoch: int) -> None:
        """Commit, durably; lives of the target are counted from this epoch."""


@cache
def moved_tables() -> tuple[MovedTable, ...]:
    """Return all tables of the newest schema but the one that has the epoch."""
    connection = connect(":memory:")
    migrate(connection, "in memory")
    named = [name for name in tables(connection) if name != "life"]
    found = [
        MovedTable(name, tuple(row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')))
        for name in named
    ]
    connection.close()
    return tuple(found)


@dataclass
class Tally:
    """The number of rows that passed, and the sum of their digests."""

    rows: int = 0
    sum: int = 0

    def counting(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            seen = [hashlib.sha256(each).digest() if isinstance(each, bytes) else each for each in row]
            digest = hashlib.sha256(repr(seen).encode()).digest()
            self.sum = (self.sum + int.from_bytes(digest)) % 2**_DIGEST_BITS
            self.rows += 1
            yield row

    @property
    def checksum(self) -> str:
        return f"{self.sum:0{_DIGEST_BITS // 4}x}"


def move(source: Source, target: Target) -> Iterator[tuple[str, Tally]]:
    """Copy and compare, yield each table as soon as both sides are equal; then finish the target."""
    given: dict[MovedTable, Tally] = {}
    for table in moved_tables():
        given[table] = Tally()
        target.take(table, given[table].counting(source.rows(table)))
    clips = Tally()
    target.take_clips(clips.counting(source.clips()))
    for table, expected in given.items():
        yield table.name, _compared(table.name, expected, target.rows(table))
    yield _CLIPS, _compared(_CLIPS, clips, target.clips())
    target.finish(source.epoch)


def _compared(name: str, expected: Tally, rows: Iterator[Row]) -> Tally:
    found = Tally()
    for _ in found.counting(rows):
        pass
    if found != expected:
        counts = f"{expected.rows} rows were given, {found.rows} are there"
        raise JournalError(f"{name} differ after the move: {counts}", _DIFFERS)
    return found
