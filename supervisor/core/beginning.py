"""The beginning of a session that has a history from the start: imported, or copied from another session.

Invariant: it is the first event of its session. A session that has any event keeps the history it has, so a
request that comes later, or twice with another key, is refused. The turns are opaque here: the journal keeps
them, and attempts are told of them before the turns of the session itself.
"""

from supervisor.core.decision import Draft
from supervisor.core.effects import Done, Refused
from supervisor.core.events import BeginAsked
from supervisor.core.records import SessionBegun
from supervisor.core.state import Session


def begin_asked(draft: Draft, event: BeginAsked) -> None:
    session = draft.state.sessions.setdefault(event.session, Session(event.session))
    if session.seq == 0:
        draft.tell(
            session,
            SessionBegun,
            key=event.key,
            origin=event.origin,
            through=event.through,
            turns=event.turns,
        )
        draft.answer = Done(note=f"session {event.session} begins with {len(event.turns)} turns")
    elif event.known == event.key:
        draft.answer = Done(note=f"session {event.session} has begun already")
    else:
        error = f"session {event.session} exists already"
        draft.answer = Refused(error, "choose a name that no session has", code="conflict")
