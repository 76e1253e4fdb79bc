"""The journal on a PostgreSQL server: one life per run; written by one thread, read by the caller's.

The host's lock file is held as for a journal on disk, so that a start knows that the former life of its host
is over. The server's row of the life fences everything else (host_life.py). Other hosts use the same tables:
each loads and writes the sessions that it has claimed (owners.py), and holds them by its lease
(lease_keeper.py).
"""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from supervisor.clock import boottime
from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.state import State
from supervisor.host.lease import Lease
from supervisor.journal import lock as locking
from supervisor.journal.integrity import DISAGREEMENTS
from supervisor.journal.load import load, wake, wake_all
from supervisor.journal.postgres import host_life, server_schema
from supervisor.journal.postgres.batch_writer import BatchWriter
from supervisor.journal.postgres.clip_rows import ClipRows
from supervisor.journal.postgres.connecting import Connection, by_index, connect
from supervisor.journal.postgres.host_life import Host, Life
from supervisor.journal.postgres.host_list import hosts, running
from supervisor.journal.postgres.lease_keeper import LeaseKeeper
from supervisor.journal.postgres.loop_commit import LoopCommit
from supervisor.journal.postgres.notices import Notices
from supervisor.journal.postgres.owners import Owners
from supervisor.journal.postgres.read_threads import ReadThreads
from supervisor.journal.postgres.request_rows import RequestRows
from supervisor.journal.postgres.server_lookahead import ServerLookahead
from supervisor.journal.postgres.server_rows import ServerRows
from supervisor.journal.prune import Pruning
from supervisor.journal.reader import Reads
from supervisor.journal.tables import Tables

# Counted by the server's statistics: counting every row would read the whole journal.
_ROWS = """
    SELECT relname::text AS name, greatest(reltuples, 0)::bigint AS number FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"""
_STATS = """
    SELECT (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r') AS bytes,
        (SELECT version FROM journal_schema) AS schema,
        (SELECT min(created_at) FROM sessions) AS oldest_at,
        (SELECT max(last_at) FROM sessions) AS newest_at,
        (SELECT count(*) FROM turns WHERE state IN ('queued', 'running', 'asking')) AS turns_open"""


# Added to the lease for the time in which the process changes its image and renews nothing: an interpreter
# starts and loads the sessions within seconds. If it dies instead, a takeover is delayed by as much.
_HANDOVER_SECONDS = 15.0


