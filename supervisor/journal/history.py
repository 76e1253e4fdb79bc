"""The past of a session for its next attempt: newest turns first to fit a limit, told oldest first."""

from collections import deque
from dataclasses import replace
from sqlite3 import Row

from supervisor.journal.load import TAKEN, said
from supervisor.journal.past import AttemptPast, ToolPast, TurnPast
from supervisor.journal.rows import Rows

ENDED_BEFORE = """
    SELECT id, number, state, messages, attempts, text, error FROM turns
    WHERE session = ? AND number < ? AND state IN ('done', 'failed', 'interrupted')
    ORDER BY number DESC LIMIT ?"""
ATTEMPTS = "SELECT number, state, reason FROM attempts WHERE turn = ? AND number < ? ORDER BY number"
TOOLS = """
    SELECT call, name, arguments, repeat, state, result, ok, "offset" FROM tool_calls
    WHERE turn = ? AND attempt = ? ORDER BY position"""


# Turns are read in pages of this many, so that a small byte limit does not read the texts of a long past.
_PAGE_TURNS = 16


def history(
    rows: Rows, session: str, before_turn: int, turns_max: int, characters_max: int
) -> tuple[TurnPast, ...]:
    """The latest ended turns before a turn number. The newest is always there, however long it is."""
    told: deque[TurnPast] = deque()
    left = characters_max
    while len(told) < turns_max:
        page = rows.all(ENDED_BEFORE, (session, before_turn, min(_PAGE_TURNS, turns_max - len(told))))
        for row in page:
            turn = _turn(rows, row)
            left -= _characters(turn)
            if left < 0 and told:
                return tuple(told)
            told.appendleft(turn)
        if not page:
            break
        before_turn = page[-1]["number"]
    return tuple(told)


def tried(rows: Rows, turn: str, before_attempt: int) -> tuple[AttemptPast, ...]:
    """The attempts at a turn that came before this one: what they said and did, and why they ended."""
    found = rows.all(ATTEMPTS, (turn, before_attempt))
    return tuple(_attempt(rows, turn, row) for row in found)


def _turn(rows: Rows, row: Row) -> TurnPast:
    texts = tuple(message["text"] for message in rows.all(TAKEN, (row["messages"],)))
    if row["state"] == "done":
        final = AttemptPast(row["text"], _tools(rows, row["id"], row["attempts"]), "")
        earlier = tried(rows, row["id"], row["attempts"])
        told = tuple(attempt for attempt in earlier if attempt.text or attempt.tools)
        return TurnPast(row["id"], row["number"], texts, (*told, final))
    attempts = tried(rows, row["id"], row["attempts"] + 1)
    if attempts and not attempts[-1].cut:
        # It ended with a question; whether that was answered or not, the turn ended before it could go on.
        attempts = (*attempts[:-1], replace(attempts[-1], cut=row["error"] or row["state"]))
    return TurnPast(row["id"], row["number"], texts, attempts)


def _attempt(rows: Rows, turn: str, row: Row) -> AttemptPast:
    cut = row["reason"] or ("" if row["state"] in ("done", "asked") else row["state"])
    return AttemptPast(said(rows, turn, row["number"]), _tools(rows, turn, row["number"]), cut)


def _tools(rows: Rows, turn: str, attempt: int) -> tuple[ToolPast, ...]:
    return tuple(
        ToolPast(
            row["call"],
            row["name"],
            row["arguments"],
            row["repeat"],
            row["result"] if row["state"] == "finished" else None,
            bool(row["ok"]),
            row["offset"],
        )
        for row in rows.all(TOOLS, (turn, attempt))
    )


def _characters(turn: TurnPast) -> int:
    attempts = sum(
        len(attempt.text) + sum(len(tool.arguments) + len(tool.result or "") for tool in attempt.tools)
        for attempt in turn.attempts
    )
    return sum(map(len, turn.said)) + attempts
