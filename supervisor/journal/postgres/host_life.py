"""A life: one start of one host, as a row of the database, held by a lease.

The row is the fence of everything the life writes. Each batch first counts it up, and only from the number
before, and only while it is not gone. So a batch is applied once however often it is sent, and none is
applied after another life has marked this one as gone, whatever its process still believes.

A life is held until a moment of the database's clock (`until`). Each batch moves it, and lease_keeper.py
moves it while there is nothing to write. Once it has passed, another life may mark this one as gone and take
its sessions over. Until one has, nothing is lost: the next renewal succeeds as any other.

    held ── renewed ──► held
      ├──── `until` passes, and another life finds it ──► gone
      ├──── a start on the same host, which holds the lock file ──► gone, at once
      └──── a clean end ──► gone, at once

The epoch is unique over all hosts. After the database was set back, by a backup or a replica that was behind,
the same number can be given to another life: the secret tells the two apart.

Two hosts of one name could not be told apart by people, and with local files a session would not find its
own. A start that finds another life of its name, begun elsewhere, waits to see whether it is renewed: then
that host lives, and the start is refused. Otherwise it died a moment ago, as a container that comes back
under another host name, and its life is ended when its lease is over.
"""

import json
import secrets
import threading
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import psycopg

from supervisor.clock import monotonic
from supervisor.journal.errors import JournalEnded, JournalUnfit
from supervisor.journal.postgres.connecting import Connection, named
from supervisor.journal.postgres.server_schema import BEGINNING, newest, refuse_excluded

_LOOK_SECONDS = 0.2

