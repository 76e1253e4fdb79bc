"""Tables for clients, in pages: every row comes with the place from which the next request continues.

A place is the key that the table is ordered by, so that a page costs the same wherever it begins and no row
is read twice (ipc/paging.py).
"""

import json
import math
from collections.abc import Iterator

from ipc.bounds import NUMBER_MAX, Name, Number
from ipc.messages import TurnState
from ipc.paging import PAGE_ROWS, Placed, key_of, listed, place
from supervisor.journal import session_search, turn_rows, turn_story
from supervisor.journal.reader import Reads, turn_row
from supervisor.journal.rows import Rows

# Turns with their content in one page: each is several reads, and the loop waits for them.
_HISTORY_ROWS = 50
# Rows that are compared with a prefix in one page.
_LOOKED_AT = 500

SESSIONS_PAGE = """
    SELECT name, seq, turns, held, created_at, last_at FROM sessions INDEXED BY sessions_recent
    WHERE (last_at, name) < (?, ?) ORDER BY last_at DESC, name DESC LIMIT ?"""
_TURN_COLUMNS = """
    position, id, session, number, agent, state, messages, opened_at, ended_at, attempts, losses, error, hint,
    ended_by, input_tokens, output_tokens, poison, killed,
    (SELECT level FROM attempts WHERE turn = turns.id AND number = turns.attempts) AS level"""
