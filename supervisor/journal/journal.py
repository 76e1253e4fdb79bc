"""The journal on disk: locked, migrated, one epoch per run; written by one thread, read by the caller's.

WAL with synchronous=FULL: a commit whose awaitable has returned survives a power cut.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

from supervisor.core.events import Known
from supervisor.journal import lock as locking
from supervisor.journal.asking import InPlace
from supervisor.journal.errors import JournalUnwritable, damaged, named
from supervisor.journal.group_commit import GroupCommit
from supervisor.journal.integrity import broken_pages, disagreements, findings
from supervisor.journal.load import load, wake
from supervisor.journal.migrate import migrate, newest, refuse_newer, version
from supervisor.journal.prune import Pruning
from supervisor.journal.reader import Reads
from supervisor.journal.rows import FileRows
from supervisor.journal.tables import Tables
from supervisor.journal.writer import Writer

# Only one process writes, so SQLite's own lock is held briefly, by a backup or a recovery.
_BUSY_SECONDS = 5.0
_CLOSE_MS = 200
# Large enough to keep every statement of this package prepared.
_STATEMENTS_KEPT = 256
# A file up to this size is checked whole on each start; a larger one only by `check` on request.
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
        self._rows = FileRows(reading, str(path))
        self._writer = Writer(writing, str(path))
        self.epoch = epoch_of(writing)
        self.read = Reads(self._rows)
        self.asking = InPlace()
        # A file answers each question of the engine in place.
        self.ahead = None
        # A file belongs to one host: there is no other to be told anything.
        self.notices = None
        self.owners = None
        self.hosts = None
        self.running = None
        self.lease = None
        self.came_from = None
        self.wake_all = None
        self.tables = Tables(self._rows, self.read)
        self._group_commit = GroupCommit(self._writer)
        # Nothing is added to them here: called without a step in between.
        self.load = partial(load, self._rows, epoch=self.epoch)
        self.wake = partial(wake, self._rows)
        self.commit = self._group_commit.commit
        self.commit_now = self._group_commit.commit_now

    @classmethod
    def open(cls, path: Path, lock: Path) -> "Journal":
        """Take the lock first, so that no second process ever opens the file; then begin a new epoch."""
        return cls._open(path, locking.take(lock), begin_life)

    @classmethod
    def take_over(cls, path: Path, lock: int) -> "Journal":
        """Continue the epoch of an earlier image of this process, which handed over its lock."""
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
        """Return how many transactions this run has committed."""
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
        """Check every page and return SQLite's findings. The time grows with the size of the file."""
        return findings(self._reading, "quick_check")

    def hand_over(self) -> tuple[int, str]:
        """Close all but the lock, which the next image of this process inherits; a file has no life."""
        lock, self._lock = self._lock, -1
        os.set_inheritable(lock, True)
        self._close()
        return lock, ""

    def refuse_loop(self) -> None:
        """A file is read in the thread of the event loop."""

    def close(self) -> None:
        """Write what waits, checkpoint the log, release the lock. A second call does nothing."""
        if self._lock < 0:
            return
        self._close()
        os.close(self._lock)
        self._lock = -1

    def _close(self) -> None:
        self._group_commit.stop()
        self._reading.close()
        # If the checkpoint fails, the log still has everything.
        with suppress(sqlite3.Error):
            # A reader that is still open, such as a backup, must not delay the end of the process.
            self._writing.execute(f"PRAGMA busy_timeout = {_CLOSE_MS}")
            self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._writing.close()


def _connect(
    path: Path, undo: ExitStack, begin: Callable[[sqlite3.Connection], None]
) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Open the writing and the reading connection of a file that is intact and migrated."""
    _make(path)
    _look_at(path)
    writing = connect(str(path))
    undo.callback(writing.close)
    writing.execute("PRAGMA synchronous = FULL")
    # The writing thread checkpoints when it is idle, not in the middle of a commit.
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
    """Open a connection with explicit transactions that any one thread at a time may use."""
    return sqlite3.connect(
        database,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_KEPT,
        uri=database.startswith("file:"),
    )


def begin_life(connection: sqlite3.Connection) -> None:
    """Raise the epoch, before anything of this run can be seen."""
    connection.execute("UPDATE life SET epoch = epoch + 1")


def _go_on(connection: sqlite3.Connection) -> None:
    """Continue the same epoch."""


def epoch_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT epoch FROM life").fetchone()[0])


def _make(path: Path) -> None:
    """Create the file private: SQLite would make it readable for others. Its log inherits the mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        fault = f"the journal {path} cannot be opened ({error.strerror})"
        raise JournalUnwritable(fault, "look at the rights on the file and its folder") from error


def _look_at(path: Path) -> None:
    """Refuse a damaged or too new file, by a connection that changes nothing, not even when it closes."""
    with closing(connect(f"{path.absolute().as_uri()}?mode=ro")) as looking:
        refuse_newer(looking, str(path))
        if path.stat().st_size > CHECKED_AT_START_BYTES_MAX:
            return
        found = broken_pages(looking, "quick_check")
        if not found and version(looking) == newest():
            found = disagreements(looking)
    if found:
        raise damaged(str(path), found[0])
