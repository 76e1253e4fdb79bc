"""Reads while the service runs: events, single turns and messages, counts, and an attempt's history.

Tables that clients list are in tables.py.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from supervisor.core.events import Known
from supervisor.core.state import session_of, turn_number
from supervisor.journal.history import AnswerPast, AttemptPast, TurnPast, answers, history, tried
from supervisor.journal.load import TAKEN
from supervisor.journal.rows import Row, Rows
from supervisor.journal.sums import Used, is_approved, used

# A page of events ends early after this many characters, because events may carry long texts.
_PAGE_CHARACTERS_MAX = 1_000_000
# A story is read by a person, so it is bounded.
_STORY_ROWS_MAX = 1000

EVENTS_AFTER = """
    SELECT session, seq, type, at, body FROM events
    WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"""
SESSION_SEQS = "SELECT name, seq FROM json_each(?) AS named CROSS JOIN sessions ON name = named.value"
SESSION_SEQ = "SELECT seq FROM sessions WHERE name = ?"
FORGOTTEN = """
    SELECT 1 FROM sessions
    WHERE name = ? AND NOT EXISTS (SELECT 1 FROM events WHERE session = sessions.name)"""
LONG_NAMES = "SELECT name FROM sessions WHERE length(name) >= ?"
MESSAGE_KNOWN = "SELECT seq, kind, text FROM messages WHERE id = ?"
_TURN_COLUMNS = """
    id, session, number, agent, state, messages, opened_at, ended_at, attempts, losses, error, hint,
    ended_by, input_tokens, output_tokens, poison, killed,
    (SELECT level FROM attempts WHERE turn = turns.id AND number = turns.attempts) AS level"""
TURN = f"SELECT {_TURN_COLUMNS}, text FROM turns WHERE session = ? AND number = ?"
TURN_ATTEMPTS = """
    SELECT number, epoch, seat, incarnation, pid, level, state, text_length, verdict, verdict_by, reason,
        opened_at, ended_at
    FROM attempts WHERE turn = ? ORDER BY number LIMIT ?"""
TURN_TOOLS = """
    SELECT attempt, call, name, summary, repeat, state, ok, ms, at FROM tool_calls
    WHERE turn = ? ORDER BY attempt, position LIMIT ?"""
TURN_MESSAGES = """
    SELECT messages.id, messages.kind, messages.busy, messages.state, messages.seq, messages.at
    FROM json_each(?) AS listed CROSS JOIN messages ON messages.id = listed.value
    ORDER BY listed.key LIMIT ?"""
MESSAGE = """
    SELECT id, session, key, kind, busy, clip, state, turn, seq, at, ended_by, reason, ended_at
    FROM messages WHERE id = ?"""
CLIPS_KNOWN = """
    SELECT clip FROM messages INDEXED BY messages_by_clip
    WHERE clip <> '' AND clip IN (SELECT value FROM json_each(?))"""
CLIP_OF = "SELECT session, state, clip FROM messages WHERE id = ?"
BEGUN_BY = "SELECT key FROM begun WHERE session = ?"
CURSORS = "SELECT name, seq FROM cursors WHERE session = ?"
COUNTS = """
    SELECT what, number FROM tallies
    UNION ALL SELECT state, count(*) FROM turns INDEXED BY turns_open
        WHERE state IN ('queued', 'running', 'asking') GROUP BY state
    UNION ALL SELECT 'waiting', count(*) FROM messages INDEXED BY messages_waiting
        WHERE state IN ('transcribing', 'waiting')
    UNION ALL SELECT 'held', count(*) FROM sessions INDEXED BY sessions_held WHERE held > 0"""


NEWEST = "SELECT max(last_at) AS at FROM sessions INDEXED BY sessions_recent"


@dataclass(frozen=True, slots=True)
class Told:
    """One durable event."""

    session: str
    seq: int
    type: str
    at: float
    fields: dict[str, Any]


class AskedOf(NamedTuple):
    """The request behind a turn: the texts it has to answer, and what its messages want of it."""

    session: str
    state: str
    texts: tuple[str, ...]
    agent: str
    instructions: str


class Reads:
    """All reads while the service runs. They see every commit that has returned."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def events_after(self, session: str, seq: int, limit: int) -> list[Told]:
        """Return the next events of a session: fewer than `limit` when they are long, none at the end."""
        left = _PAGE_CHARACTERS_MAX

        def is_full(row: Row) -> bool:
            nonlocal left
            left -= len(row["body"])
            return left < 0

        return list(map(_told, self._rows.some(EVENTS_AFTER, (session, seq, limit), is_full)))

    def newest_at(self) -> float:
        """Return the time of the newest event; 0 when there is none."""
        row = self._rows.one(NEWEST)
        return float(row["at"] or 0.0) if row else 0.0

    def session_seq(self, session: str) -> int:
        """Return the seq of the session's last event; 0 when it has none."""
        row = self._rows.one(SESSION_SEQ, (session,))
        return int(row["seq"]) if row else 0

    def session_seqs(self, sessions: Collection[str]) -> dict[str, int]:
        """Return the seq of the last event of those of these sessions that have one."""
        rows = self._rows.all(SESSION_SEQS, (json.dumps(list(sessions)),))
        return {row["name"]: int(row["seq"]) for row in rows}

    def is_forgotten(self, session: str) -> bool:
        """Return whether the session was pruned whole: it exists, and none of its turns is left."""
        return self._rows.one(FORGOTTEN, (session,)) is not None

    def long_names(self, characters_min: int) -> list[str]:
        """Return the sessions whose names are at least that long."""
        return [row["name"] for row in self._rows.all(LONG_NAMES, (characters_min,))]

    def known(self, message: str) -> Known | None:
        """Return a message's seq and the text that was sent; None for a clip, whose text is a transcript."""
        row = self._rows.one(MESSAGE_KNOWN, (message,))
        return Known(int(row["seq"]), None if row["kind"] == "voice" else row["text"]) if row else None

    def history(self, session: str, before_turn: int, turns_max: int, bytes_max: int) -> tuple[TurnPast, ...]:
        """Return the newest ended turns before number `before_turn` that fit the limits, oldest first."""
        return history(self._rows, session, before_turn, turns_max, bytes_max)

    def tried(self, turn: str, before_attempt: int, bytes_max: int) -> tuple[AttemptPast, ...]:
        """Return the earlier attempts of an open turn."""
        return tried(self._rows, turn, before_attempt, bytes_max)

    def answers(self, turn: str, bytes_max: int) -> tuple[AnswerPast, ...]:
        """Return the newest answered questions of an open turn that fit the limit, oldest first."""
        return answers(self._rows, turn, bytes_max)

    def used(self, session: str, turn: str) -> Used:
        """Return what an open turn, the ended turns of its session and those of today have used."""
        return used(self._rows, session, turn)

    def is_approved(self, question: str, session: str | None) -> bool:
        """Return whether a question of this text was answered with yes, in that session or in any."""
        return is_approved(self._rows, question, session)

    def turn_story(self, turn: str) -> dict[str, Any] | None:
        """Return a turn with its messages, attempts and tool calls, without their texts."""
        row = self._rows.one(TURN, (session_of(turn), turn_number(turn)))
        if row is None:
            return None
        found = {
            "messages": self._rows.all(TURN_MESSAGES, (row["messages"], _STORY_ROWS_MAX)),
            "tried": self._rows.all(TURN_ATTEMPTS, (turn, _STORY_ROWS_MAX)),
            "tools": self._rows.all(TURN_TOOLS, (turn, _STORY_ROWS_MAX)),
        }
        return turn_row(row) | {name: [dict(each) for each in rows] for name, rows in found.items()}

    def message_story(self, message: str) -> dict[str, Any] | None:
        """Return a message and its outcome, without its text."""
        row = self._rows.one(MESSAGE, (message,))
        return dict(row) if row else None

    def cursors(self, session: str) -> dict[str, int]:
        """Return how far each named client has acknowledged a session's events."""
        return {row["name"]: int(row["seq"]) for row in self._rows.all(CURSORS, (session,))}

    def begun_by(self, session: str) -> str | None:
        """Return the key of the request by which a session began with a history; None if it did not."""
        row = self._rows.one(BEGUN_BY, (session,))
        return row["key"] if row is not None else None

    def asked_of(self, turn: str) -> AskedOf | None:
        row = self._rows.one(TURN, (session_of(turn), turn_number(turn)))
        if row is None:
            return None
        messages = self._rows.all(TAKEN, (row["messages"],))
        wanted = [(each["agent"], each["instructions"]) for each in messages]
        return AskedOf(
            row["session"],
            row["state"],
            tuple(each["text"] for each in messages),
            next((agent for agent, _ in wanted if agent), ""),
            next((instructions for _, instructions in reversed(wanted) if instructions), ""),
        )

    def clip_of(self, message: str) -> tuple[str, str, str] | None:
        """Return session and state of a message, and its clip, if it has one."""
        row = self._rows.one(CLIP_OF, (message,))
        return (row["session"], row["state"], row["clip"]) if row else None

    def clips_known(self, names: Collection[str]) -> set[str]:
        """Return those of these clips that belong to a message."""
        return {row["clip"] for row in self._rows.all(CLIPS_KNOWN, (json.dumps(list(names)),))}

    def counts(self) -> dict[str, int]:
        """Return sessions in total, ended turns by state, and what is queued, running, waiting and held."""
        counted = {row["what"]: int(row["number"]) for row in self._rows.all(COUNTS)}
        return {"queued": 0, "running": 0} | counted


def _told(row: Row) -> Told:
    return Told(row["session"], row["seq"], row["type"], row["at"], json.loads(row["body"]))


def turn_row(row: Row) -> dict[str, Any]:
    """Return a row of `turns` with its JSON decoded."""
    values = dict(row)
    values["messages"] = json.loads(values["messages"])
    values["killed"] = json.loads(values["killed"]) if values["killed"] else None
    return values
