"""From rows to State: only open work, found by partial indexes, so that history costs nothing.

Each query runs once for all sessions of a load; the same queries load a single session.
"""

import json
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from itertools import chain

from supervisor.core.policy import Policy
from supervisor.core.state import (
    Attempt,
    BusyMode,
    Message,
    Question,
    Session,
    State,
    Turn,
    TurnState,
    Verdict,
    Who,
)
from supervisor.journal.rows import Row, Rows

# Oldest first: the session that waited longest before the restart runs first after it.
OPEN_SESSIONS = """
    SELECT session FROM turns INDEXED BY turns_open WHERE state IN ('queued', 'running', 'asking')
    ORDER BY position"""
WAITING_SESSIONS = """
    SELECT session FROM messages INDEXED BY messages_waiting WHERE state IN ('transcribing', 'waiting')
    GROUP BY session ORDER BY min(position)"""
HELD_SESSIONS = "SELECT name AS session FROM sessions INDEXED BY sessions_held WHERE held > 0 ORDER BY name"
SESSIONS = """
    SELECT name, seq, turns, held FROM json_each(?) AS named CROSS JOIN sessions ON name = named.value"""
WAITING = """
    SELECT session, messages.id, text, busy, at, clip, seq, sent_by, agent, instructions
    FROM json_each(?) AS named CROSS JOIN messages INDEXED BY messages_waiting ON session = named.value
    WHERE state IN ('transcribing', 'waiting') ORDER BY session, seq"""
OPEN_TURNS = """
    SELECT turns.id, session, agent, state, messages, opened_at, attempts, losses, content_at
    FROM json_each(?) AS named CROSS JOIN turns INDEXED BY turns_open ON session = named.value
    WHERE state IN ('queued', 'running', 'asking')"""
TAKEN = """
    SELECT messages.id, messages.text, messages.busy, messages.at, messages.clip, messages.seq,
        messages.sent_by, messages.agent, messages.instructions
    FROM json_each(?) AS listed CROSS JOIN messages ON messages.id = listed.value ORDER BY listed.key"""
# Of attempts, given as pairs of turn and number.
_LISTED = "FROM json_each(?) AS listed CROSS JOIN"
ATTEMPTS = f"""
    SELECT attempts.* {_LISTED} attempts ON turn = listed.value ->> 0 AND number = listed.value ->> 1"""
TEXTS = f"""
    SELECT turn, attempt, text {_LISTED} texts ON turn = listed.value ->> 0 AND attempt = listed.value ->> 1
    ORDER BY turn, attempt, "offset\""""
SPENT = f"""
    SELECT turn, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cost) AS cost
    {_LISTED} attempts ON turn = listed.value ->> 0 AND number <= listed.value ->> 1 GROUP BY turn"""
OPEN_CALLS = f"""
    SELECT turn, attempt, call, name {_LISTED} tool_calls INDEXED BY tool_calls_open
        ON turn = listed.value ->> 0 AND attempt = listed.value ->> 1
    WHERE state = 'started'"""
QUESTIONS = f"""
    SELECT turn, questions.id, kind, text, choices, call, resumes, hold, at
    {_LISTED} questions INDEXED BY questions_open ON turn = listed.value
    WHERE state = 'open'"""
QUESTIONS_ASKED = f"""
    SELECT turn, count(*) AS number {_LISTED} questions INDEXED BY questions_by_turn ON turn = listed.value
    GROUP BY turn"""


def load(rows: Rows, policy: Policy, epoch: int, own: Collection[str] | None = None) -> State:
    """Return the state that a new epoch begins with: all open sessions, or those of `own`."""
    queries = (OPEN_SESSIONS, WAITING_SESSIONS, HELD_SESSIONS)
    names = list(dict.fromkeys(row["session"] for query in queries for row in rows.all(query)))
    if own is not None:
        names = [name for name in names if name in own]
    state = State(policy, epoch)
    state.sessions = _sessions(rows, names)
    for session in state.sessions.values():
        if session.turn is not None and not session.turn.agent:
            # Opened by a version that did not record the agent: use the one of today's settings.
            session.turn.agent = policy.agent_of(session.name)
    return state


def wake(rows: Rows, name: str) -> Session | None:
    """Return one session as the journal has it, or None when it never had a message."""
    return _sessions(rows, [name]).get(name)


def wake_all(rows: Rows, names: Sequence[str]) -> dict[str, Session]:
    """Return those of these sessions that ever had a message."""
    return _sessions(rows, names)


def text_of(rows: Rows, turn: str, attempt: int) -> str:
    """Return the text of an attempt, as far as it was recorded."""
    return _texts(rows, [(turn, attempt)]).get((turn, attempt), "")


