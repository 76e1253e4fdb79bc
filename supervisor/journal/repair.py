"""Repair: saves the readable rows of a damaged journal into a new file; the damaged one is kept beside it.

Rows are read in both directions from every readable page; then the new file is made consistent, so that a
service can start on it. Lost rows are reported as lost, never invented.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from supervisor.clock import Clock
from supervisor.journal.errors import JournalError, JournalUnwritable
from supervisor.journal.integrity import findings
from supervisor.journal.journal import connect
from supervisor.journal.migrate import migrate, refuse_newer

Row = dict[str, Any]

# Steps over an unreadable stretch double, starting at one row, so that any stretch costs few tries.
_DOUBLINGS_MAX = 48
# Damage leaves a few stretches; this many in one table mean that reading on would not end.
_STRETCHES_MAX = 10_000

# Columns that the statements below read as JSON.
_JSON = {"events": ("body",), "turns": ("messages",), "questions": ("choices",)}

# Statements that make the saved rows consistent, in this order, by the rules of the service itself.
_MENDING = (
    # The turn that took a message, and the messages that were dropped: rows and events both record it.
    """CREATE TEMP TABLE answered AS
       SELECT listed.value AS message, turns.id AS turn FROM turns, json_each(turns.messages) AS listed
       UNION SELECT listed.value, json_extract(events.body, '$.turn')
           FROM events, json_each(events.body, '$.messages') AS listed
           WHERE events.type IN ('turn.opened', 'turn.joined')
       UNION SELECT json_extract(body, '$.message'), json_extract(body, '$.turn')
           FROM events WHERE type = 'turn.steered'""",
    "CREATE INDEX temp.answered_by ON answered (message)",
    """CREATE TEMP TABLE given_up AS SELECT json_extract(body, '$.message') AS message
       FROM events WHERE type IN ('message.dropped', 'transcript.failed')""",
    """CREATE TEMP TABLE transcripts AS
       SELECT json_extract(body, '$.message') AS message, json_extract(body, '$.text') AS words
       FROM events WHERE type = 'transcript.ready'""",
    "CREATE INDEX temp.transcripts_by_message ON transcripts (message)",
    # A message whose row was lost is restored from its event. The event has no key, but the id comes from it;
    # it has no clip either, so a clip without a transcript can never get one.
    """INSERT OR IGNORE INTO messages (id, session, key, kind, text, busy, state, turn, seq, at)
       SELECT message, session, message, kind, text, busy,
           CASE WHEN turn IS NOT NULL THEN 'taken'
               WHEN message IN (SELECT message FROM given_up) THEN 'dropped'
               WHEN text = '' THEN 'failed' ELSE 'waiting' END,
           turn, seq, at
       FROM (SELECT json_extract(body, '$.message') AS message, session, json_extract(body, '$.kind') AS kind,
                 coalesce((SELECT words FROM transcripts
                         WHERE transcripts.message = json_extract(body, '$.message')),
                     json_extract(body, '$.text'), '') AS text, json_extract(body, '$.busy') AS busy,
                 seq, at FROM events WHERE type = 'message.accepted')
           LEFT JOIN answered USING (message)
       WHERE message NOT IN (SELECT id FROM messages) GROUP BY message""",
    # Messages are taken in order: one that seems to wait behind a taken one was taken too, turn unknown.
    """UPDATE messages SET state = 'dropped', ended_by = 'repair', ended_at = at
       WHERE state = 'waiting' AND key = id AND seq < (
           SELECT max(later.seq) FROM messages AS later
           WHERE later.session = messages.session AND later.state = 'taken')""",
    """INSERT OR IGNORE INTO sessions (name, seq, turns, held, created_at, last_at)
       SELECT session, max(seq), 0, 0, min(at), max(at) FROM (
           SELECT session, seq, at FROM messages UNION ALL SELECT session, seq, at FROM events)
       GROUP BY session""",
    """INSERT OR IGNORE INTO sessions (name, seq, turns, held, created_at, last_at)
       SELECT session, 0, 0, 0, min(opened_at), max(opened_at) FROM turns GROUP BY session""",
    """UPDATE sessions SET
           seq = max(seq, coalesce((SELECT max(seq) FROM events WHERE session = name), 0),
                     coalesce((SELECT max(seq) FROM messages WHERE session = name), 0),
                     coalesce((SELECT max(seq) FROM cursors WHERE session = sessions.name), 0)),
           turns = max(turns, coalesce((SELECT max(number) FROM turns WHERE session = name), 0))""",
    """UPDATE sessions SET tokens = max(tokens,
           (SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM turns WHERE session = name)),
           cost = max(sessions.cost, (SELECT coalesce(sum(cost), 0) FROM turns WHERE session = name))""",
    # A turn whose row was lost ended as its event says, or else by this damage.
    """INSERT OR IGNORE INTO turns
           (id, session, number, state, messages, opened_at, ended_at, content_at, text, error, hint)
       SELECT lost.turn, lost.session, CAST(substr(lost.turn, length(lost.session) + 2) AS INTEGER),
           coalesce(substr(ended.type, 6), 'failed'), json_group_array(lost.id), min(lost.at),
           coalesce(ended.at, max(lost.at)), max(lost.at), coalesce(json_extract(ended.body, '$.text'), ''),
           coalesce(json_extract(ended.body, '$.error'), iif(ended.type IS NULL, :fault, '')),
           coalesce(json_extract(ended.body, '$.hint'), iif(ended.type IS NULL, :hint, ''))
       FROM messages AS lost LEFT JOIN events AS ended ON ended.session = lost.session
           AND ended.type IN ('turn.done', 'turn.failed', 'turn.interrupted')
           AND json_extract(ended.body, '$.turn') = lost.turn
       WHERE lost.state = 'taken' AND lost.turn NOT IN (SELECT id FROM turns)
       GROUP BY lost.turn""",
    # An open turn without a message has nothing to answer.
    """UPDATE turns SET state = 'failed', ended_at = content_at, error = :fault, hint = :hint
       WHERE ended_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM json_each(turns.messages) AS listed JOIN messages ON messages.id = listed.value)""",
    """UPDATE turns SET state = 'queued' WHERE state = 'running' AND NOT EXISTS (
           SELECT 1 FROM attempts WHERE turn = turns.id AND number = turns.attempts
               AND state IN ('open', 'stopped'))""",
    """UPDATE attempts SET state = 'lost', reason = :fault WHERE state IN ('open', 'stopped')
           AND (turn, number) NOT IN (SELECT id, attempts FROM turns WHERE state = 'running')""",
    """UPDATE tool_calls SET state = 'unknown' WHERE state = 'started' AND NOT EXISTS (
           SELECT 1 FROM attempts WHERE turn = tool_calls.turn AND number = tool_calls.attempt
               AND state IN ('open', 'stopped'))""",
    """UPDATE attempts SET text_length = (SELECT coalesce(sum(length(text)), 0) FROM texts
           WHERE turn = attempts.turn AND attempt = attempts.number) WHERE state IN ('open', 'stopped')""",
    # A session that lost events gets one that says so, and continues after it.
    """INSERT INTO events (session, seq, at, type, body)
       SELECT name, sessions.seq + 1, :now, 'journal.repaired',
           json_object('lost', sessions.seq - count(events.seq) - coalesce(min(events.seq), 1) + 1)
       FROM sessions LEFT JOIN events ON events.session = sessions.name GROUP BY name
       HAVING sessions.seq > coalesce(max(events.seq), 0)
           OR max(events.seq) - min(events.seq) + 1 <> count(events.seq)""",
    """UPDATE sessions SET seq = seq + 1, last_at = :now
       WHERE (name, seq + 1) IN (SELECT session, seq FROM events WHERE type = 'journal.repaired')""",
    "UPDATE life SET epoch = max(epoch, coalesce((SELECT max(epoch) FROM attempts), 0))",
    """UPDATE tallies SET number = max(number, CASE what WHEN 'sessions' THEN (SELECT count(*) FROM sessions)
           ELSE (SELECT count(*) FROM turns WHERE state = what) END)""",
)
_WORDS = {
    "fault": "it was lost with a damaged part of the journal",
    "hint": "send the message again if it still matters",
}


@dataclass
class Repaired:
    """The result: the file that was kept, rows saved by table, stretches that could not be read."""

    file: str
    kept: str
    saved: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)


def repair(path: Path) -> Repaired:
    """Repair under the caller's lock. The new file takes the journal's name only when it is complete."""
    if not path.exists():
        raise JournalError(f"there is no journal {path}", "name another --home")
    stamp = int(Clock().now())
    kept = path.with_name(f"{path.name}.damaged-{stamp}")
    scratch = path.with_name(f"{path.name}.repairing")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        repaired = Repaired(str(path), str(kept))
        _save(_choose(path, scratch), scratch / "new", repaired)
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.rename(f"{path}{suffix}", f"{kept}{suffix}")
        os.rename(scratch / "new", path)
    except OSError as error:
        fault = f"the journal {path} cannot be repaired here ({error.strerror})"
        raise JournalUnwritable(fault, "its folder needs space for two more copies of it") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return repaired


def _choose(path: Path, scratch: Path) -> Path:
    """Return a copy with its log or one without: a truncated log may hide rows that the file has."""
    readable: list[Path] = []
    for name, suffixes in (("logged", ("", "-wal")), ("bare", ("",))):
        for suffix in suffixes:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", scratch / f"{name}{suffix}")
        with closing(connect(str(scratch / name))) as copy:
            found = findings(copy, "quick_check")
            if not found:
                return scratch / name
            if _is_readable(copy):
                readable.append(scratch / name)
    if not readable:
        fault = f"nothing can be read in the journal ({found[0]})"
        raise JournalError(fault, "put a backup in its place, or move it away to begin with an empty one")
    return readable[0]


def _is_readable(source: sqlite3.Connection) -> bool:
    """Return whether the first page is readable: without it the schema is unknown."""
    try:
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _save(old: Path, new: Path, repaired: Repaired) -> None:
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    with closing(connect(str(old))) as source, closing(connect(str(new))) as target:
        refuse_newer(source, str(old))
        # Keep reading where SQLite would stop by default.
        source.execute("PRAGMA cell_size_check = OFF")
        source.text_factory = lambda content: content.decode("utf-8", "replace")
        migrate(target, str(new))
        target.execute("PRAGMA synchronous = FULL")
        target.execute("BEGIN")
        database = Database(target, execute_plugins=False)
        target.execute("DELETE FROM life")
        target.execute("DELETE FROM tallies")
        for table in database.table_names():
            # Sessions are saved before the rows that refer to them.
            names = [row[0] for row in target.execute("SELECT name FROM sessions ORDER BY name")]
            _save_table(Salvage(source, table, database.table(table).pks, names), target, repaired)
        target.execute("INSERT OR IGNORE INTO life (id, epoch) VALUES (1, 0)")
        for what in ("sessions", "done", "failed", "interrupted"):
            target.execute("INSERT OR IGNORE INTO tallies (what, number) VALUES (?, 0)", (what,))
        for statement in _MENDING:
            target.execute(statement, _WORDS | {"now": Clock().now()})
        target.execute("COMMIT")


def _save_table(salvage: "Salvage", target: sqlite3.Connection, repaired: Repaired) -> None:
    """Save the rows of one table. Rows that a constraint refuses were damaged inside a readable page."""
    table = salvage.table
    known = {row[1] for row in target.execute(f'PRAGMA table_info("{table}")')}
    for row in salvage.rows():
        if not _is_whole(table, row):
            salvage.stretches += 1
            continue
        kept = {name: value for name, value in row.items() if name in known}
        names = ", ".join(f'"{name}"' for name in kept)
        sql = f'INSERT OR IGNORE INTO "{table}" ({names}) VALUES ({", ".join("?" * len(kept))})'
        with suppress(sqlite3.IntegrityError):
            done = target.execute(sql, tuple(kept.values()))
            repaired.saved[table] = repaired.saved.get(table, 0) + done.rowcount
    if salvage.stretches:
        repaired.unreadable[table] = salvage.stretches


def _is_whole(table: str, row: Row) -> bool:
    """A page that lost its content may still be readable: invalid JSON shows it."""
    try:
        return all(json.loads(row[name]) is not None for name in _JSON.get(table, ()) if row.get(name))
    except ValueError:
        return False


class Salvage:
    """The readable rows of one table; some of them may appear twice."""

    def __init__(self, source: sqlite3.Connection, table: str, keys: list[str], sessions: list[str]) -> None:
        self.table = table
        self.stretches = 0
        self._sessions = sessions
        self._source = source
        self._keys = [f'"{key}"' for key in keys]

    def rows(self) -> Iterator[Row]:
        """Read forwards; skip an unreadable stretch by growing steps, then read backwards to its end."""
        last: list[Any] | None = None
        for _ in range(_STRETCHES_MAX):
            try:
                for row in self._read("ASC", after=last):
                    last = self._key(row)
                    yield row
                return
            except sqlite3.DatabaseError:
                self.stretches += 1
            found = self._beyond(last)
            with suppress(sqlite3.DatabaseError):
                yield from self._read("DESC", after=last, until=found)
            if found is None:
                return
            last = found

    def _beyond(self, last: list[Any] | None) -> list[Any] | None:
        """Return the first readable key behind a stretch; None without one or when keys are only text."""
        for place in self._places_beyond(last):
            with suppress(sqlite3.DatabaseError):
                row = next(self._read("ASC", after=place), None)
                return self._key(row) if row else None
        return None

    def _places_beyond(self, last: list[Any] | None) -> Iterator[list[Any]]:
        """Grow steps along the number that ends a key, then go from session to session."""
        if self._keys not in (['"position"'], ['"session"', '"seq"']):
            return
        *session, number = last or [*([""] * (len(self._keys) - 1)), 0]
        for doubled in range(_DOUBLINGS_MAX):
            yield [*session, number + 2**doubled]
        if session:
            yield from ([name, 0] for name in self._sessions if name > session[0])

    def _key(self, row: Row) -> list[Any]:
        return [row[key.strip('"')] for key in self._keys]

    def _read(
        self, order: str, after: list[Any] | None = None, until: list[Any] | None = None
    ) -> Iterator[Row]:
        """Read the rows after one key and up to another, in either order."""
        names, marks = ", ".join(self._keys), ", ".join("?" * len(self._keys))
        limits = [f"({names}) {sign} ({marks})" for sign, key in ((">", after), ("<=", until)) if key]
        where = f"WHERE {' AND '.join(limits)}" if limits else ""
        ordered = ", ".join(f"{key} {order}" for key in self._keys)
        sql = f'SELECT * FROM "{self.table}" {where} ORDER BY {ordered}'
        cursor = self._source.execute(sql, (*(after or ()), *(until or ())))
        columns = [each[0] for each in cursor.description]
        while found := cursor.fetchone():
            yield dict(zip(columns, found, strict=True))
