"""The schema on the server: numbered scripts, applied in order, each in one transaction with its number."""

from importlib import resources

import psycopg

from supervisor.journal.errors import JournalTooNew, JournalUnwritable
from supervisor.journal.migrate import steps_in
from supervisor.journal.postgres.connecting import Connection, named

# Earlier servers do not have what the statements of this package use, or are not maintained any more.
VERSION_MIN = 140_000
# One start at a time migrates; any number that no other program uses.
_MIGRATING = 0x68736368656D61

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
        raise JournalUnwritable(fault, f"use PostgreSQL {VERSION_MIN // 10_000} or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        fault = f"the database has the encoding {encoding}, which cannot hold every text"
        raise JournalUnwritable(fault, "create it with the encoding UTF8 and the template template0")
