"""A session's past for its next attempt: the newest turns that fit a budget of bytes, oldest first.

A turn is included whole or not at all, except the newest one: it is always included, and cut where it is too
long (budget.py). Of a cut attempt the newest tool calls are included, and a mark in its text counts the
earlier ones. Rows are read newest first and reading ends with the budget, so that no unused row is read.
"""

import json
from collections import deque
from dataclasses import dataclass, replace

import msgspec

from ipc.bounds import NUMBER_MAX
from ipc.message_parts import Cut
from supervisor.journal import budget as budgets
from supervisor.journal.budget import Budget, told_within
from supervisor.journal.load import TAKEN, text_of
from supervisor.journal.rows import Row, Rows

ENDED_BEFORE = """
    SELECT id, number, state, messages, attempts FROM turns
    WHERE session = ? AND number < ? AND state IN ('done', 'failed', 'interrupted')
    ORDER BY number DESC LIMIT ?"""
ANSWER = "SELECT text, earlier_length FROM turns WHERE session = ? AND number = ?"
ATTEMPTS = "SELECT number, state FROM attempts WHERE turn = ? AND number < ? ORDER BY number DESC"
TOOLS = """
    SELECT call, name, arguments, repeat, state, result, ok, "offset" FROM tool_calls
    WHERE turn = ? AND attempt = ? ORDER BY position DESC"""
# The supervisor's own questions are none of the agent's.
ANSWERS = """
    SELECT kind, text, answer, call, attempt FROM questions INDEXED BY questions_by_turn
    WHERE turn = ? AND state = 'answered' AND NOT resumes ORDER BY number DESC"""
BEGUN_WITH = """
    SELECT number, body FROM past_turns WHERE session = ? AND number < ? ORDER BY number DESC LIMIT ?"""
TOOLS_COUNTED = "SELECT count(*) AS number FROM tool_calls WHERE turn = ? AND attempt = ?"

# Attempts that were ended from outside, by the state of their turn.
_CUTS: dict[str, Cut] = {
    "lost": "lost", "failed": "failed", "interrupted": "interrupted", "stopped": "interrupted",
}  # fmt: skip
# Turns are read in pages of this size, so that a small budget does not read a long past.
_PAGE_TURNS = 16


@dataclass(frozen=True, slots=True)
class ToolPast:
    """A tool call; `result` is None when its end is unknown. `offset` orders it within the text."""

    call: str
    name: str
    arguments: str
    repeat: str
    result: str | None
    ok: bool
    offset: int


@dataclass(frozen=True, slots=True)
class AttemptPast:
    """The text and the tool calls of one attempt; `cut` says how it ended, "" if by itself.

    The reason is for people only: it names signals, addresses and log lines, which do not belong in a prompt.
    """

    text: str
    tools: tuple[ToolPast, ...]
    cut: Cut


@dataclass(frozen=True, slots=True)
class AnswerPast:
    """A question of a turn and its answer; `attempt` asked it, about the tool call `call` if that is set."""

    kind: str
    text: str
    answer: str
    call: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TurnPast:
    """An ended turn: the messages it answered and the attempts that count."""

    id: str
    number: int
    messages: tuple[str, ...]
    attempts: tuple[AttemptPast, ...]


def history(
    rows: Rows, session: str, before_turn: int, turns_max: int, bytes_max: int
) -> tuple[TurnPast, ...]:
    """Return the latest ended turns before a turn number."""
    told: deque[TurnPast] = deque()
    left = bytes_max
    while len(told) < turns_max:
        page = rows.all(ENDED_BEFORE, (session, before_turn, min(_PAGE_TURNS, turns_max - len(told))))
        for row in page:
            budget = Budget(left)
            turn = _turn(rows, session, row, budget)
            if budget.was_cut and told:
                return tuple(told)
            if budget.was_cut:
                newest = Budget(left, by_shares=True)
                return (_turn(rows, session, row, newest),)
            told.appendleft(turn)
            left = budget.left
        if not page:
            break
        before_turn = page[-1]["number"]
    return (*_begun_within(rows, session, turns_max - len(told), left), *told)


def _begun_within(rows: Rows, session: str, turns_max: int, bytes_max: int) -> list[TurnPast]:
    """Return the newest turns with which the session has begun that fit, oldest first; each is whole."""
    found: list[TurnPast] = []

    def enough(row: Row) -> bool:
        nonlocal bytes_max
        bytes_max -= len(row["body"].encode())
        if bytes_max >= 0:
            found.append(msgspec.json.decode(row["body"], type=TurnPast))
        return bytes_max < 0

    rows.some(BEGUN_WITH, (session, NUMBER_MAX, turns_max), enough)
    return found[::-1]


def encoded(turn: TurnPast) -> str:
    """Return a turn as the journal keeps it for a session that begins with it."""
    return msgspec.json.encode(turn).decode()


