"""Sessions by the beginning of their name and by words, the latest activity first, in bounded steps.

There is no index of words. A search reads names and messages backwards from the present and ends after a few
milliseconds, in the middle of a long session if need be: the supervisor's loop waits for it. The place where
it ended is that of a page, from which the next request continues, so a search without a result is several
short requests.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from ipc.bounds import NUMBER_MAX, Name, Number
from ipc.paging import Placed, key_of, place
from supervisor.clock import monotonic
from supervisor.journal.rows import Row, Rows

# Sessions that are looked at in one statement, and events of one of them.
_SESSIONS = 200
_EVENTS = 500
_SECONDS_MAX = 0.01
# Further words count as one.
_WORDS_MAX = 8

SESSION = "SELECT name, seq, turns, held, created_at, last_at FROM sessions WHERE name = ? AND last_at = ?"
SESSIONS_BELOW = """
    SELECT name, seq, turns, held, created_at, last_at FROM sessions INDEXED BY sessions_recent
    WHERE (last_at, name) < (?, ?) ORDER BY last_at DESC, name DESC LIMIT ?"""
# A message's text is in its first event; that of a clip is its transcript.
MESSAGES_BELOW = """
    SELECT min(seq) AS lowest, coalesce(max(CASE WHEN {match} THEN 1 ELSE 0 END), 0) AS is_found FROM (
        SELECT seq, type, body FROM events
        WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?) AS newest"""
_MATCH = "type IN ('message.accepted', 'transcript.ready')"
_WORD = r" AND json_extract(body, '$.text') LIKE ? ESCAPE '\'"


def search(rows: Rows, prefix: str, words: str, after: str) -> Iterator[Placed]:
    """Yield the rows of matching sessions, and a place without a row where the search pauses.

    All words must be in the name, or in one message; letters of ASCII match in either case.
    """
    last_at, name, below = key_of(after, tuple[float, Name, Number], (math.inf, "", 0))
    wanted = words.split(None, _WORDS_MAX - 1)
    until = monotonic() + _SECONDS_MAX
    # The page before may have ended in the middle of this session.
    begun = rows.all(SESSION, (name, last_at)) if below else []
    for row in chain(begun, _sessions(rows, last_at, name)):
        last_at, name = row["last_at"], row["name"]
        is_possible = name.startswith(prefix)
        # The prefix is what all have in common; a word that is in it selects nothing.
        is_found = is_possible and all(word.lower() in name[len(prefix) :].lower() for word in wanted)
        lowest, below = below or NUMBER_MAX, 0
        while is_possible and not is_found and lowest > 1:
            is_found, lowest = _in_messages(rows, name, lowest, wanted)
            if not is_found and lowest > 1 and monotonic() > until:
                yield None, place(last_at, name, lowest)
                return
        if is_found:
            yield dict(row), place(last_at, name, 0)
        if monotonic() > until:
            yield None, place(last_at, name, 0)
            return


def _sessions(rows: Rows, last_at: float, name: str) -> Iterator[Row]:
    while found := rows.all(SESSIONS_BELOW, (last_at, name, _SESSIONS)):
        yield from found
        last_at, name = found[-1]["last_at"], found[-1]["name"]


def _in_messages(rows: Rows, session: str, below: int, words: Sequence[str]) -> tuple[bool, int]:
    """Return whether one of the next messages has all words, and where to continue: 0 at the end."""
    patterns = [f"%{_escaped(word)}%" for word in words]
    query = MESSAGES_BELOW.format(match=_MATCH + _WORD * len(words))
    row = rows.one(query, (*patterns, session, below, _EVENTS))
    assert row is not None  # an aggregate always has one
    return bool(row["is_found"]), row["lowest"] or 0


def _escaped(word: str) -> str:
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
