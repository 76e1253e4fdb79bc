"""The ends of a move (move.py) that are files: the journal in the state folder, given away or taken."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from supervisor.clock import Clock
from supervisor.journal.errors import JournalError, JournalUnwritable, damaged, named
from supervisor.journal.integrity import findings
from supervisor.journal.journal import connect, epoch_of
from supervisor.journal.maintenance import make_durable, reading
from supervisor.journal.migrate import migrate, newest, version
from supervisor.journal.move import MovedTable, Row, moved_tables

_LOG = ("-wal", "-shm")
_WITH_LOG = (*_LOG, "")


class FileSource:
    """A journal file, by a connection that changes nothing."""

    def __init__(self, path: Path, folder: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._folder = folder
        self._connection = connection
        self.epoch = epoch_of(connection)

    def rows(self, table: MovedTable) -> Iterator[Row]:
        return self._connection.execute(f'SELECT {table.listed} FROM "{table.name}"')

    def clips(self) -> Iterator[Row]:
        for (name,) in self._connection.execute("SELECT DISTINCT clip FROM messages WHERE clip <> ''"):
            # The clips of old messages are removed after a while.
            if (self._folder / name).is_file():
                yield name, (self._folder / name).read_bytes()

    def retire(self) -> str:
        """Rename the file: a service whose settings were not changed would go on with it."""
        self._connection.close()
        kept = self._path.with_name(f"{self._path.name}.moved-{int(Clock().now())}")
        try:
            for suffix in _WITH_LOG:
                with suppress(FileNotFoundError):
                    os.rename(f"{self._path}{suffix}", f"{kept}{suffix}")
            make_durable(self._path.parent)
        except OSError as error:
            fault = f"the journal was moved, and {self._path} cannot be renamed ({error.strerror})"
            raise JournalUnwritable(fault, "rename it, so that no service goes on with it") from error
        return str(kept)


class FileTarget:
    """A new file, which takes the journal's name when it is complete."""

    def __init__(self, path: Path, folder: Path, part: Path) -> None:
        self._path = path
        self._folder = folder
        self._part = part
        self._clips: list[str] = []
        self._connection = connect(str(part))

    def begin(self) -> None:
        migrate(self._connection, str(self._part))
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("BEGIN")

    def take(self, table: MovedTable, rows: Iterable[Row]) -> None:
        # The schema gives a new file tallies of its own.
        self._connection.execute(f'DELETE FROM "{table.name}"')
        values = ", ".join("?" * len(table.columns))
        self._connection.executemany(f'INSERT INTO "{table.name}" ({table.listed}) VALUES ({values})', rows)

    def rows(self, table: MovedTable) -> Iterator[Row]:
        return self._connection.execute(f'SELECT {table.listed} FROM "{table.name}"')

    def take_clips(self, clips: Iterable[Row]) -> None:
        """What a move that is not finished leaves is removed as a clip that belongs to no message."""
        for name, content in clips:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            path = self._folder / Path(name).name
            path.touch(0o600)
            path.write_bytes(content)
            make_durable(path)
            self._clips.append(name)

    def clips(self) -> Iterator[Row]:
        return ((name, (self._folder / Path(name).name).read_bytes()) for name in self._clips)

    def finish(self, epoch: int) -> None:
        self._connection.execute("UPDATE life SET epoch = ?", (epoch,))
        self._connection.execute("COMMIT")
        self.close()
        make_durable(self._part)
        for suffix in _LOG:
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        os.replace(self._part, self._path)
        make_durable(self._path.parent)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def file_source(path: Path, clips: Path) -> Iterator[FileSource]:
    """The file is whole and has the newest schema, or it is refused. `clips` is the folder of its clips."""
    with reading(path) as connection:
        wrong = findings(connection, "integrity_check")
        if wrong:
            raise damaged(str(path), wrong[0])
        if version(connection) != newest():
            fault = f"the journal {path} has schema {version(connection)}, and {newest()} is needed"
            raise JournalError(fault, "start the service once with this version, stop it, then move")
        connection.execute("BEGIN")
        yield FileSource(path, clips, connection)


@contextmanager
def file_target(path: Path, clips: Path) -> Iterator[FileTarget]:
    """What was written is removed, unless it was finished."""
    _refuse_used(path)
    # One name: what a move that was killed has left is removed by the next one.
    part = path.with_name(f"{path.name}.moving")
    try:
        _discard(part)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(FileTarget(path, clips, part)) as target:
            target.begin()
            yield target
    except sqlite3.Error as error:
        raise named(error, str(path)) from error
    except OSError as error:
        fault = f"the journal {path} cannot be written ({error.strerror})"
        raise JournalUnwritable(fault, "look at the rights on its folder and at its disk") from error
    finally:
        _discard(part)


def _refuse_used(path: Path) -> None:
    """A start without the settings of a server may have left a file without a row of a session."""
    if not path.exists():
        return
    with reading(path) as looking:
        there = {row[0] for row in looking.execute("SELECT name FROM sqlite_schema")}
        kept = [table.name for table in moved_tables() if table.name in there and table.name != "tallies"]
        used = any(looking.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in kept)
    if used:
        fault = f"there is a journal in {path} already"
        raise JournalError(fault, "rename it, if it is not needed any more, then move")


def _discard(part: Path) -> None:
    for suffix in ("", "-journal", *_LOG):
        Path(f"{part}{suffix}").unlink(missing_ok=True)