_OURS = "epoch = %(epoch)s AND secret = %(secret)s"
# Never earlier than before: a restart in place has extended it, and workers may run accordingly.
_HELD = "until = greatest(until, clock_timestamp() + {} * interval '1 s'), renewed_at = clock_timestamp()"
_EXTENDED, _HELD = _HELD.format("(lease + %(seconds)s)"), _HELD.format("lease")
_GONE = "gone = true, gone_at = clock_timestamp()"
# Waits for a batch of a former life that is being written: what it commits is loaded afterwards.
_END_FORMER = f"UPDATE lives SET {_GONE} WHERE host = %s AND NOT gone"
# A connection whose peer is gone without a word would hold the row of its life for ever.
_END_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = ANY(
        SELECT 'hermes ' || epoch || ' ' || left(md5(secret), 8) FROM lives WHERE {} AND NOT gone)"""
_OF_NAME = """
    SELECT epoch, host, renewed_at::text AS renewed_at, until < clock_timestamp() AS is_over, lease
    FROM lives WHERE name = %s AND host <> %s AND NOT gone ORDER BY epoch LIMIT 1"""
_BEGIN = """
    INSERT INTO lives (host, name, secret, lease, until, labels, version, schema)
    VALUES (%s, %s, %s, %s, clock_timestamp() + %s * interval '1 s', %s, %s, %s)
    RETURNING epoch, left(md5(secret), 8) AS mark"""
_TALLIES = """
    INSERT INTO tallies (life, what, number)
    SELECT %s, what, 0 FROM unnest(ARRAY['sessions', 'done', 'failed', 'interrupted']) AS what"""
# In the transaction that ends the former life, so that no other host has them before this one has ended the
# processes that its former life left.
_KEEP_SESSIONS = """
    UPDATE owners SET life = %s, claim = 0, taken = true
    FROM lives WHERE owners.life = lives.epoch AND lives.host = %s AND lives.gone AND NOT lives.cleared"""
COUNT_BATCH = (
    f"UPDATE lives SET batch = %(batch)s, {_HELD} WHERE {_OURS} AND NOT gone AND batch = %(batch)s - 1"
)
AFFIRM = f"UPDATE lives SET {_HELD} WHERE {_OURS} AND NOT gone"
RENEW = f"""
    UPDATE lives SET {_HELD}, state = %(state)s, seats = %(seats)s, free = %(free)s
    WHERE {_OURS} AND NOT gone RETURNING asked"""
# Only what was read: an operator may ask for something else meanwhile.
CARRIED_OUT = f"UPDATE lives SET asked = '' WHERE {_OURS} AND asked = %(asked)s"
ASK_HOST = "UPDATE lives SET asked = %s WHERE name = %s AND NOT gone AND until > clock_timestamp()"
EXTEND = f"UPDATE lives SET {_EXTENDED} WHERE {_OURS} AND NOT gone"
_STAND = f"SELECT batch, gone FROM lives WHERE {_OURS}"
_END = f"UPDATE lives SET {_GONE} WHERE {_OURS} AND NOT gone"
# Only if it was not renewed meanwhile.
_EXPIRE = f"UPDATE lives SET {_GONE} WHERE epoch = %s AND NOT gone AND until < clock_timestamp()"
# The row of a batch that is being written is waited for, but renewals of the own life must not wait long.
_NOT_LONG = "SET LOCAL lock_timeout = '500ms'"
_DURABLE = "SET LOCAL synchronous_commit = on"


@dataclass(frozen=True, slots=True)
class Host:
    """A host as its settings describe it. `place` is the machine and the folder whose lock it holds."""

    name: str
    place: str
    lease_seconds: float = 15.0
    labels: tuple[str, ...] = ()
    has_local_files: bool = True


@dataclass(frozen=True, slots=True)
class Life:
    """The identity of a life; `mark` names its connections, and says nothing about the secret."""

    epoch: int
    host: str
    secret: str
    mark: str

    def handed(self, batch: int, lease: int) -> str:
        """Return what the next image of this process continues with.

        That is the life, the number of its last batch, and the descriptor of the memory of its lease.
        """
        return json.dumps([self.epoch, self.host, self.secret, self.mark, batch, lease])

    @classmethod
    def taken(cls, handed: str) -> tuple["Life", int, int | None]:
        """An image of an earlier version has no lease."""
        epoch, host, secret, mark, batch, *lease = json.loads(handed)
        return cls(epoch, host, secret, mark), batch, lease[0] if lease else None

    @property
    def key(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "secret": self.secret}

    @property
    def connection_name(self) -> str:
        return f"hermes {self.epoch} {self.mark}"


def begin(connection: Connection, host: Host) -> Life:
    """End the former life of this host and begin the next one, by the connection that will write for it.

    The caller holds the host's lock.
    """
    secret = secrets.token_hex(16)
    lease = host.lease_seconds
    described = (lease, lease, json.dumps(host.labels), _version(), newest())
    try:
        connection.execute(_END_CONNECTIONS.format("host = %s").encode(), (host.place,))
        _refuse_name(connection, host)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (BEGINNING,))
            # A newer program may have migrated since the schema was looked at.
            refuse_excluded(connection)
            connection.execute(_END_FORMER, (host.place,))
            if (other := connection.execute(_OF_NAME, (host.name, host.place)).fetchone()) is not None:
                raise _taken_name(host, other["host"])
            row = connection.execute(_BEGIN, (host.place, host.name, secret, *described)).fetchone()
            assert row is not None  # an INSERT that succeeds returns its row
            connection.execute(_TALLIES, (row["epoch"],))
            connection.execute(_KEEP_SESSIONS, (row["epoch"], host.place))
        life = Life(row["epoch"], host.place, secret, row["mark"])
        connection.execute("SELECT set_config('application_name', %s, false)", (life.connection_name,))
    except psycopg.Error as error:
        raise named(error) from error
    return life


def _version() -> str:
    try:
        return metadata.version("hermes-supervisor")
    except metadata.PackageNotFoundError:
        return ""


def _refuse_name(connection: Connection, host: Host) -> None:
    """Return when no other life has this name; JournalUnfit when one has, and is renewed."""
    began, seen = monotonic(), ""
    while (other := connection.execute(_OF_NAME, (host.name, host.place)).fetchone()) is not None:
        if seen and other["renewed_at"] != seen:
            raise _taken_name(host, other["host"])
        seen = other["renewed_at"]
        # As in a takeover: after an outage of the database, a life that could not be renewed gets the time.
        if other["is_over"] and monotonic() - began > other["lease"]:
            expire(connection, int(other["epoch"]))
        threading.Event().wait(_LOOK_SECONDS)


def _taken_name(host: Host, place: str) -> JournalUnfit:
    fault = f"another host with the name {host.name} uses this database ({place})"
    return JournalUnfit(fault, "give each host a name of its own: [hosts] name in hermes.toml")


def expire(connection: Connection, epoch: int) -> bool:
    """End the connections of a life whose lease is over and mark it as gone; False if it was renewed since.

    Its connections first: a batch that was sent half holds the row of its life for ever. After the commit no
    batch of that life changes anything, and its sessions belong to the first that takes them.
    """
    # Also its renewals end: they would be in vain, and its process is told of it by the cut.
    connection.execute(_END_CONNECTIONS.format("epoch = %s AND until < clock_timestamp()").encode(), (epoch,))
    with connection.transaction():
        connection.execute(_NOT_LONG)
        connection.execute(_DURABLE)
        return connection.execute(_EXPIRE, (epoch,)).rowcount == 1


def batch_of(connection: Connection, life: Life, acknowledged: int) -> int:
    """Return the number of the last batch that the server has; JournalEnded when it is over with this life.

    `acknowledged` is the number of the last batch that a client may have been told of.
    """
    row = connection.execute(_STAND, life.key).fetchone()
    if row is None:
        raise _lost(life, acknowledged)
    if row["gone"]:
        raise ended(life)
    if row["batch"] < acknowledged:
        raise _lost(life, acknowledged - int(row["batch"]))
    return int(row["batch"])


def end(connection: Connection, life: Life) -> None:
    """Mark the life as gone: nothing of it is under way."""
    connection.execute(_END, life.key)


def end_all(connection: Connection) -> None:
    """Mark every life as gone; the caller keeps others from beginning, and knows that all are over."""
    connection.execute(_END_CONNECTIONS.format("true").encode())
    connection.execute(f"UPDATE lives SET {_GONE} WHERE NOT gone")


def ended(life: Life) -> JournalEnded:
    fault = (
        f"life {life.epoch} of host {life.host} was ended by another start, or its lease ran out and another "
        "host took its sessions"
    )
    return JournalEnded(fault, "start the service again: what is in the database stands")


def _lost(life: Life, batches: int) -> JournalEnded:
    fault = (
        f"the database has lost {batches} batches that life {life.epoch} had committed and acknowledged: "
        "a replica that was behind took over, or a backup was put in its place"
    )
    return JournalEnded(fault, "start the service again to continue from what is left")