def _sessions(rows: Rows, names: Sequence[str]) -> dict[str, Session]:
    """Return these sessions, in this order."""
    wanted = (json.dumps(names),)
    waiting: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows.all(WAITING, wanted):
        waiting[row["session"]].append(row)
    turns = _turns(rows, rows.all(OPEN_TURNS, wanted))
    found = {
        row["name"]: Session(
            row["name"],
            row["seq"],
            row["turns"],
            row["held"],
            deque(map(_message, waiting[row["name"]])),
            turns.get(row["name"]),
        )
        for row in rows.all(SESSIONS, wanted)
    }
    return {name: found[name] for name in names if name in found}


def _turns(rows: Rows, found: Sequence[Row]) -> dict[str, Turn]:
    """By session."""
    if not found:
        return {}
    ids = (json.dumps([row["id"] for row in found]),)
    listed = {row["id"]: json.loads(row["messages"]) for row in found}
    taken = {row["id"]: row for row in rows.all(TAKEN, (json.dumps([*chain(*listed.values())]),))}
    texts = _texts(rows, [(row["id"], number + 1) for row in found for number in range(row["attempts"])])
    over = {row["id"]: row["attempts"] - _is_running(row) for row in found}
    spent = {row["turn"]: row for row in rows.all(SPENT, (json.dumps([*over.items()]),))}
    attempts = _attempts(rows, [row for row in found if _is_running(row)], texts)
    questions = {row["turn"]: row for row in rows.all(QUESTIONS, ids)}
    asked = {row["turn"]: int(row["number"]) for row in rows.all(QUESTIONS_ASKED, ids)}
    return {
        row["session"]: Turn(
            row["id"],
            row["session"],
            tuple(_message(taken[each]) for each in listed[row["id"]] if each in taken),
            row["opened_at"],
            row["agent"],
            attempts=row["attempts"],
            losses=row["losses"],
            content_at=row["content_at"],
            earlier_text="".join(texts.get((row["id"], number + 1), "") for number in range(over[row["id"]])),
            input_tokens=spent[row["id"]]["input_tokens"] if row["id"] in spent else 0,
            output_tokens=spent[row["id"]]["output_tokens"] if row["id"] in spent else 0,
            cost=spent[row["id"]]["cost"] if row["id"] in spent else 0,
            attempt=attempts.get(row["id"]),
            question=_question(questions[row["id"]]) if row["id"] in questions else None,
            questions=asked.get(row["id"], 0),
        )
        for row in found
    }


def _is_running(turn: Row) -> bool:
    return bool(turn["state"] == TurnState.RUNNING)


def _texts(rows: Rows, attempts: Sequence[tuple[str, int]]) -> dict[tuple[str, int], str]:
    pieces: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for row in rows.all(TEXTS, (json.dumps(attempts),)):
        pieces[row["turn"], row["attempt"]].append(row["text"])
    return {attempt: "".join(texts) for attempt, texts in pieces.items()}


def _attempts(rows: Rows, running: Sequence[Row], texts: dict[tuple[str, int], str]) -> dict[str, Attempt]:
    """By turn."""
    if not running:
        return {}
    listed = (json.dumps([(row["id"], row["attempts"]) for row in running]),)
    calls: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows.all(OPEN_CALLS, listed):
        calls[row["turn"]][row["call"]] = row["name"]
    return {
        row["turn"]: Attempt(
            row["number"],
            Who(row["epoch"], row["seat"], row["incarnation"]),
            row["opened_at"],
            row["level"],
            texts.get((row["turn"], row["number"]), ""),
            calls[row["turn"]],
            _verdict(row),
            row["input_tokens"],
            row["output_tokens"],
            row["cost"],
        )
        for row in rows.all(ATTEMPTS, listed)
    }


def _verdict(row: Row) -> Verdict | None:
    if row["state"] != "stopped":
        return None
    return Verdict(TurnState(row["verdict"]), row["verdict_by"], row["verdict_error"], row["verdict_hint"])


def _question(row: Row) -> Question:
    return Question(
        row["id"],
        row["kind"],
        row["text"],
        tuple(json.loads(row["choices"])),
        row["call"],
        bool(row["resumes"]),
        row["hold"],
        row["at"],
    )


def _message(row: Row) -> Message:
    wishes = {"by": row["sent_by"], "agent": row["agent"], "instructions": row["instructions"]}
    return Message(
        row["id"], row["text"], BusyMode(row["busy"]), row["at"], row["clip"], row["seq"], **wishes
    )
