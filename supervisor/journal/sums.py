"""Sums over ended turns: their number by outcome, and what they used, by session and by day of UTC.

They are kept as rows of their own, because counting the turns at each need would take longer with each turn.
"""

from dataclasses import dataclass

from supervisor.journal.rows import Rows

COUNTED = "UPDATE tallies SET number = number + 1 WHERE what = '{}'"
_USED_BY_SESSION = """
    UPDATE sessions SET tokens = tokens + :input_tokens + :output_tokens, cost = cost + :cost
    WHERE name = :session AND :input_tokens + :output_tokens > 0"""
USED_ON_DAY = """
    INSERT INTO days (day, tokens, cost)
    SELECT date(:at, 'unixepoch'), :input_tokens + :output_tokens, :cost
    WHERE :input_tokens + :output_tokens > 0
    ON CONFLICT (day) DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost"""

USED = """
    SELECT 'turn' AS scope, coalesce(sum(input_tokens + output_tokens), 0) AS tokens,
        coalesce(sum(cost), 0) AS cost, date('now') AS day FROM attempts WHERE turn = ?
    UNION ALL SELECT 'session', tokens, cost, '' FROM sessions WHERE name = ?
    UNION ALL SELECT 'day', tokens, cost, '' FROM days WHERE day = date('now')"""
APPROVED = """
    SELECT 1 FROM questions INDEXED BY questions_approved
    WHERE text = ? AND session = ifnull(?, session)
        AND kind = 'approve' AND state = 'answered' AND answer = 'yes' LIMIT 1"""


@dataclass(frozen=True, slots=True)
class Used:
    """What was used, by scope ("turn", "session", "day"), as tokens and as cost; and which day it is."""

    day: str
    sums: dict[str, dict[str, int]]

    def of(self, scope: str) -> dict[str, int]:
        """Return the use of a scope. The open turn counts in all of them."""
        turn, more = self.sums["turn"], self.sums.get(scope, {})
        return turn if scope == "turn" else {what: turn[what] + more.get(what, 0) for what in turn}


def used(rows: Rows, session: str, turn: str) -> Used:
    """Return what the open turn, the ended turns of the session, and those of this day have used."""
    found = rows.all(USED, (turn, session))
    sums = {row["scope"]: {"tokens": int(row["tokens"]), "cost": int(row["cost"])} for row in found}
    return Used(found[0]["day"], sums)


def is_approved(rows: Rows, question: str, session: str | None) -> bool:
    """Return whether a question of this text was answered with yes, in that session or in any."""
    return rows.one(APPROVED, (question, session)) is not None


def added(outcome: str) -> tuple[str, str, str]:
    """Return the SQL that adds a turn that ends like this."""
    return COUNTED.format(outcome), _USED_BY_SESSION, USED_ON_DAY
