"""Enrichment: adds what the journal knows to an event before it is decided.

The core is pure, so all it needs from the journal is part of the event: whether a message's key is known,
where a cursor is, by which request a session has begun, and the session itself when it is not in memory. A
batch is decided before it is committed, so the results of its earlier events are looked up here first and in
the journal second.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from supervisor.core.events import (
    BeginAsked,
    DropAsked,
    Event,
    EventsSeen,
    HostRead,
    InterruptAsked,
    Known,
    ResumeAsked,
    SessionsTaken,
    TextArrived,
    TextStreamed,
    Ticked,
    VoiceArrived,
    WorkerAlive,
)
from supervisor.core.inbox import put_to_rest
from supervisor.core.records import CursorMoved, MessageAccepted, Record, SessionBegun
from supervisor.core.state import Session, State
from supervisor.core.storable import holdable

# Events that need their session in memory.
ABOUT_SESSIONS = (
    TextArrived, VoiceArrived, BeginAsked, InterruptAsked, DropAsked, ResumeAsked, EventsSeen,
)  # fmt: skip
# The most frequent events: their numbers are our own, and the wire has checked their text.
_HOLDABLE = (WorkerAlive, TextStreamed, HostRead, Ticked)


class Journal(Protocol):
    """What is known of a session, a message or a cursor. A server is asked before (lookahead.py)."""

    def wake(self, session: str) -> Session | None: ...
    def known(self, message: str) -> Known | None: ...
    def cursors(self, session: str) -> dict[str, int]: ...
    def begun_by(self, session: str) -> str | None: ...


class Lookup:
    """Serves one batch at a time: `settled` ends it."""

    def __init__(self, state: State, journal: Journal) -> None:
        self._state = state
        self._journal = journal
        # Messages, cursors and beginnings that the journal does not have yet; sessions that were asked about.
        self._fresh: dict[str, Known] = {}
        self._moved: dict[str, dict[str, int]] = {}
        self._begun: dict[str, str] = {}
        self._touched: set[str] = set()

    def prepared(self, event: Event) -> Event:
        """Return the event with what is known. If this raises, only sessions at rest were loaded."""
        if not isinstance(event, _HOLDABLE):
            event = holdable(event)
        if isinstance(event, ABOUT_SESSIONS):
            self._wake(event.session)
        elif isinstance(event, SessionsTaken):
            # One that is in memory was taken before.
            return replace(event, sessions=tuple(filter(self._wake, event.sessions)))
        # A session without messages has no known keys.
        if isinstance(event, TextArrived | VoiceArrived) and event.session in self._state.sessions:
            return replace(event, known=self._fresh.get(event.message) or self._journal.known(event.message))
        if isinstance(event, BeginAsked) and event.session in self._state.sessions:
            known = self._begun.get(event.session)
            return replace(event, known=self._journal.begun_by(event.session) if known is None else known)
        if isinstance(event, EventsSeen):
            cursors = self._journal.cursors(event.session) | self._moved.get(event.session, {})
            return replace(event, stands_at=cursors.get(event.cursor, 0), cursors=len(cursors))
        return event

    def decided(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, MessageAccepted):
                self._fresh[record.message] = Known(record.seq, None if record.clip else record.text)
            elif isinstance(record, SessionBegun):
                self._begun[record.session] = record.key
            elif isinstance(record, CursorMoved):
                self._moved.setdefault(record.session, {})[record.cursor] = record.seen

    def settled(self, records: Iterable[Record]) -> None:
        """The batch is committed: the journal has all of it, and sessions at rest can leave memory."""
        put_to_rest(self._state, self._touched.union(record.session for record in records))
        self._fresh.clear()
        self._moved.clear()
        self._begun.clear()
        self._touched.clear()

    def _wake(self, name: str) -> bool:
        """Return whether the session was loaded now."""
        self._touched.add(name)
        if name in self._state.sessions:
            return False
        session = self._journal.wake(name)
        if session is not None:
            self._state.sessions[name] = session
        return session is not None
