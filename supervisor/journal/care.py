"""Care that only reads: look at every page, count, copy, export; by its own connection, beside a service."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from supervisor.journal.errors import JournalError, JournalUnwritable, named
from supervisor.journal.journal import connect, epoch_of
from supervisor.journal.migrate import version
from supervisor.journal.soundness import findings

Row = dict[str, Any]

# A backup is copied so many pages (8 MB) at a time, so that it can be given up soon.
_BACKUP_PAGES = 2048
# A page of an export ends after so many rows or characters: a fraction of what one frame may hold.
_EXPORT_ROWS = 200
_EXPORT_CHARACTERS = 1_000_000
# What the journal knows of itself is of no use elsewhere.
_NOT_EXPORTED = ("life", "tallies")
_JSON_COLUMNS = ("body", "messages", "killed", "choices")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing, not even by closing; errors come in our words."""
    if not path.exists():
        raise JournalError(f"there is no journal {path}", "start the service once, or name another --home")
    try:
        with closing(connect(f"{path.absolute().as_uri()}?mode=ro")) as connection:
            yield connection
    except sqlite3.Error as error:
        raise named(error, str(path)) from error


def check(path: Path) -> tuple[str, ...]:
    """Every page, every index, and whether the rows agree with each other; nothing found is good news."""
    with reading(path) as connection:
        return findings(connection, "integrity_check")


def stats(path: Path) -> Row:
    """How big it is, what is in it, and since when."""
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
    """A whole and checked copy as of one moment. It has its name only when it is complete."""
    if target.exists():
        raise JournalError(f"{target} exists already", "choose another name for the backup")
    part = target.with_name(target.name + ".part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        try:
            _copy(path, part, give_up)
            _make_durable(part)
            os.replace(part, target)
            _make_durable(target.parent)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        fault = f"the backup {target} cannot be written ({error.strerror})"
        raise JournalUnwritable(fault, "choose a folder with room that this user may write to") from error
    return {"file": str(target), "bytes": target.stat().st_size}


def _copy(path: Path, part: Path, give_up: Callable[[], bool]) -> None:
    def one_step(status: int, remaining: int, total: int) -> None:
        if give_up():
            raise JournalError("the backup was given up because the service stops", "make it again later")

    with reading(path) as source, closing(connect(str(part))) as copy:
        # With a read transaction open it is the journal of this moment, whatever is written meanwhile.
        source.execute("BEGIN")
        epoch_of(source)
        source.backup(copy, pages=_BACKUP_PAGES, progress=one_step)
        source.execute("COMMIT")
        # One file without a log beside it, and without the empty pages.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
        copy.execute("VACUUM")
        wrong = findings(copy, "quick_check")
    if wrong:
        raise JournalError(f"the copy is not sound ({wrong[0]})", "run `hermesctl journal check`")


def export_page(path: Path, session: str | None, after: str) -> tuple[list[Row], str]:
    """The next rows after a place that an earlier page gave (""), and the next place ("" at the end)."""
    with reading(path) as connection:
        names = [table for table in tables(connection) if table not in _NOT_EXPORTED]
        table, _, key = after.partition(":")
        if table and table not in names:
            raise JournalError(f"an export cannot go on after {after!r}", "begin it again")
        at = names.index(table) if table else 0
        rows, place = _rows_after(connection, names[at], session, json.loads(key) if key else None)
        if place is not None:
            return rows, f"{names[at]}:{json.dumps(place)}"
        return rows, f"{names[at + 1]}:" if at + 1 < len(names) else ""


def _rows_after(
    connection: sqlite3.Connection, table: str, session: str | None, key: list[Any] | None
) -> tuple[list[Row], list[Any] | None]:
    """A page of one table in the order of its key; the place is None when the table has no more."""
    columns, keys = _columns(connection, table)
    wanted, values = _of_session(table, columns, session)
    names = ", ".join(keys)
    if key is not None:
        wanted.append(f"({names}) > ({', '.join('?' * len(keys))})")
        values += key
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    cursor = connection.execute(f'SELECT * FROM "{table}" {where} ORDER BY {names}', values)
    rows: list[Row] = []
    characters = 0
    for found in cursor:
        row = dict(zip(columns, found, strict=True))
        rows.append({"table": table} | {name: _plain(name, value) for name, value in row.items()})
        characters += sum(len(value) for value in found if isinstance(value, str))
        if len(rows) == _EXPORT_ROWS or characters > _EXPORT_CHARACTERS:
            cursor.close()
            return rows, [row[each.strip('"')] for each in keys]
    return rows, None


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
    """All columns, and those of the key, quoted and in its order."""
    found = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    keys = sorted((row[5], row[1]) for row in found if row[5])
    return [row[1] for row in found], [f'"{name}"' for _, name in keys]


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _make_durable(path: Path) -> None:
    """Only of the copy: closing a second descriptor of the journal itself would drop its locks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
