"""Cursors: how far a named client has acknowledged a session's events; they move forward only."""

from supervisor.core.decision import Draft
from supervisor.core.effects import Done, Refused
from supervisor.core.events import EventsSeen
from supervisor.core.records import CursorMoved

# A client keeps its name. One that invents a new name each time is refused before it fills the journal.
CURSORS_PER_SESSION_MAX = 64


def seen(draft: Draft, event: EventsSeen) -> None:
    """Move the cursor, so that this client continues behind it in every later epoch."""
    session = draft.state.sessions.get(event.session)
    if session is None or event.seq > session.seq:
        there = session.seq if session else 0
        error = f"session {event.session} has {there} events, so number {event.seq} cannot have been read"
        draft.answer = Refused(error, "acknowledge the seq of the last event that was read", code="conflict")
    elif event.seq <= event.stands_at:
        draft.answer = Done(note=f"cursor {event.cursor} stands at {event.stands_at}")
    elif event.stands_at == 0 and event.cursors >= CURSORS_PER_SESSION_MAX:
        error = f"session {event.session} has {event.cursors} cursors already"
        draft.answer = Refused(error, "let a client use the same cursor each time it comes", code="full")
    else:
        draft.note(session, CursorMoved, cursor=event.cursor, seen=event.seq, before=event.stands_at)
        draft.answer = Done(note=f"cursor {event.cursor} stands at {event.seq}")
