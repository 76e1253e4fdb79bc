"""Sums over ended turns: their number by outcome, and what they used, by session and by day of UTC.

They are kept as rows of their own, because counting the turns at each need would take longer with each turn.
"""

_COUNTED = "UPDATE tallies SET number = number + 1 WHERE what = '{}'"
_USED_BY_SESSION = """
    UPDATE sessions SET tokens = tokens + :input_tokens + :output_tokens, cost = cost + :cost
    WHERE name = :session AND :input_tokens + :output_tokens > 0"""
_USED_ON_DAY = """
    INSERT INTO days (day, tokens, cost)
    SELECT date(:at, 'unixepoch'), :input_tokens + :output_tokens, :cost
    WHERE :input_tokens + :output_tokens > 0
    ON CONFLICT (day) DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost"""


def added(outcome: str) -> tuple[str, str, str]:
    """Return the SQL that adds a turn that ends like this."""
    return _COUNTED.format(outcome), _USED_BY_SESSION, _USED_ON_DAY
