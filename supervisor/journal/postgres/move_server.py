"""The ends of a move (journal/move.py) that are databases on a PostgreSQL server.

While a move is under way, no service begins a life in the database: beginning needs a lock of the server that
is held here. Hosts that share a source are stopped first; a life that ended without a word is marked as gone,
so that its process, should it be alive, cannot write what would not be moved.

The sums of a file belong to no life: they are moved as those of life 0, which is none.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import psycopg

from supervisor.journal.errors import JournalError, JournalLocked
from supervisor.journal.move import MovedTable, Row, moved_tables
from supervisor.journal.postgres import host_life, server_schema
from supervisor.journal.postgres.connecting import Connection, connect, named

_NAME = "hermes move"
# Rows that are fetched at a time: each may have the text of an answer.
_STEP_ROWS = 200

# Not at once: the server may not have noticed yet that the last move has ended.
_WAIT_FOR_LOCKS = "SELECT set_config('lock_timeout', %s, false)"
_HOLD = "SELECT pg_advisory_lock(%s)"
# A life whose lease is over is not waited for: it is marked as gone, and cannot write any more.
_LIVES = """
    SELECT name FROM lives WHERE NOT gone AND host <> %s AND until > clock_timestamp()
    ORDER BY epoch DESC LIMIT 1"""
_LAST_EPOCH = """
    SELECT greatest(pg_sequence_last_value(pg_get_serial_sequence('lives', 'epoch')::regclass),
        (SELECT max(epoch) FROM attempts), 0) AS epoch"""
# The names are those of the schema, never a value.
_OF_COLUMNS = """
    SELECT column_name::text AS name, data_type::text AS type, is_identity::text AS counts
    FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = %s"""
_COUNT_ON = """
    SELECT setval(pg_get_serial_sequence('{0}', '{1}'), greatest(max("{1}"), 1), max("{1}") IS NOT NULL)
    FROM "{0}" """
_EPOCHS_FROM = """
    SELECT setval(pg_get_serial_sequence('lives', 'epoch'), greatest(%(epoch)s, 1), %(epoch)s > 0)"""
_USED = "SELECT 1 FROM {} LIMIT 1"
_SUMMED = {
    "tallies": """
        SELECT what, sum(number) AS number FROM (
            SELECT what, number FROM tallies
            UNION ALL SELECT unnest(ARRAY['sessions', 'done', 'failed', 'interrupted']), 0) AS all_lives
        GROUP BY what""",
    "days": "SELECT day, sum(tokens) AS tokens, sum(cost) AS cost FROM days GROUP BY day",
}
_NO_LIFE = 0


class ServerSource:
    def __init__(self, connection: Connection, url: str, epoch: int) -> None:
        self._connection = connection
        self._url = url
        self.epoch = epoch

    def rows(self, table: MovedTable) -> Iterator[Row]:
        return _rows(self._connection, table)

    def clips(self) -> Iterator[Row]:
        return _clips(self._connection)

    def retire(self) -> str:
        """Refuse every start from now on."""
        self._connection.commit()
        server_schema.mark_as_moved(self._connection)
        return self._url


class ServerTarget:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._counted: list[tuple[str, str]] = []

    def take(self, table: MovedTable, rows: Iterable[Row]) -> None:
        found = {row["name"]: row for row in self._connection.execute(_OF_COLUMNS, (table.name,))}
        self._counted += [(table.name, name) for name, row in found.items() if row["counts"] == "YES"]
        truths = [at for at, name in enumerate(table.columns) if found[name]["type"] == "boolean"]
        life = (_NO_LIFE,) if table.name in _SUMMED else ()
        columns = f"{table.listed}, life" if life else table.listed
        sql = f'COPY "{table.name}" ({columns}) FROM STDIN'
        with self._connection.cursor() as cursor, cursor.copy(sql.encode()) as copy:
            for row in rows:
                values = list(row)
                for at in truths:
                    values[at] = None if row[at] is None else bool(row[at])
                copy.write_row((*values, *life))

    def rows(self, table: MovedTable) -> Iterator[Row]:
        return _rows(self._connection, table)

    def take_clips(self, clips: Iterable[Row]) -> None:
        for clip in clips:
            self._connection.execute("INSERT INTO clips (name, content) VALUES (%s, %s)", clip)

    def clips(self) -> Iterator[Row]:
        return _clips(self._connection)

    def finish(self, epoch: int) -> None:
        for table, column in self._counted:
            self._connection.execute(_COUNT_ON.format(table, column).encode())
        self._connection.execute(_EPOCHS_FROM, {"epoch": epoch})
        self._connection.commit()
        # The server would plan the first reads as if the tables were empty.
        names = ", ".join(f'"{table.name}"' for table in moved_tables())
        self._connection.execute(f"ANALYZE {names}".encode())
        self._connection.commit()


@contextmanager
def server_source(url: str, password: str, host: str) -> Iterator[ServerSource]:
    """`host` is the name of this one, whose lock the caller holds: its life is over."""
    with _held(url, password) as connection:
        server_schema.require_newest(connection)
        other = connection.execute(_LIVES, (host,)).fetchone()
        if other is not None:
            fault = f"host {other['name']} uses this database"
            raise JournalLocked(fault, "stop the service there first", pid=0)
        host_life.end_all(connection)
        connection.commit()
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        row = connection.execute(_LAST_EPOCH).fetchone()
        assert row is not None  # a SELECT without FROM has one row
        yield ServerSource(connection, url, int(row["epoch"]))


@contextmanager
def server_target(url: str, password: str) -> Iterator[ServerTarget]:
    """The database has no row of a journal, or it is refused. Nothing stays in it, unless it was finished."""
    with closing(connect(url, _NAME, password)) as connection:
        server_schema.refuse_pooler(connection, partial(connect, url, _NAME, password))
        server_schema.prepare(connection)
    with _held(url, password) as connection:
        for name in ("lives", "clips", *(table.name for table in moved_tables())):
            if connection.execute(_USED.format(name).encode()).fetchone() is not None:
                fault = f"the database is not empty: there are {name} in it"
                raise JournalError(fault, "name an empty database")
        yield ServerTarget(connection)


@contextmanager
def _held(url: str, password: str) -> Iterator[Connection]:
    """A connection with a transaction of its own, while no service can begin a life."""
    with closing(connect(url, _NAME, password)) as connection:
        try:
            connection.execute(_WAIT_FOR_LOCKS, ("3s",))
            connection.execute(_HOLD, (server_schema.BEGINNING,))
            connection.execute(_WAIT_FOR_LOCKS, ("0",))
            connection.autocommit = False
            yield connection
        except psycopg.errors.LockNotAvailable:
            fault = "a service begins in this database, or its journal is being moved"
            raise JournalLocked(fault, "name another database, or try again later", pid=0) from None
        except psycopg.Error as error:
            raise named(error) from error


def _clips(connection: Connection) -> Iterator[Row]:
    with connection.cursor("moved") as cursor:
        # One at a time: a clip may have megabytes.
        cursor.itersize = 1
        for row in cursor.execute("SELECT name, content FROM clips"):
            yield tuple(row)


def _rows(connection: Connection, table: MovedTable) -> Iterator[Row]:
    sql = _SUMMED.get(table.name, f'SELECT {table.listed} FROM "{table.name}"')
    with connection.cursor("moved") as cursor:
        cursor.itersize = _STEP_ROWS
        for row in cursor.execute(sql.encode()):
            yield tuple(row)
