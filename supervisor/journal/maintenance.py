"""Read-only maintenance: check, count, copy, export; by its own connection, beside a running service."""

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ipc.bounds import Number
from ipc.errors import BadPlace
from ipc.messages import Table
from ipc.paging import Placed, key_of, page, place
from supervisor.journal.errors import JournalError, JournalUnwritable, named
from supervisor.journal.integrity import findings
from supervisor.journal.journal import connect, epoch_of
from supervisor.journal.migrate import version

Row = dict[str, Any]

# A backup copies this many pages (8 MB) at a time, so that it can be cancelled soon.
_BACKUP_PAGES = 2048
# A page of an export ends after this many rows, or earlier when they are long.
_EXPORT_ROWS = 200
# Tables about the journal itself are of no use elsewhere.
_NOT_EXPORTED = ("life", "tallies", "days")
_JSON_COLUMNS = ("body", "messages", "killed", "choices")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection that changes nothing, not even by closing; errors become JournalErrors."""
    if not path.exists():
        raise JournalError(f"there is no journal {path}", "start the service once, or name another --home")
    try:
        with closing(connect(f"{path.absolute().as_uri()}?mode=ro")) as connection:
            yield connection
    except sqlite3.Error as error:
        raise named(error, str(path)) from error


def check(path: Path) -> tuple[str, ...]:
    """Check every page, every index, and the consistency of the rows; an empty result means intact."""
    with reading(path) as connection:
        return findings(connection, "integrity_check")


def stats(path: Path) -> Row:
    """Return the size of the journal, its counts, and the time of its first entry."""
    with reading(path) as connection:
        pages, free, size = (
            _pragma(connection, name) for name in ("page_count", "freelist_count", "page_size")
        )
        oldest, newest = connection.execute("SELECT min(at), max(at) FROM events").fetchone()
        open_turns = connection.execute("SELECT count(*) FROM turns WHERE ended_at IS NULL").fetchone()[0]
        return {
            "file": str(path),
            "bytes": pages * size,
            "free_bytes": free * size,
            "log_bytes": _size(Path(f"{path}-wal")),
            "schema": version(connection),
            "epoch": epoch_of(connection),
            "oldest_at": oldest,
            "newest_at": newest,
            "turns_open": open_turns,
            "rows": {
                table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
                for table in tables(connection)
            },
        }


def backup(path: Path, target: Path, give_up: Callable[[], bool]) -> Row:
    """Make a whole, checked copy as of one moment. It gets its name only when it is complete."""
    # A random name, so that an existing file is neither truncated nor removed.
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        if target.exists():
            raise JournalError(f"{target} exists already", "choose another name for the backup")
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            _copy(path, part, give_up)
            make_durable(part)
            os.replace(part, target)
            make_durable(target.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        fault = f"the backup {target} cannot be written ({error.strerror})"
        raise JournalUnwritable(fault, "choose a writable folder with free space") from error
    return {"file": str(target), "bytes": target.stat().st_size}


def _copy(path: Path, part: Path, give_up: Callable[[], bool]) -> None:
    def one_step(status: int, remaining: int, total: int) -> None:
        if give_up():
            raise JournalError("the backup was given up because the service stops", "make it again later")

    with reading(path) as source, closing(connect(str(part))) as copy:
        # The open read transaction fixes the copied moment, whatever is written meanwhile.
        source.execute("BEGIN")
        epoch_of(source)
        source.backup(copy, pages=_BACKUP_PAGES, progress=one_step)
        source.execute("COMMIT")
        # One file without a log beside it, and without free pages.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
        copy.execute("VACUUM")
        wrong = findings(copy, "quick_check")
    if wrong:
        raise JournalError(f"the copy is not sound ({wrong[0]})", "run `hermesctl journal check`")


def export_page(path: Path, session: str | None, after: str) -> Table:
    """Return the next rows after the place given by an earlier page, or from the beginning."""
    with reading(path) as connection:
        return page(_exported(connection, session, after), _EXPORT_ROWS)


def _exported(connection: sqlite3.Connection, session: str | None, after: str) -> Iterator[Placed]:
    """Yield table after table; a place is the table's name, a colon, and the key of a row."""
    names = [table for table in tables(connection) if table not in _NOT_EXPORTED]
    first, _, key_text = after.partition(":")
    if after and first not in names:
        raise BadPlace
    key = key_of(key_text, list[str | Number], [])
    for table in names[names.index(first) if after else 0 :]:
        for row, found in _rows_after(connection, table, session, key):
            yield row, f"{table}:{place(*found)}"
        key = []


def _rows_after(
    connection: sqlite3.Connection, table: str, session: str | None, key: list[str | int]
) -> Iterator[tuple[Row, list[Any]]]:
    """Yield the rows of one table and their keys, in key order."""
    columns, keys = _columns(connection, table)
    wanted, values = _of_session(table, columns, session)
    names = ", ".join(keys)
    if key:
        if len(key) != len(keys):
            raise BadPlace
        wanted.append(f"({names}) > ({', '.join('?' * len(keys))})")
        values += key
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    for found in connection.execute(f'SELECT * FROM "{table}" {where} ORDER BY {names}', values):
        row = dict(zip(columns, found, strict=True))
        shown = {"table": table} | {name: _plain(name, value) for name, value in row.items()}
        yield shown, [row[each.strip('"')] for each in keys]


def _of_session(table: str, columns: list[str], session: str | None) -> tuple[list[str], list[Any]]:
    if session is None:
        return [], []
    if table == "sessions":
        return ["name = ?"], [session]
    if "session" in columns:
        return ["session = ?"], [session]
    return ["turn IN (SELECT id FROM turns WHERE session = ?)"], [session]


def _plain(name: str, value: object) -> object:
    if name in _JSON_COLUMNS and isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
    return value


def tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    )
    return [row[0] for row in found]


def _columns(connection: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Return all columns, and those of the key, quoted and in its order."""
    found = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    keys = sorted((row[5], row[1]) for row in found if row[5])
    return [row[1] for row in found], [f'"{name}"' for _, name in keys]


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def make_durable(path: Path) -> None:
    """Sync the copy only: closing a second descriptor of the journal itself would drop its locks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
