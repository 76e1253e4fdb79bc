"""Integrity checks of a journal: its pages, and the consistency of its rows."""

import sqlite3
from typing import Literal

# Each finding names a page, a row or a contradiction; more of them add no information.
_FINDINGS_MAX = 20

# Contradictions between rows, which are possible although every page is valid.
DISAGREEMENTS = (
    (
        "{} sessions do not agree with their events",
        """SELECT count(*) FROM sessions
           WHERE seq <> coalesce((SELECT max(seq) FROM events WHERE session = sessions.name), seq)""",
    ),
    (
        "{} sessions have a gap in their events",
        """SELECT count(*) FROM (
               SELECT 1 FROM events GROUP BY session HAVING max(seq) - min(seq) + 1 <> count(*)
                   AND max(CASE WHEN type = 'journal.repaired' THEN 1 ELSE 0 END) = 0) AS gaps""",
    ),
    (
        "{} turns run without an attempt",
        """SELECT count(*) FROM turns WHERE state = 'running' AND NOT EXISTS (
               SELECT 1 FROM attempts WHERE turn = turns.id AND number = turns.attempts
                   AND state IN ('open', 'stopped'))""",
    ),
    (
        "{} messages were taken by turns that are not there",
        "SELECT count(*) FROM messages WHERE state = 'taken' AND turn NOT IN (SELECT id FROM turns)",
    ),
)


def findings(
    connection: sqlite3.Connection, look: Literal["quick_check", "integrity_check"]
) -> tuple[str, ...]:
    """Return the faults found; a quick check does not compare indexes with their tables."""
    return broken_pages(connection, look) or disagreements(connection)


def broken_pages(
    connection: sqlite3.Connection, look: Literal["quick_check", "integrity_check"]
) -> tuple[str, ...]:
    try:
        found = tuple(str(row[0]) for row in connection.execute(f"PRAGMA {look}({_FINDINGS_MAX})"))
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return () if found == ("ok",) else found


def disagreements(connection: sqlite3.Connection) -> tuple[str, ...]:
    try:
        counted = [(words, connection.execute(sql).fetchone()[0]) for words, sql in DISAGREEMENTS]
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return tuple(words.format(number) for words, number in counted if number)