def begun_with(rows: Rows, session: str, before: int, limit: int) -> list[tuple[int, TurnPast]]:
    """Return the newest of the turns with which a session has begun, newest first, with their numbers."""
    found = rows.all(BEGUN_WITH, (session, before, limit))
    return [(row["number"], msgspec.json.decode(row["body"], type=TurnPast)) for row in found]


def tried(rows: Rows, turn: str, before_attempt: int, bytes_max: int) -> tuple[AttemptPast, ...]:
    """Return the earlier attempts at a turn: their text, their tool calls, and how they ended."""
    return told_within(bytes_max, lambda budget: _tried(rows, turn, before_attempt, budget))


def answers(rows: Rows, turn: str, bytes_max: int) -> tuple[AnswerPast, ...]:
    """Return the newest answered questions of a turn, oldest first. A question is whole or left out."""
    budget, told = Budget(bytes_max), deque[AnswerPast]()

    def enough(row: Row) -> bool:
        budget.spend(row["kind"], row["text"], row["answer"], row["call"])
        if not budget.was_cut:
            told.appendleft(AnswerPast(*row))
        return budget.was_cut

    rows.some(ANSWERS, (turn,), enough)
    return tuple(told)


def _tried(rows: Rows, turn: str, before_attempt: int, budget: Budget) -> tuple[AttemptPast, ...]:
    told: deque[AttemptPast] = deque()

    def enough(row: Row) -> bool:
        text = text_of(rows, turn, row["number"])
        told.appendleft(_attempt(rows, turn, row["number"], text, _CUTS.get(row["state"], ""), budget))
        return budget.is_spent

    found = rows.some(ATTEMPTS, (turn, before_attempt), enough)
    if found and found[-1]["number"] > 1:
        budget.was_cut = True
        told.appendleft(AttemptPast(f"[… {found[-1]['number'] - 1} earlier attempts left out …]", (), ""))
    return tuple(told)


def _turn(rows: Rows, session: str, row: Row, budget: Budget) -> TurnPast:
    texts = _texts(rows, row["messages"], budget)
    if row["state"] == "done":
        answer = rows.one(ANSWER, (session, row["number"]))
        # The text of earlier attempts belongs to those attempts and is included once.
        text = answer["text"][answer["earlier_length"] :] if answer is not None else ""
        final = _attempt(rows, row["id"], row["attempts"], text, "", budget)
        earlier = _tried(rows, row["id"], row["attempts"], budget)
        told = tuple(attempt for attempt in earlier if attempt.text or attempt.tools)
        return TurnPast(row["id"], row["number"], texts, (*told, final))
    attempts = _tried(rows, row["id"], row["attempts"] + 1, budget)
    if attempts:
        # Also when the last attempt was lost or asked a question: the turn ended before it could continue.
        attempts = (*attempts[:-1], replace(attempts[-1], cut=_CUTS[row["state"]]))
    return TurnPast(row["id"], row["number"], texts, attempts)


def _texts(rows: Rows, messages: str, budget: Budget) -> tuple[str, ...]:
    """Return the messages of a turn, in order; messages beyond the budget are counted."""
    texts: list[str] = []

    def enough(row: Row) -> bool:
        texts.append(budget.take(row["text"]).text)
        return budget.is_spent

    rows.some(TAKEN, (messages,), enough)
    more = len(json.loads(messages)) - len(texts) if budget.is_spent else 0
    if not more:
        return tuple(texts)
    budget.was_cut = True
    return (*texts, f"[… {more} further messages left out …]")


def _attempt(rows: Rows, turn: str, number: int, text: str, cut: Cut, budget: Budget) -> AttemptPast:
    budget.spend(cut)
    words = budget.take(text)
    tools: deque[ToolPast] = deque()

    def enough(row: Row) -> bool:
        tools.appendleft(_tool(row, words, budget))
        return budget.is_spent

    missing = 0
    if not budget.is_spent:
        rows.some(TOOLS, (turn, number), enough)
    if budget.is_spent:
        counted = rows.one(TOOLS_COUNTED, (turn, number))
        missing = (counted["number"] if counted is not None else 0) - len(tools)
    if not missing:
        return AttemptPast(words.text, tuple(tools), cut)
    budget.was_cut = True
    mark = f"[… {missing} earlier tool calls left out …]\n"
    moved = tuple(replace(tool, offset=tool.offset + len(mark)) for tool in tools)
    return AttemptPast(mark + words.text, moved, cut)


def _tool(row: Row, words: budgets.Cut, budget: Budget) -> ToolPast:
    """Cut arguments stay a JSON object: some servers refuse a call without one."""
    budget.spend(row["call"], row["name"])
    result = budget.take(row["result"]).text if row["state"] == "finished" else None
    arguments = budget.take(row["arguments"])
    return ToolPast(
        row["call"],
        row["name"],
        json.dumps({"cut": arguments.text}, ensure_ascii=False) if arguments.left_out else arguments.text,
        row["repeat"],
        result,
        bool(row["ok"]),
        words.place(row["offset"]),
    )