TURNS_OPEN = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_open
    WHERE state IN ('queued', 'running', 'asking') AND position < ?4
        AND (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_UNHAPPY = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_unhappy
    WHERE state IN ('failed', 'interrupted') AND state = ?1 AND position < ?4
        AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_POISON = f"""
    SELECT {_TURN_COLUMNS} FROM turns INDEXED BY turns_unhappy
    WHERE state IN ('failed', 'interrupted') AND state = 'failed' AND poison AND position < ?4
        AND (?2 IS NULL OR session = ?2)
    ORDER BY position DESC LIMIT ?3"""
TURNS_OF_SESSION = f"""
    SELECT {_TURN_COLUMNS} FROM turns
    WHERE session = ?2 AND (?1 IS NULL OR state = ?1) AND number < ?4 ORDER BY number DESC LIMIT ?3"""
TURNS_OF_ALL = f"""
    SELECT {_TURN_COLUMNS} FROM turns
    WHERE (?1 IS NULL OR state = ?1) AND position < ?4 ORDER BY position DESC LIMIT ?3"""
QUESTIONS_OPEN = """
    SELECT id AS question, session, turn, kind, text, choices, at FROM questions INDEXED BY questions_waiting
    WHERE state = 'open' AND (at, id) > (?, ?) ORDER BY at, id LIMIT ?"""
TOOL_OUTPUT = """
    SELECT position, attempt, call, name, arguments, state, ok, ms, result FROM tool_calls
    WHERE turn = ? AND call = ? AND (attempt, position) < (?, ?)
    ORDER BY attempt DESC, position DESC LIMIT 1"""
CURSORS_PAGE = """
    SELECT cursors.session, cursors.name AS cursor, cursors.seq, sessions.seq - cursors.seq AS behind,
        cursors.at
    FROM cursors JOIN sessions ON sessions.name = cursors.session
    WHERE (?1 IS NULL OR cursors.session = ?1)
        AND (cursors.at < ?2 OR (cursors.at = ?2 AND (cursors.session, cursors.name) > (?3, ?4)))
    ORDER BY cursors.at DESC, cursors.session, cursors.name LIMIT ?5"""


class Tables:
    """The tables that clients list. `after` is the place of an earlier page or empty, else BadPlace."""

    def __init__(self, rows: Rows, reads: Reads) -> None:
        self._rows = rows
        self._reads = reads

    def sessions(self, after: str, limit: int) -> Iterator[Placed]:
        """Yield the sessions with the latest activity first."""
        last_at, name = key_of(after, tuple[float, Name], (math.inf, ""))
        for row in self._rows.all(SESSIONS_PAGE, (last_at, name, _fetched(limit))):
            yield dict(row), place(row["last_at"], row["name"])

    def found(self, prefix: str, words: str, after: str) -> Iterator[Placed]:
        """Yield the sessions whose names begin so and that have these words, latest activity first."""
        return session_search.search(self._rows, prefix, words, after)

    def history(self, session: str, after: str, limit: int) -> Iterator[Placed]:
        """Yield the turns of a session with their content, newest first, then those it has begun with."""
        turn, past = key_of(after, tuple[Number, Number], (NUMBER_MAX, NUMBER_MAX))
        left = min(limit, _HISTORY_ROWS)
        for row, number in turn_rows.below(self._rows, session, turn, left):
            yield row, place(number, NUMBER_MAX)
            turn, left = number, left - 1
        for row, number in turn_rows.past_below(self._rows, session, past, left):
            yield row, place(1, number)
            turn, past, left = 1, number, left - 1
        if not left:
            yield None, place(turn, past)

    def turn(self, id: str, after: str) -> Iterator[Placed]:
        """Yield one turn with its content; nothing when there is none."""
        row = turn_rows.one(self._rows, id)
        return listed([row] if row is not None else [], after)

    def turns(
        self, state: TurnState | None, session: str | None, after: str, limit: int, prefix: str = ""
    ) -> Iterator[Placed]:
        """Turns, newest first. With a prefix a page looks at a fixed number, whether they match or not."""
        (below,) = key_of(after, tuple[Number], (NUMBER_MAX,))
        query, key = TURNS_OF_ALL, "position"
        if state == "poison":
            query = TURNS_POISON
        elif state in ("queued", "running", "asking"):
            query = TURNS_OPEN
        elif state in ("failed", "interrupted"):
            query = TURNS_UNHAPPY
        elif session is not None:
            query, key = TURNS_OF_SESSION, "number"
        looked_at = _LOOKED_AT if prefix else _fetched(limit)
        found = self._rows.all(query, (state, session, looked_at, below))
        for row in found:
            if row["session"].startswith(prefix):
                shown = turn_row(row)
                del shown["position"]
                yield shown, place(row[key])
        if prefix and len(found) == looked_at:
            yield None, place(found[-1][key])

    def questions(self, after: str, limit: int, prefix: str = "") -> Iterator[Placed]:
        """Yield the questions that wait for a person, the longest wait first. With a prefix as for turns."""
        at, id = key_of(after, tuple[float, str], (-math.inf, ""))
        looked_at = _LOOKED_AT if prefix else _fetched(limit)
        found = self._rows.all(QUESTIONS_OPEN, (at, id, looked_at))
        for row in found:
            if row["session"].startswith(prefix):
                shown = dict(row) | {"choices": json.loads(row["choices"])}
                yield shown, place(row["at"], row["question"])
        if prefix and len(found) == looked_at:
            yield None, place(found[-1]["at"], found[-1]["question"])

    def cursors(self, session: str | None, after: str, limit: int) -> Iterator[Placed]:
        """Yield each named client's cursor and how far it is behind; the one that moved last comes first."""
        at, of, name = key_of(after, tuple[float, Name, Name], (math.inf, "", ""))
        for row in self._rows.all(CURSORS_PAGE, (session, at, of, name, _fetched(limit))):
            yield dict(row), place(row["at"], row["session"], row["cursor"])

    def story(self, id: str, after: str) -> Iterator[Placed]:
        """Yield all events of the message or turn with this id; nothing when there is none."""
        (seen,) = key_of(after, tuple[Number], (0,))
        page = self._reads.events_after
        message = self._reads.message_story(id)
        turn = self._reads.turn_story(str(message["turn"]) if message else id)
        if turn is not None:
            summary = turn_story.of_turn(turn)
            if message is not None:
                summary = {"kind": "message", "id": id, "session": message["session"]}
                summary |= {"state": message["state"], "turn": turn["id"], "turn_state": turn["state"]}
                summary["clip"] = message["clip"]
            messages = {each["id"]: each["seq"] for each in turn["messages"]}
            seen = max(seen, min(messages.values(), default=1) - 1)
            told = turn_story.events(turn["session"], seen, set(messages), turn["id"], page)
        elif message is not None:
            summary = turn_story.of_message(message)
            told = turn_story.events(message["session"], max(seen, message["seq"] - 1), {id}, "", page)
        else:
            return
        if not after:
            yield summary, place(0)
        for row, seq in told:
            yield row, place(seq)

    def tool_output(self, turn: str, call: str, after: str) -> Iterator[Placed]:
        """Yield arguments and result of a tool call, whole, in each attempt that made it, the latest first.

        Rows are read one at a time: a result may fill a page alone.
        """
        below = key_of(after, tuple[Number, Number], (NUMBER_MAX, NUMBER_MAX))
        while row := self._rows.one(TOOL_OUTPUT, (turn, call, *below)):
            below = (row["attempt"], row["position"])
            shown = dict(row)
            del shown["position"]
            yield shown, place(*below)


def _fetched(limit: int) -> int:
    """Return one row more than a page has: it shows whether there is another page."""
    return min(limit, PAGE_ROWS) + 1
