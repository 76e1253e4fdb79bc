"""Turns with their content, as a person reads them: messages, answer, tool calls and questions.

A row is bounded, because a page is one frame and is encoded in one call: of a turn with more, texts are cut
in the middle and the oldest tool calls are counted (budget.py). `Show` of `output` has a call's texts whole.
"""

import json
from collections.abc import Iterator
from typing import Any

from supervisor.core.state import session_of, turn_number
from supervisor.journal import history
from supervisor.journal.budget import Budget, told_within
from supervisor.journal.rows import Row, Rows

_COLUMNS = """
    id, number, agent, state, messages, opened_at, ended_at, attempts, text, error, hint, ended_by, poison,
    input_tokens, output_tokens, cost, killed"""
TURNS_BELOW = f"SELECT {_COLUMNS} FROM turns WHERE session = ? AND number < ? ORDER BY number DESC LIMIT ?"
ONE_TURN = f"SELECT {_COLUMNS} FROM turns WHERE session = ? AND number = ? AND id = ?"
TURN_SAYS = """
    SELECT messages.id, messages.kind, messages.text, messages.clip, messages.sent_by, messages.at
    FROM json_each(?) AS listed CROSS JOIN messages ON messages.id = listed.value ORDER BY listed.key"""
TURN_TEXT = 'SELECT text FROM texts WHERE turn = ? ORDER BY attempt, "offset"'
TURN_CALLS = """
    SELECT attempt, call, name, arguments, state, result, ok, ms FROM tool_calls
    WHERE turn = ? ORDER BY attempt DESC, position DESC"""
CALLS_COUNTED = "SELECT count(*) AS number FROM tool_calls WHERE turn = ?"
OPEN_QUESTION = """
    SELECT id, kind, text, choices, call FROM questions INDEXED BY questions_open
    WHERE turn = ? AND state = 'open'"""
ANSWERED_QUESTIONS = """
    SELECT id, text, answer, answered_by FROM questions INDEXED BY questions_by_turn
    WHERE turn = ? AND state = 'answered' ORDER BY number"""

# Of the texts in one row; a page of a megabyte then has at least one row.
_ROW_BYTES_MAX = 1024 * 1024


def below(rows: Rows, session: str, number: int, limit: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the turns of a session before that number, newest first, each with its number."""
    for row in rows.all(TURNS_BELOW, (session, number, limit)):
        yield _shown(rows, row), row["number"]


def past_below(rows: Rows, session: str, number: int, limit: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the turns with which a session has begun, newest first: they have no ids and no times here."""
    for at, past in history.begun_with(rows, session, number, limit):
        tools = [(attempt, tool) for attempt, each in enumerate(past.attempts, 1) for tool in each.tools]
        shown = {
            "turn": "",
            "state": "past",
            "messages": [{"message": "", "kind": "text", "text": text} for text in past.messages],
            "text": "".join(attempt.text for attempt in past.attempts),
            "cut": past.attempts[-1].cut if past.attempts else "",
            "tools": [
                {
                    "call": tool.call,
                    "name": tool.name,
                    "arguments": tool.arguments,
                    "result": tool.result,
                    "ok": tool.ok,
                    "attempt": attempt,
                }
                for attempt, tool in tools
            ],
        }
        yield shown, at


def one(rows: Rows, turn: str) -> dict[str, Any] | None:
    row = rows.one(ONE_TURN, (session_of(turn), turn_number(turn), turn))
    return _shown(rows, row) if row is not None else None


def _shown(rows: Rows, row: Row) -> dict[str, Any]:
    return told_within(_ROW_BYTES_MAX, lambda budget: _within(rows, row, budget))


def _within(rows: Rows, row: Row, budget: Budget) -> dict[str, Any]:
    """Spend the budget on the answer first, then on the messages, then on tool calls, newest first."""
    question = rows.one(OPEN_QUESTION, (row["id"],))
    text = budget.take(row["text"] if row["state"] == "done" else _said(rows, row["id"])).text
    messages = [_message(each, budget) for each in rows.all(TURN_SAYS, (row["messages"],))]
    tools, left_out = _tools(rows, row["id"], budget)
    return {
        "turn": row["id"],
        "agent": row["agent"],
        "state": "poison" if row["poison"] else row["state"],
        "opened_at": row["opened_at"],
        "ended_at": row["ended_at"],
        "attempts": row["attempts"],
        "messages": messages,
        "text": text,
        "tools": tools,
        "tools_left_out": left_out,
        "question": _question(question) if question is not None else None,
        "answered": [_answered(each, budget) for each in rows.all(ANSWERED_QUESTIONS, (row["id"],))],
        "usage": {name: row[name] for name in ("input_tokens", "output_tokens", "cost")},
        "error": row["error"],
        "hint": row["hint"],
        "by": row["ended_by"],
        "killed": json.loads(row["killed"]) if row["killed"] else None,
    }


def _said(rows: Rows, turn: str) -> str:
    """Return the recorded text of all attempts: that of a turn which is open, or ended without an answer."""
    return "".join(each["text"] for each in rows.all(TURN_TEXT, (turn,)))


def _message(row: Row, budget: Budget) -> dict[str, Any]:
    shown = {"message": row["id"], "kind": row["kind"], "text": budget.take(row["text"]).text}
    return shown | {"clip": row["clip"], "by": row["sent_by"], "at": row["at"]}


def _tools(rows: Rows, turn: str, budget: Budget) -> tuple[list[dict[str, Any]], int]:
    """Return the tool calls, oldest first, and how many earlier ones are left out."""
    tools: list[dict[str, Any]] = []

    def enough(row: Row) -> bool:
        if budget.is_spent:
            budget.was_cut = True
            return True
        shown = {name: row[name] for name in ("call", "name", "attempt", "state", "ms")}
        shown["arguments"] = budget.take(row["arguments"]).text
        shown["result"] = budget.take(row["result"]).text if row["state"] == "finished" else None
        shown["ok"] = bool(row["ok"]) if row["state"] == "finished" else None
        tools.append(shown)
        return False

    found = rows.some(TURN_CALLS, (turn,), enough)
    left_out = 0
    if len(found) > len(tools):
        counted = rows.one(CALLS_COUNTED, (turn,))
        left_out = (counted["number"] if counted is not None else 0) - len(tools)
    return tools[::-1], left_out


def _question(row: Row) -> dict[str, Any]:
    shown = {"question": row["id"], "kind": row["kind"], "text": row["text"], "call": row["call"]}
    return shown | {"choices": json.loads(row["choices"])}


def _answered(row: Row, budget: Budget) -> dict[str, Any]:
    shown = {"question": row["id"], "text": budget.take(row["text"]).text}
    return shown | {"answer": budget.take(row["answer"]).text, "by": row["answered_by"]}
