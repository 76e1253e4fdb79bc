"""Giving sessions away: what queues at a full host, or at one that drains, goes on at another host.

A session can be given only while nothing of it runs and nothing of it was begun here: it has no worker, and
its turn, if it has one, had no attempt. So there is no process to end, no timer to stop and no clip that is
being transcribed. The record moves the session to the other host's life in the same commit; from this
decision on it is not in memory, and who asks for it is sent there.

With local files a session stays with them; the host that asks for this knows which have none yet.
"""

from supervisor.core import line
from supervisor.core.decision import Draft
from supervisor.core.effects import Done
from supervisor.core.events import SessionsToGive
from supervisor.core.records import SessionGiven
from supervisor.core.state import State


def can_be_given(state: State, name: str) -> bool:
    session = state.sessions.get(name)
    if session is None or session.held or session.is_at_rest or name in state.seat_of:
        return False
    is_begun = session.turn is not None and (session.turn.has_begun or name not in state.queued)
    return not is_begun and not any(message.is_transcribing for message in session.waiting)


def to_give(draft: Draft, event: SessionsToGive) -> None:
    """Give those that can still be given; the others have begun meanwhile, and stay."""
    state, given = draft.state, 0
    for name in event.sessions:
        if not can_be_given(state, name):
            continue
        session = state.sessions[name]
        draft.note(session, SessionGiven, to_life=event.life)
        line.leave(state, name)
        state.openable.pop(name, None)
        state.waiting -= len(session.waiting)
        del state.sessions[name]
        given += 1
    draft.answer = Done(note=f"{given} given away")
