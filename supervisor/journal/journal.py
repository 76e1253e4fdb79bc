"""The journal on disk: locked, migrated, a new life counted; written by one thread, read by the caller's.

WAL with synchronous=FULL: a commit whose awaitable has returned is there after a power cut.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.core.state import Session, State
from supervisor.journal import lock as locking
from supervisor.journal.errors import JournalError, JournalUnwritable, damaged, named
from supervisor.journal.group_commit import Chore, Commit, Groups
from supervisor.journal.integrity import broken_pages, disagreements, findings
from supervisor.journal.load import load, wake
from supervisor.journal.migrate import migrate, newest, refuse_newer, version
from supervisor.journal.prune import Pruning
from supervisor.journal.reader import Reads
from supervisor.journal.rows import Rows
from supervisor.journal.tables import Tables
from supervisor.journal.writer import Writer

# One process writes, so a lock inside SQLite is held for the blink of a backup or a recovery at most.
_BUSY_SECONDS = 5.0
_FAREWELL_MS = 200
# Every statement of this room stays prepared.
_STATEMENTS_KEPT = 256
# Every page of a file up to this size is looked at on each start; a bigger one by `check` when asked.
CHECKED_AT_START_BYTES_MAX = 16 * 1024 * 1024


class Journal:
    """One file, one process. Reads happen in the calling thread and see every commit that has returned."""

    def __init__(
        self, path: Path, lock: int, writing: sqlite3.Connection, reading: sqlite3.Connection
    ) -> None:
        self._path = path
        self._lock = lock
        self._writing = writing
        self._reading = reading
        self._rows = Rows(reading, str(path))
        self._writer = Writer(writing, str(path))
        self.epoch = epoch_of(writing)
        self.read = Reads(self._rows)
        self.tables = Tables(self._rows, self.read)
        self._groups = Groups(self._writer)

    @classmethod
    def open(cls, path: Path, lock: Path) -> "Journal":
        """Take the lock first, so that no second process ever touches the file; then begin a new life."""
        return cls._open(path, locking.take(lock), begin_life)

    @classmethod
    def take_over(cls, path: Path, lock: int) -> "Journal":
        """Go on with the life of an earlier image of this process, which left its lock."""
        os.set_inheritable(lock, False)
        return cls._open(path, lock, _go_on)

    @classmethod
    def _open(cls, path: Path, lock: int, begin: Callable[[sqlite3.Connection], None]) -> "Journal":
        with ExitStack() as undo:
            undo.callback(os.close, lock)
            try:
                journal = cls(path, lock, *_connect(path, undo, begin))
            except sqlite3.Error as error:
                raise named(error, str(path)) from error
            undo.pop_all()
            return journal

    @property
    def transactions(self) -> int:
        """How many transactions this life has committed."""
        return self._writer.transactions

    def load(self, policy: Policy) -> State:
        """Every session with something open, as the last life left it."""
        return load(self._rows, policy, self.epoch)

    def wake(self, session: str) -> Session | None:
        """A session that is not in memory, or None when it never was."""
        return wake(self._rows, session)

    def known(self, message: str) -> Known | None:
        """The message of this id, or None when there is none."""
        return self.read.known(message)

    def cursors(self, session: str) -> dict[str, int]:
        """How far each named client has read a session's feed."""
        return self.read.cursors(session)

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        """Write all or none. Commits that wait at the same moment share a transaction, in their order."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def deliver(error: JournalError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._groups.put(Commit(records, deliver, loop))
        return future

    def commit_now(self, records: Sequence[Record]) -> None:
        """The same, waiting for it in this thread."""
        outcome: Future[JournalError | None] = Future()
        self._groups.put(Commit(records, outcome.set_result, None))
        error = outcome.result()
        if error is not None:
            raise error

    async def prune(self, pruning: Pruning) -> None:
        """Forget what is over, slice by slice between the commits of others."""
        while await self._chore(pruning.slice):
            pass

    def _chore(self, run: Callable[[sqlite3.Connection], bool]) -> "asyncio.Future[bool]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()

        def deliver(outcome: bool | JournalError) -> None:
            if future.done():
                return
            if isinstance(outcome, JournalError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._groups.put(Chore(run, deliver, loop))
        return future

    def check(self) -> tuple[str, ...]:
        """Look at every page; what is wrong, in SQLite's words. Takes as long as the file is big."""
        return findings(self._reading, "quick_check")

    def hand_over(self) -> int:
        """Close all but the lock, which the next image of this process inherits."""
        lock, self._lock = self._lock, -1
        os.set_inheritable(lock, True)
        self._close()
        return lock

    def close(self) -> None:
        """Write what waits, fold the log into the file, give the lock back. A second call does nothing."""
        if self._lock < 0:
            return
        self._close()
        os.close(self._lock)
        self._lock = -1

    def _close(self) -> None:
        self._groups.stop()
        self._reading.close()
        # If that fails, the log still has everything.
        with suppress(sqlite3.Error):
            # Whoever still reads, a backup perhaps, is not worth a late end.
            self._writing.execute(f"PRAGMA busy_timeout = {_FAREWELL_MS}")
            self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._writing.close()


def _connect(
    path: Path, undo: ExitStack, begin: Callable[[sqlite3.Connection], None]
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """The writing and the reading connection, of a file that is sound and has its newest shape."""
    _make(path)
    _look_at(path)
    writing = connect(str(path))
    undo.callback(writing.close)
    writing.execute("PRAGMA synchronous = FULL")
    # The writing thread carries the log over when it has nothing else to do, not in the middle of a commit.
    writing.execute("PRAGMA wal_autocheckpoint = 0")
    if writing.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        fault = f"the journal {path} cannot keep a write-ahead log on this file system"
        raise JournalUnwritable(fault, "put it on a local disk")
    migrate(writing, str(path))
    begin(writing)
    reading = connect(f"{path.absolute().as_uri()}?mode=ro")
    undo.callback(reading.close)
    return writing, reading


def connect(database: str) -> sqlite3.Connection:
    """Transactions are written out, and the connection may be used by whichever thread's turn it is."""
    return sqlite3.connect(
        database,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_KEPT,
        uri=database.startswith("file:"),
    )


def begin_life(connection: sqlite3.Connection) -> None:
    """Count one more life, before anything of it can be seen."""
    connection.execute("UPDATE life SET epoch = epoch + 1")


def _go_on(connection: sqlite3.Connection) -> None:
    """The same life: its number stays."""


def epoch_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT epoch FROM life").fetchone()[0])


def _make(path: Path) -> None:
    """SQLite would make the file readable for others; its log takes over the rights of the file."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        fault = f"the journal {path} cannot be opened ({error.strerror})"
        raise JournalUnwritable(fault, "look at the rights on the file and its folder") from error


def _look_at(path: Path) -> None:
    """Refuse what is damaged or too new, by a connection that changes nothing, not even when it closes."""
    with closing(connect(f"{path.absolute().as_uri()}?mode=ro")) as looking:
        refuse_newer(looking, str(path))
        if path.stat().st_size > CHECKED_AT_START_BYTES_MAX:
            return
        found = broken_pages(looking, "quick_check")
        if not found and version(looking) == newest():
            found = disagreements(looking)
    if found:
        raise damaged(str(path), found[0])
