"""Schema migrations: numbered scripts, applied in order, each in one transaction with its number."""

import sqlite3
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from supervisor.journal.errors import JournalTooNew


@cache
def steps() -> tuple[tuple[int, str], ...]:
    """Return every migration of the file; the scripts are read once."""
    return steps_in(resources.files("supervisor.journal") / "schema")


def steps_in(folder: Traversable) -> tuple[tuple[int, str], ...]:
    """Return the migrations in a folder as (number, script), in order and without a gap."""
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name
    )
    return tuple((int(each.name.partition("_")[0]), each.read_text(encoding="utf-8")) for each in files)


def newest() -> int:
    return steps()[-1][0]


def refuse_newer(connection: sqlite3.Connection, journal: str) -> None:
    """Refuse a file of a later version, unchanged."""
    found = version(connection)
    if found > newest():
        fault = f"the journal {journal} has schema {found}, this version knows {newest()} at most"
        raise JournalTooNew(fault, "install the version that wrote it, or a later one")


def migrate(connection: sqlite3.Connection, journal: str) -> None:
    """Migrate the file to the schema of this version."""
    refuse_newer(connection, journal)
    found = version(connection)
    for number, script in steps():
        if number > found:
            _apply(connection, number, script)


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _apply(connection: sqlite3.Connection, number: int, script: str) -> None:
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
