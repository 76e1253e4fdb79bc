"""A life: one start of one host, as a row of the database.

The row is the fence of everything the life writes. Each batch first counts it up, and only from the number
before, and only while it is not gone. So a batch is applied once however often it is sent, and none is
applied after another life has marked this one as gone, whatever its process still believes.

The epoch is unique over all hosts. After the database was set back, by a backup or a replica that was behind,
the same number can be given to another life: the secret tells the two apart.
"""

import json
import secrets
from dataclasses import dataclass
from typing import Any

import psycopg

from supervisor.journal.errors import JournalEnded, JournalLocked
from supervisor.journal.postgres.connecting import Connection, named

# Makes one start at a time begin its life; any number that no other program uses.
BEGINNING = 0x6865726D6573

_OURS = "epoch = %(epoch)s AND secret = %(secret)s"
# Waits for a batch of a former life that is being written: what it commits is loaded afterwards.
_END_FORMER = "UPDATE lives SET gone = true WHERE host = %s AND NOT gone"
# A connection whose peer is gone without a word would hold the row of its life for ever.
_END_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = ANY(
        SELECT 'hermes ' || epoch || ' ' || left(md5(secret), 8) FROM lives WHERE host = %s AND NOT gone)"""
_OTHERS = "SELECT host FROM lives WHERE NOT gone ORDER BY epoch DESC LIMIT 1"
_BEGIN = """
    INSERT INTO lives (host, secret) VALUES (%s, %s)
    RETURNING epoch, left(md5(secret), 8) AS mark"""
_TALLIES = """
    INSERT INTO tallies (life, what, number)
    SELECT %s, what, 0 FROM unnest(ARRAY['sessions', 'done', 'failed', 'interrupted']) AS what"""
COUNT_BATCH = f"UPDATE lives SET batch = %(batch)s WHERE {_OURS} AND NOT gone AND batch = %(batch)s - 1"
AFFIRM = f"UPDATE lives SET batch = batch WHERE {_OURS} AND NOT gone"
_STAND = f"SELECT batch, gone FROM lives WHERE {_OURS}"
_END = f"UPDATE lives SET gone = true WHERE {_OURS}"


@dataclass(frozen=True, slots=True)
class Life:
    """The identity of a life; `mark` names its connections, and says nothing about the secret."""

    epoch: int
    host: str
    secret: str
    mark: str

    def handed(self, batch: int) -> str:
        """Return the life and the number of its last batch for the next image of this process."""
        return json.dumps([self.epoch, self.host, self.secret, self.mark, batch])

    @classmethod
    def taken(cls, handed: str) -> tuple["Life", int]:
        *life, batch = json.loads(handed)
        return cls(*life), batch

    @property
    def key(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "secret": self.secret}

    @property
    def connection_name(self) -> str:
        return f"hermes {self.epoch} {self.mark}"


def begin(connection: Connection, host: str) -> Life:
    """End the former life of this host and begin the next one, by the connection that will write for it.

    The caller holds the host's lock.
    """
    secret = secrets.token_hex(16)
    try:
        connection.execute(_END_CONNECTIONS, (host,))
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (BEGINNING,))
            connection.execute(_END_FORMER, (host,))
            other = connection.execute(_OTHERS).fetchone()
            if other is not None:
                fault = f"host {other['host']} has this database"
                raise JournalLocked(fault, "stop the service there, or name another database", pid=0)
            row = connection.execute(_BEGIN, (host, secret)).fetchone()
            assert row is not None  # an INSERT that succeeds returns its row
            connection.execute(_TALLIES, (row["epoch"],))
        life = Life(row["epoch"], host, secret, row["mark"])
        connection.execute("SELECT set_config('application_name', %s, false)", (life.connection_name,))
    except psycopg.Error as error:
        raise named(error) from error
    return life


def batch_of(connection: Connection, life: Life, acknowledged: int) -> int:
    """Return the number of the last batch that the server has; JournalEnded when it is over with this life.

    `acknowledged` is the number of the last batch that a client may have been told of.
    """
    row = connection.execute(_STAND, life.key).fetchone()
    if row is None:
        raise _lost(life, acknowledged)
    if row["gone"]:
        fault = f"life {life.epoch} of host {life.host} was ended by another start"
        raise JournalEnded(fault, "start the service again: what is in the database stands")
    if row["batch"] < acknowledged:
        raise _lost(life, acknowledged - int(row["batch"]))
    return int(row["batch"])


def end(connection: Connection, life: Life) -> None:
    """Mark the life as gone: nothing of it is under way."""
    connection.execute(_END, life.key)


def _lost(life: Life, batches: int) -> JournalEnded:
    fault = (
        f"the database has lost {batches} batches that life {life.epoch} had committed and acknowledged: "
        "a replica that was behind took over, or a backup was put in its place"
    )
    return JournalEnded(fault, "start the service again to continue from what is left")
