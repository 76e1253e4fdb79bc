"""From rows to State: only what is open, found by partial indexes, so that history costs nothing."""

import json
from collections import deque
from collections.abc import Iterable
from sqlite3 import Row

from supervisor.core.model import (
    Attempt,
    BusyMode,
    Message,
    Policy,
    Question,
    Session,
    State,
    Turn,
    TurnState,
    Verdict,
    Who,
)
from supervisor.journal.rows import Rows

# Oldest first: whoever waited longest before the restart is served first after it.
OPEN_SESSIONS = """
    SELECT session FROM turns INDEXED BY turns_open WHERE state IN ('queued', 'running', 'asking')
    ORDER BY position"""
WAITING_SESSIONS = """
    SELECT session FROM messages INDEXED BY messages_waiting WHERE state IN ('transcribing', 'waiting')
    GROUP BY session ORDER BY min(position)"""
HELD_SESSIONS = "SELECT name AS session FROM sessions INDEXED BY sessions_held WHERE held > 0 ORDER BY name"
SESSION = "SELECT name, seq, turns, held FROM sessions WHERE name = ?"
WAITING = """
    SELECT id, text, busy, at, clip, seq FROM messages INDEXED BY messages_waiting
    WHERE session = ? AND state IN ('transcribing', 'waiting') ORDER BY seq"""
OPEN_TURN = """
    SELECT id, session, state, messages, opened_at, attempts, losses, content_at
    FROM turns INDEXED BY turns_open WHERE session = ? AND state IN ('queued', 'running', 'asking')"""
TAKEN = """
    SELECT messages.id, messages.text, messages.busy, messages.at, messages.clip, messages.seq
    FROM json_each(?) AS listed CROSS JOIN messages ON messages.id = listed.value ORDER BY listed.key"""
ATTEMPT = "SELECT * FROM attempts WHERE turn = ? AND number = ?"
SPEECH = 'SELECT text FROM speech WHERE turn = ? AND attempt = ? ORDER BY "offset"'
OPEN_CALLS = """
    SELECT call, name FROM tool_calls INDEXED BY tool_calls_open
    WHERE turn = ? AND attempt = ? AND state = 'started'"""

QUESTION = """
    SELECT id, kind, text, choices, call FROM questions INDEXED BY questions_open
    WHERE turn = ? AND state = 'open'"""
QUESTIONS_ASKED = "SELECT count(*) AS number FROM questions WHERE turn = ?"


def load(rows: Rows, policy: Policy, epoch: int) -> State:
    """The state a new life begins with."""
    state = State(policy, epoch)
    for query in (OPEN_SESSIONS, WAITING_SESSIONS, HELD_SESSIONS):
        for row in rows.all(query):
            name = row["session"]
            session = None if name in state.sessions else wake(rows, name)
            if session is not None:
                state.sessions[name] = session
    return state


def wake(rows: Rows, name: str) -> Session | None:
    """One session as the journal has it, or None when nothing was ever said to it."""
    row = rows.one(SESSION, (name,))
    if row is None:
        return None
    waiting = deque(_messages(rows.all(WAITING, (name,))))
    turn = rows.one(OPEN_TURN, (name,))
    return Session(name, row["seq"], row["turns"], row["held"], waiting, _turn(rows, turn) if turn else None)


def said(rows: Rows, turn: str, attempt: int) -> str:
    """All that an attempt has said, as far as it was written down."""
    return "".join(row["text"] for row in rows.all(SPEECH, (turn, attempt)))


def _messages(found: Iterable[Row]) -> list[Message]:
    return [
        Message(row["id"], row["text"], BusyMode(row["busy"]), row["at"], row["clip"], row["seq"])
        for row in found
    ]


def _turn(rows: Rows, row: Row) -> Turn:
    running = row["state"] == TurnState.RUNNING
    latest_lost = row["attempts"] - 1 if running else row["attempts"]
    return Turn(
        row["id"],
        row["session"],
        tuple(_messages(rows.all(TAKEN, (row["messages"],)))),
        row["opened_at"],
        attempts=row["attempts"],
        losses=row["losses"],
        content_at=row["content_at"],
        said_before=said(rows, row["id"], latest_lost) if latest_lost else "",
        attempt=_attempt(rows, row["id"], row["attempts"]) if running else None,
        question=_question(rows, row["id"]),
        questions=_questions_asked(rows, row["id"]),
    )


def _question(rows: Rows, turn: str) -> Question | None:
    row = rows.one(QUESTION, (turn,))
    if row is None:
        return None
    return Question(row["id"], row["kind"], row["text"], tuple(json.loads(row["choices"])), row["call"])


def _questions_asked(rows: Rows, turn: str) -> int:
    row = rows.one(QUESTIONS_ASKED, (turn,))
    return int(row["number"]) if row else 0


def _attempt(rows: Rows, turn: str, number: int) -> Attempt | None:
    row = rows.one(ATTEMPT, (turn, number))
    if row is None:
        return None
    who = Who(row["epoch"], row["seat"], row["incarnation"])
    calls = {call["call"]: call["name"] for call in rows.all(OPEN_CALLS, (turn, number))}
    verdict = None
    if row["state"] == "stopped":
        verdict = Verdict(
            TurnState(row["verdict"]), row["verdict_by"], row["verdict_error"], row["verdict_hint"]
        )
    return Attempt(number, who, row["opened_at"], said(rows, turn, number), calls, verdict)