class ServerJournal:
    """One life of one host. Reads see every commit that has returned."""

    def __init__(
        self,
        url: str,
        password: str,
        lock: int,
        life: Life,
        connection: Connection,
        host: Host,
        lease: Lease,
        batch: int = 0,
    ) -> None:
        self._lock = lock
        self.lease = lease
        self._life = life
        self.epoch = life.epoch
        open_another = partial(connect, url, life.connection_name, password)
        self._rows = ServerRows(open_another)
        home = host.name if host.has_local_files else ""
        self._writer = BatchWriter(connection, open_another, life, batch, lease.renewed, home)
        self._keeper = LeaseKeeper(open_another, life, host, lease)
        self.read = Reads(self._rows)
        self.asking = ReadThreads()
        self._engine_thread = ReadThreads(1)
        self._engine_rows = ServerRows(lambda: by_index(open_another()))
        self.ahead = ServerLookahead(self._engine_rows, self._engine_thread)
        self.tables = Tables(self._rows, self.read)
        self.notices = Notices(open_another, self.asking, life.epoch)
        self.requests = RequestRows(self.notices)
        self.clips = ClipRows(self._rows)
        self._group_commit = LoopCommit(self._writer)
        self.owners = Owners(self._keeper, self._rows, self.asking, self.epoch, host)
        # Nothing is added to them here: called without a step in between.
        self.wake = partial(wake, self._rows)
        self.hosts = partial(hosts, self._rows, self.epoch)
        self.running = partial(running, self._rows)
        self.wake_all = partial(wake_all, self._rows)
        self.commit = self._group_commit.commit
        self.commit_now = self._group_commit.commit_now

    @classmethod
    def open(cls, url: str, host: Host, lock: Path, password: str = "") -> "ServerJournal":
        """Take the host's lock first, then begin the next life of this host."""
        with ExitStack() as undo:
            held = locking.take(lock)
            undo.callback(os.close, held)
            connection = connect(url, f"hermes {host.name}", password)
            undo.callback(connection.close)
            server_schema.refuse_pooler(connection, partial(connect, url, f"hermes {host.name}", password))
            server_schema.prepare(connection)
            lease, asked_at = Lease(host.lease_seconds), boottime()
            life = host_life.begin(connection, host)
            lease.renewed(asked_at)
            undo.pop_all()
            return cls(url, password, held, life, connection, host, lease)

    @classmethod
    def take_over(cls, url: str, lock: int, handed: str, host: Host, password: str = "") -> "ServerJournal":
        """Continue the life of an earlier image of this process, which handed over its lock."""
        life, batch, memory = Life.taken(handed)
        connection = connect(url, life.connection_name, password)
        os.set_inheritable(lock, False)
        lease = Lease(host.lease_seconds, memory)
        return cls(url, password, lock, life, connection, host, lease, batch)

    @property
    def transactions(self) -> int:
        """Return how many batches this life has committed."""
        return self._writer.transactions

    def load(self, policy: Policy) -> State:
        """Return the sessions of this life, those without an owner among them."""
        return load(self._rows, policy, self.epoch, set(self.owners.adopt_left()))

    def came_from(self, session: str, turn: str) -> str:
        """Return the host that had the session's files until this turn; "" if they are here."""
        row = self._rows.one("SELECT came_from FROM homes WHERE session = ? AND turn = ?", (session, turn))
        return str(row["came_from"]) if row is not None else ""

    def known(self, message: str) -> Known | None:
        """Return the message with this id, or None."""
        return self.read.known(message)

    def cursors(self, session: str) -> dict[str, int]:
        """Return how far each named client has acknowledged a session's events."""
        return self.read.cursors(session)

    def begun_by(self, session: str) -> str | None:
        return self.read.begun_by(session)

    async def prune(self, pruning: Pruning) -> None:
        """Delete old ended turns, slice by slice between other commits."""
        while await self._group_commit.chore(pruning.slice):
            pass

    def check(self) -> tuple[str, ...]:
        """Return the contradictions between rows; the server takes care of its pages."""
        counted = ((words, self._rows.all(sql)[0][0]) for words, sql in DISAGREEMENTS)
        return tuple(words.format(number) for words, number in counted if number)

    def close(self) -> None:
        """Write what waits, end the life, release the lock. A second call does nothing."""
        if self._lock < 0:
            return
        self._stop()
        self._writer.close()
        os.close(self._lock)
        self._lock = -1

    def hand_over(self) -> tuple[int, str]:
        """Close all but the lock, which the next image of this process inherits together with the life."""
        self._stop()
        self._writer.extend(_HANDOVER_SECONDS, self.lease)
        lock, self._lock = self._lock, -1
        os.set_inheritable(lock, True)
        return lock, self._life.handed(self._writer.leave(), self.lease.handed())

    def refuse_loop(self) -> None:
        """From now on a read in the thread of an event loop is a defect, and raises."""
        self._rows.refuses_loop = self._engine_rows.refuses_loop = True

    def stats(self) -> dict[str, Any]:
        """Return the size of the journal and its counts, as those of a file."""
        (sums,) = self._rows.all(_STATS)
        rows = {row["name"]: row["number"] for row in self._rows.all(_ROWS)}
        return dict(sums) | {"file": "", "free_bytes": 0, "log_bytes": 0, "epoch": self.epoch, "rows": rows}

    def _stop(self) -> None:
        self.notices.close()
        self._group_commit.stop()
        self._keeper.close()
        self.asking.close()
        self._engine_thread.close()
        self._engine_rows.close()
        self._rows.close()
