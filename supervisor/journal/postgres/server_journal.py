"""The journal on a PostgreSQL server: one life per run; written by one thread, read by the caller's.

The host's lock file is held as for a journal on disk, so that a start knows that the former life of its host
is over. The server's row of the life fences everything else (host_life.py).
"""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from supervisor.core.events import Known
from supervisor.journal import lock as locking
from supervisor.journal.group_commit import GroupCommit
from supervisor.journal.integrity import DISAGREEMENTS
from supervisor.journal.load import load, wake
from supervisor.journal.postgres import host_life, server_schema
from supervisor.journal.postgres.batch_writer import BatchWriter
from supervisor.journal.postgres.connecting import Connection, connect
from supervisor.journal.postgres.host_life import Life
from supervisor.journal.postgres.server_rows import ServerRows
from supervisor.journal.prune import Pruning
from supervisor.journal.reader import Reads
from supervisor.journal.tables import Tables


class ServerJournal:
    """One life of one host. Reads see every commit that has returned."""

    def __init__(self, url: str, lock: int, life: Life, connection: Connection) -> None:
        self._lock = lock
        self.epoch = life.epoch
        open_another = partial(connect, url, life.connection_name)
        self._rows = ServerRows(open_another)
        self._writer = BatchWriter(connection, open_another, life)
        self.read = Reads(self._rows)
        self.tables = Tables(self._rows, self.read)
        self._group_commit = GroupCommit(self._writer)
        # Nothing is added to them here: called without a step in between.
        self.load = partial(load, self._rows, epoch=self.epoch)
        self.wake = partial(wake, self._rows)
        self.commit = self._group_commit.commit
        self.commit_now = self._group_commit.commit_now

    @classmethod
    def open(cls, url: str, host: str, lock: Path) -> "ServerJournal":
        """Take the host's lock first, then begin the next life of this host."""
        with ExitStack() as undo:
            held = locking.take(lock)
            undo.callback(os.close, held)
            connection = connect(url, f"hermes {host}")
            undo.callback(connection.close)
            server_schema.prepare(connection)
            life = host_life.begin(connection, host)
            undo.pop_all()
            return cls(url, held, life, connection)

    @property
    def transactions(self) -> int:
        """Return how many batches this life has committed."""
        return self._writer.transactions

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
        self._group_commit.stop()
        self._rows.close()
        self._writer.close()
        os.close(self._lock)
        self._lock = -1
