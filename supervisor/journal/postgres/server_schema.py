"""The schema on the server: numbered scripts, applied in order, each in one transaction with its number.

Several hosts share the schema, and are upgraded one after the other. The row of `journal_schema` has its
version and the oldest one whose programs may write: a program that is older than the schema goes on, unless a
step has excluded it.
"""

import secrets
from collections.abc import Callable
from importlib import resources

import psycopg

from supervisor.journal.errors import JournalError, JournalUnfit
from supervisor.journal.migrate import steps_in
from supervisor.journal.postgres.connecting import Connection, named

# Earlier servers do not have what the statements of this package use, or are not maintained any more.
VERSION_MIN = 140_000
# One start at a time migrates, and one begins its life; any numbers that no other program uses.
_MIGRATING = 0x68736368656D61
BEGINNING = 0x6865726D6573

_MARK = "SELECT current_setting('hermes.session', true) AS mark"
_FOUND = "SELECT to_regclass('journal_schema') IS NOT NULL AS is_there"
_LIMITS = """
    SELECT oldest, to_char(moved_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI UTC') AS moved_at
    FROM journal_schema"""
_EXCLUDED = """
    SELECT name, lives.version FROM lives JOIN journal_schema ON lives.schema < journal_schema.oldest
    WHERE NOT gone AND until > clock_timestamp() LIMIT 1"""
_STEPS = resources.files("supervisor.journal.postgres") / "schema"


def prepare(connection: Connection) -> None:
    """Refuse a server that cannot be used, then migrate its schema to that of this version."""
    try:
        _refuse_unfit(connection)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            found = _version(connection)
            for number, script in steps_in(_STEPS):
                if number > found:
                    connection.execute(script.encode())
                    connection.execute("UPDATE journal_schema SET version = %s", (number,))
            refuse_excluded(connection)
            if found < newest():
                _refuse_excluding(connection)
    except psycopg.Error as error:
        raise named(error) from error


def newest() -> int:
    """Return the schema for which this program was made."""
    return steps_in(_STEPS)[-1][0]


def require_newest(connection: Connection) -> None:
    """Refuse a database that has no journal of exactly this schema, without a change."""
    row = connection.execute(_FOUND).fetchone()
    found = _version(connection) if row is not None and row["is_there"] else 0
    if not found:
        raise JournalError("the database has no journal", "correct [journal] url")
    if found != newest():
        fault = f"the database has schema {found}, and {newest()} is needed"
        raise JournalError(fault, "start the service once with the newest version, stop it, then move")
    refuse_excluded(connection)


def mark_as_moved(connection: Connection) -> None:
    connection.execute("UPDATE journal_schema SET moved_at = clock_timestamp()")
    connection.commit()


def refuse_pooler(connection: Connection, connect: Callable[[], Connection]) -> None:
    """Refuse a pooler that gives the connection of one client to another between two transactions.

    A setting of one session is seen by another then, or is gone while the other is in a transaction.
    """
    mark = secrets.token_hex(8)
    try:
        connection.execute("SELECT set_config('hermes.session', %s, false)", (mark,))
        with connect() as other, other.transaction():
            seen = other.execute(_MARK).fetchone()
            kept = connection.execute(_MARK).fetchone()
    except psycopg.Error as error:
        raise named(error) from error
    if (seen is not None and seen["mark"] == mark) or kept is None or kept["mark"] != mark:
        fault = "between the service and the database is a pooler that shares connections by transaction"
        raise JournalUnfit(fault, "name the server itself in [journal] url, or set pool_mode = session")


def _version(connection: Connection) -> int:
    row = connection.execute(_FOUND).fetchone()
    if row is None or not row["is_there"]:
        connection.execute("CREATE TABLE journal_schema (version bigint NOT NULL)")
        connection.execute("INSERT INTO journal_schema (version) VALUES (0)")
        return 0
    found = connection.execute("SELECT version FROM journal_schema").fetchone()
    return int(found["version"]) if found is not None else 0


def refuse_excluded(connection: Connection) -> None:
    """Refuse a database that this program may not write to."""
    row = connection.execute(_LIMITS).fetchone()
    assert row is not None  # written together with the table
    if row["oldest"] > newest():
        fault = f"the database needs a program for schema {row['oldest']}, this one was made for {newest()}"
        raise JournalUnfit(fault, "install the version that the other hosts have, or a later one")
    if row["moved_at"]:
        fault = f"the journal of this database was moved elsewhere on {row['moved_at']}"
        hint = "correct [journal] in hermes.toml; `UPDATE journal_schema SET moved_at = NULL` takes it back"
        raise JournalUnfit(fault, hint)


def _refuse_excluding(connection: Connection) -> None:
    """Refuse a migration that excludes a host that is running: it would go on with what it does not know.

    A life that begins meanwhile waits for the lock, and then looks at the schema again. A move holds it for
    long.
    """
    connection.execute("SET LOCAL lock_timeout = '10s'")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (BEGINNING,))
    row = connection.execute(_EXCLUDED).fetchone()
    if row is not None:
        fault = (
            f"host {row['name']} runs version {row['version']}, which does not know the schema of this one"
        )
        raise JournalUnfit(fault, "upgrade that host first to the version before this one, or stop it")


def _refuse_unfit(connection: Connection) -> None:
    version = connection.info.server_version
    if version < VERSION_MIN:
        fault = f"the server is PostgreSQL {version // 10_000}, too old for the journal"
        raise JournalUnfit(fault, f"use PostgreSQL {VERSION_MIN // 10_000} or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        fault = f"the database has the encoding {encoding}, which cannot hold every text"
        raise JournalUnfit(fault, "create it with the encoding UTF8 and the template template0")
