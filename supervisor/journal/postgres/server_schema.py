"""The schema on the server: numbered scripts, applied in order, each in one transaction with its number."""

import secrets
from collections.abc import Callable
from importlib import resources

import psycopg

from supervisor.journal.errors import JournalTooNew, JournalUnfit
from supervisor.journal.migrate import steps_in
from supervisor.journal.postgres.connecting import Connection, named

# Earlier servers do not have what the statements of this package use, or are not maintained any more.
VERSION_MIN = 140_000
# One start at a time migrates; any number that no other program uses.
_MIGRATING = 0x68736368656D61

_MARK = "SELECT current_setting('hermes.session', true) AS mark"
_FOUND = "SELECT to_regclass('journal_schema') IS NOT NULL AS is_there"
_STEPS = resources.files("supervisor.journal.postgres") / "schema"


def prepare(connection: Connection) -> None:
    """Refuse a server that cannot be used, then migrate its schema to that of this version."""
    try:
        _refuse_unfit(connection)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            found = _version(connection)
            newest = steps_in(_STEPS)[-1][0]
            if found > newest:
                fault = f"the database has schema {found}, this version knows {newest} at most"
                raise JournalTooNew(fault, "install the version that wrote it, or a later one")
            for number, script in steps_in(_STEPS):
                if number > found:
                    connection.execute(script.encode())
                    connection.execute("UPDATE journal_schema SET version = %s", (number,))
    except psycopg.Error as error:
        raise named(error) from error


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


def _refuse_unfit(connection: Connection) -> None:
    version = connection.info.server_version
    if version < VERSION_MIN:
        fault = f"the server is PostgreSQL {version // 10_000}, too old for the journal"
        raise JournalUnfit(fault, f"use PostgreSQL {VERSION_MIN // 10_000} or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        fault = f"the database has the encoding {encoding}, which cannot hold every text"
        raise JournalUnfit(fault, "create it with the encoding UTF8 and the template template0")
