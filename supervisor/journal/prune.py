"""Pruning: deletes the oldest ended turns with everything that belongs to them, a slice at a time.

Open turns and waiting messages stay. A session's events are only cut at their beginning, and the session
keeps its count, so no seq is used twice and none is missing between two that remain.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from supervisor.core.state import session_of, turn_number

# Removed in one transaction: some thousand rows at most, so that a waiting commit is delayed by milliseconds.
_TURNS_A_SLICE = 20
_EVENTS_A_SLICE = 500
# Rows examined in one transaction while searching for something to remove.
_LOOKED_AT_A_SLICE = 500

_TURNS = """
    SELECT position, id, session, messages, opened_at, ended_at FROM turns
    WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"""
_MESSAGES = """
    SELECT position, id, session, state, at, coalesce(ended_at, at) FROM messages
    WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"""
_NEWEST = "SELECT (SELECT max(position) FROM turns), (SELECT max(position) FROM messages)"
_EVENTS = """
    SELECT seq, json_extract(body, '$.message'), json_extract(body, '$.turn') FROM events
    WHERE session = ? ORDER BY seq LIMIT ?"""
_BEGUN = """
    SELECT position, session, at, seq FROM begun JOIN sessions ON sessions.name = begun.session
    WHERE position > ? ORDER BY position LIMIT ?"""
_MESSAGE = "SELECT 1 FROM messages WHERE id = ?"
_TURN = "SELECT 1 FROM turns WHERE session = ? AND number = ?"
_GONE = ("dropped", "failed")


class Found(Protocol):
    @property
    def rowcount(self) -> int: ...
    def fetchall(self) -> list[Any]: ...
    def fetchone(self) -> Any: ...


class Store(Protocol):
    """A journal's tables, in a transaction."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Found: ...
    def used_bytes(self) -> int: ...
    def tables_of_turns(self) -> Sequence[str]:
        """Return the tables whose rows belong to a turn; messages are handled separately."""


@dataclass
class Pruning:
    """One pass over the journal. `before` is the age limit; without `keep_bytes` the size does not matter."""

    before: float
    keep_bytes: int | None = None
    removed: Counter[str] = field(default_factory=Counter)
    _turn_after: int = 0
    _message_after: int = 0
    _begun_after: int = 0
    # Rows that arrive during the pass are left to the next one: it would never end.
    _turn_last: int | None = None
    _message_last: int | None = None
    _is_by_size: bool = False
    # Sessions that lost rows: their events may have to begin later.
    _feeds: dict[str, None] = field(default_factory=dict)

    @property
    def _limit(self) -> float:
        return inf if self._is_by_size else self.before

    def slice(self, store: Store) -> bool:
        """Remove one slice, in the caller's transaction; return whether there may be more."""
        if self._turn_last is None:
            self._turn_last, self._message_last = (
                number or 0 for number in store.execute(_NEWEST).fetchone()
            )
        if self._feeds:
            self._shorten(store, next(iter(self._feeds)))
            return True
        if self._is_by_size and self._is_small_enough(store):
            return False
        if self._remove_turns(store) or self._remove_messages(store):
            return True
        if self._remove_unused(store):
            return True
        if self._is_by_size or self._is_small_enough(store):
            return False
        # Everything old enough is gone and the file is still too large: remove the oldest of the rest.
        self._is_by_size, self._turn_after, self._message_after, self._begun_after = True, 0, 0, 0
        return True

    def _is_small_enough(self, store: Store) -> bool:
        return self.keep_bytes is None or store.used_bytes() <= self.keep_bytes

    def _remove_turns(self, store: Store) -> bool:
        """Return whether there may be more: turns are ordered by opening, a young one ends the search."""
        place = (self._turn_after, self._turn_last, _LOOKED_AT_A_SLICE)
        found = store.execute(_TURNS, place).fetchall()
        removed = 0
        for position, turn, session, messages, opened_at, ended_at in found:
            if opened_at >= self._limit or removed == _TURNS_A_SLICE:
                break
            self._turn_after = position
            if ended_at is not None and ended_at < self._limit:
                self._remove_turn(store, position, turn, json.loads(messages))
                self._feeds[session] = None
                removed += 1
        return bool(found) and found[0][4] < self._limit

    def _remove_turn(self, store: Store, position: int, turn: str, messages: list[str]) -> None:
        for table in store.tables_of_turns():
            self.removed[table] += store.execute(f'DELETE FROM "{table}" WHERE turn = ?', (turn,)).rowcount
        for message in messages:
            sql = "DELETE FROM messages WHERE id = ? AND turn = ?"
            self.removed["messages"] += store.execute(sql, (message, turn)).rowcount
        sql = "DELETE FROM turns WHERE position = ?"
        self.removed["turns"] += store.execute(sql, (position,)).rowcount

    def _remove_messages(self, store: Store) -> bool:
        """Remove messages that ended without a turn."""
        place = (self._message_after, self._message_last, _LOOKED_AT_A_SLICE)
        found = store.execute(_MESSAGES, place).fetchall()
        for position, message, session, state, at, ended_at in found:
            if at >= self._limit:
                return False
            self._message_after = position
            if state in _GONE and ended_at < self._limit:
                store.execute("DELETE FROM messages WHERE id = ?", (message,))
                self.removed["messages"] += 1
                self._feeds[session] = None
        return bool(found)

    def _remove_unused(self, store: Store) -> bool:
        """Remove the history and the first event of sessions that began with one, and got no message."""
        found = store.execute(_BEGUN, (self._begun_after, _LOOKED_AT_A_SLICE)).fetchall()
        for position, session, at, seq in found:
            if at >= self._limit:
                return False
            self._begun_after = position
            if seq == 1:
                store.execute("DELETE FROM events WHERE session = ?", (session,))
                self.removed["events"] += 1
                self._feeds[session] = None
        return bool(found)

    def _shorten(self, store: Store, session: str) -> None:
        """Delete the events before the first one that belongs to something that remains."""
        found = store.execute(_EVENTS, (session, _EVENTS_A_SLICE)).fetchall()
        last = 0
        for seq, message, turn in found:
            if _is_here(store, _MESSAGE, (message,)) or _is_here(store, _TURN, _key(turn)):
                break
            last = seq
        sql = "DELETE FROM events WHERE session = ? AND seq <= ?"
        self.removed["events"] += store.execute(sql, (session, last)).rowcount
        if not found or last < found[-1][0]:
            del self._feeds[session]
        if not found:
            # A client that comes back begins at the first event there is, which is the next one written.
            for table in ("cursors", "begun", "past_turns"):
                sql = f"DELETE FROM {table} WHERE session = ?"
                self.removed[table] += store.execute(sql, (session,)).rowcount


def _is_here(store: Store, query: str, key: tuple[str | int | None, ...]) -> bool:
    return store.execute(query, key).fetchone() is not None


def _key(turn: str | None) -> tuple[str | int | None, ...]:
    return (session_of(turn), turn_number(turn)) if turn else (None, None)
