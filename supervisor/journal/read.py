"""Reads for the doors: what a feed, a table, a story or an attempt's history needs, each bounded."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from supervisor.core.events import Known
from supervisor.core.model import session_of, turn_number
from supervisor.journal import story
from supervisor.journal.history import history, tried
from supervisor.journal.load import TAKEN
from supervisor.journal.past import AttemptPast, TurnPast
from supervisor.journal.rows import Rows

# A page of events ends early after this many characters: events may carry long texts, memory must not.
_PAGE_CHARACTERS_MAX = 1_000_000
# Rows fetched at a time while the page is not full; overshoots it by so many events at most.
_FETCH_ROWS = 32
# Attempts whose output of one call is given: each may be a quarter of a megabyte.
_OUTPUTS_MAX = 4
# A story is read by a person.
_STORY_ROWS_MAX = 1000

EVENTS_AFTER = """
    SELECT session, seq, type, at, body FROM events
    WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"""
SESSION_SEQ = "SELECT seq FROM sessions WHERE name = ?"
MESSAGE_KNOWN = "SELECT seq, kind, text FROM messages WHERE id = ?"
SESSIONS_PAGE = """
    SELECT name, seq, turns, held, created_at, last_at FROM sessions INDEXED BY sessions_recent
    ORDER BY last_at DESC LIMIT ?"""
_TURN_COLUMNS = """
    id, session, number, agent, state, messages, opened_at, ended_at, attempts, losses, error, hint,
    ended_by, input_tokens, output_tokens, poison, killed,
    (SELECT level FROM attempts WHERE turn = turns.id AND number = turns.attempts) AS level"""
TURNS_OPEN = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_open
    WHERE state IN ('queued', 'running', 'asking')
        AND (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_UNHAPPY = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_unhappy
    WHERE state IN ('failed', 'interrupted') AND state = ?1 AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_POISON = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_unhappy
    WHERE state IN ('failed', 'interrupted') AND state = 'failed' AND poison = 1
        AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_OF_SESSION = f"""
    SELECT {_TURN_COLUMNS} FROM turns
    WHERE session = ?2 AND (?1 IS NULL OR state = ?1) ORDER BY number DESC LIMIT ?3"""
TURNS_OF_ALL = f"""
    SELECT {_TURN_COLUMNS} FROM turns
    WHERE (?1 IS NULL OR state = ?1) ORDER BY position DESC LIMIT ?3"""
TURN = f"SELECT {_TURN_COLUMNS}, text FROM turns WHERE session = ? AND number = ?"
TURN_ATTEMPTS = """
    SELECT number, epoch, seat, incarnation, pid, level, state, said, verdict, verdict_by, reason,
        opened_at, ended_at
    FROM attempts WHERE turn = ? ORDER BY number LIMIT ?"""
TURN_TOOLS = """
    SELECT attempt, call, name, summary, repeat, state, ok, ms, at FROM tool_calls
    WHERE turn = ? ORDER BY attempt, position LIMIT ?"""
TOOL_OUTPUT = """
    SELECT attempt, call, name, arguments, state, ok, ms, result FROM tool_calls
    WHERE turn = ? AND call = ? ORDER BY attempt DESC LIMIT ?"""
TURN_MESSAGES = """
    SELECT messages.id, messages.kind, messages.busy, messages.state, messages.seq, messages.at
    FROM json_each(?) AS listed CROSS JOIN messages ON messages.id = listed.value
    ORDER BY listed.key LIMIT ?"""
MESSAGE = """
    SELECT id, session, key, kind, busy, clip, state, turn, seq, at, ended_by, reason, ended_at
    FROM messages WHERE id = ?"""
QUESTIONS_OPEN = """
    SELECT id AS question, session, turn, kind, text, choices, at FROM questions INDEXED BY questions_waiting
    WHERE state = 'open' ORDER BY at LIMIT ?"""
CLIPS_KNOWN = """
    SELECT clip FROM messages INDEXED BY messages_by_clip
    WHERE clip <> '' AND clip IN (SELECT value FROM json_each(?))"""
CLIP_OF = "SELECT session, state, clip FROM messages WHERE id = ?"
CURSORS = "SELECT name, seq FROM cursors WHERE session = ?"
CURSORS_PAGE = """
    SELECT cursors.session, cursors.name AS cursor, cursors.seq, sessions.seq - cursors.seq AS behind,
        cursors.at
    FROM cursors JOIN sessions ON sessions.name = cursors.session
    WHERE (?1 IS NULL OR cursors.session = ?1) ORDER BY cursors.at DESC, cursors.name LIMIT ?2"""
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


class Reads:
    """Everything that is read while the service runs. Sees every commit that has returned."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def events_after(self, session: str, seq: int, limit: int) -> list[Told]:
        """The next events of a session; fewer than `limit` when they are long, none when there is no more."""
        told: list[Told] = []
        characters = 0
        while len(told) < limit and characters < _PAGE_CHARACTERS_MAX:
            last, wanted = told[-1].seq if told else seq, min(_FETCH_ROWS, limit - len(told))
            found = self._rows.all(EVENTS_AFTER, (session, last, wanted))
            told.extend(map(_told, found))
            characters += sum(len(row["body"]) for row in found)
            if len(found) < _FETCH_ROWS:
                break
        return told

    def newest_at(self) -> float:
        """When the newest event was told; 0 when there is none."""
        row = self._rows.one(NEWEST)
        return float(row["at"] or 0.0) if row else 0.0

    def session_seq(self, session: str) -> int:
        """The session's last durable event; 0 when nothing was ever said to it."""
        row = self._rows.one(SESSION_SEQ, (session,))
        return int(row["seq"]) if row else 0

    def known(self, message: str) -> Known | None:
        """Where a message stands in its feed, and its text; the text of a spoken one is not what was sent."""
        row = self._rows.one(MESSAGE_KNOWN, (message,))
        return Known(int(row["seq"]), None if row["kind"] == "voice" else row["text"]) if row else None

    def history(
        self, session: str, before_turn: int, turns_max: int, characters_max: int
    ) -> tuple[TurnPast, ...]:
        """Ended turns before turn number `before_turn`, oldest first, the newest that fit the limits."""
        return history(self._rows, session, before_turn, turns_max, characters_max)

    def tried(self, turn: str, before_attempt: int) -> tuple[AttemptPast, ...]:
        """Earlier attempts of an open turn."""
        return tried(self._rows, turn, before_attempt)

    def sessions_page(self, limit: int) -> list[dict[str, Any]]:
        """The sessions that spoke or were spoken to last."""
        return [dict(row) for row in self._rows.all(SESSIONS_PAGE, (limit,))]

    def turns_page(self, state: str | None, session: str | None, limit: int) -> list[dict[str, Any]]:
        """Turns, newest first."""
        if state == "poison":
            query = TURNS_POISON
        elif state in ("queued", "running", "asking"):
            query = TURNS_OPEN
        elif state in ("failed", "interrupted"):
            query = TURNS_UNHAPPY
        else:
            query = TURNS_OF_ALL if session is None else TURNS_OF_SESSION
        return [_turn_row(row) for row in self._rows.all(query, (state, session, limit))]

    def turn_story(self, turn: str) -> dict[str, Any] | None:
        """A turn with its messages, attempts and tool calls, without what people said."""
        row = self._rows.one(TURN, (session_of(turn), turn_number(turn)))
        if row is None:
            return None
        found = {
            "messages": self._rows.all(TURN_MESSAGES, (row["messages"], _STORY_ROWS_MAX)),
            "tried": self._rows.all(TURN_ATTEMPTS, (turn, _STORY_ROWS_MAX)),
            "tools": self._rows.all(TURN_TOOLS, (turn, _STORY_ROWS_MAX)),
        }
        return _turn_row(row) | {name: [dict(each) for each in rows] for name, rows in found.items()}

    def message_story(self, message: str) -> dict[str, Any] | None:
        """A message and where it ended, without its text."""
        row = self._rows.one(MESSAGE, (message,))
        return dict(row) if row else None

    def story(self, id: str) -> list[dict[str, Any]]:
        """All that happened to a message or a turn of this id; nothing when there is no such thing."""
        message = self.message_story(id)
        turn = self.turn_story(str(message["turn"]) if message else id)
        if turn is None:
            return story.of_message(message, self.events_after) if message else []
        told = story.of_turn(
            turn, min((each["seq"] for each in turn["messages"]), default=1), self.events_after
        )
        if message is not None:
            told[0] = {"kind": "message", "id": id, "session": message["session"], "state": message["state"]}
            told[0] |= {"turn": turn["id"], "turn_state": turn["state"]}
        return told

    def tool_output(self, turn: str, call: str) -> list[dict[str, Any]]:
        """What a tool call was given and gave back, whole, in the latest attempts that made it."""
        return [dict(row) for row in self._rows.all(TOOL_OUTPUT, (turn, call, _OUTPUTS_MAX))]

    def questions_page(self, limit: int) -> list[dict[str, Any]]:
        """What humans are waited for, the longest wait first."""
        found = self._rows.all(QUESTIONS_OPEN, (limit,))
        return [dict(row) | {"choices": json.loads(row["choices"])} for row in found]

    def cursors(self, session: str) -> dict[str, int]:
        """How far each named client has read a session's feed."""
        return {row["name"]: int(row["seq"]) for row in self._rows.all(CURSORS, (session,))}

    def cursors_page(self, session: str | None, limit: int) -> list[dict[str, Any]]:
        """Who reads what under a name, and by how much each is behind; who moved last comes first."""
        return [dict(row) for row in self._rows.all(CURSORS_PAGE, (session, limit))]

    def asked_of(self, turn: str) -> tuple[str, str, tuple[str, ...]] | None:
        """Session and state of a turn, and the texts it was to answer."""
        row = self._rows.one(TURN, (session_of(turn), turn_number(turn)))
        if row is None:
            return None
        texts = tuple(message["text"] for message in self._rows.all(TAKEN, (row["messages"],)))
        return row["session"], row["state"], texts

    def spoken(self, message: str) -> tuple[str, str, str] | None:
        """Session and state of a message, and the clip it was spoken in, if it was."""
        row = self._rows.one(CLIP_OF, (message,))
        return (row["session"], row["state"], row["clip"]) if row else None

    def clips_known(self, names: Collection[str]) -> set[str]:
        """Which of these clips some message was spoken in."""
        return {row["clip"] for row in self._rows.all(CLIPS_KNOWN, (json.dumps(list(names)),))}

    def counts(self) -> dict[str, int]:
        """Sessions ever; turns ended by state; what is queued, running, waiting and held now."""
        counted = {row["what"]: int(row["number"]) for row in self._rows.all(COUNTS)}
        return {"queued": 0, "running": 0} | counted


def _told(row: Row) -> Told:
    return Told(row["session"], row["seq"], row["type"], row["at"], json.loads(row["body"]))


def _turn_row(row: Row) -> dict[str, Any]:
    values = dict(row)
    values["messages"] = json.loads(values["messages"])
    values["killed"] = json.loads(values["killed"]) if values["killed"] else None
    return values
