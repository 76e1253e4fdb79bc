"""Who waits: messages in their sessions, and sessions in one line for a seat; each has one place at most.

A session stands in the line once, whatever is said to it, and goes to its end with every further turn. So a
chatty one is served as often as any other, and nobody is passed over.
"""

from supervisor.core.model import Message, Session, State


def put(state: State, session: Session, message: Message) -> None:
    """A message waits behind the others of its session."""
    session.waiting.append(message)
    state.waiting += 1


def take(state: State, session: Session, message: Message) -> None:
    """A message waits no longer."""
    session.waiting.remove(message)
    state.waiting -= 1


def join(state: State, session: str, now: float) -> None:
    """The session's turn waits for a seat. One that keeps its place keeps its time, too."""
    state.queued.setdefault(session, now)


def go_first(state: State, session: str, now: float) -> None:
    """Who has begun and was thrown back goes before those who have not begun."""
    join(state, session, now)
    state.queued.move_to_end(session, last=False)


def leave(state: State, session: str) -> None:
    state.queued.pop(session, None)


def backlog(state: State) -> int:
    """All that was accepted and has not begun."""
    return state.waiting + len(state.queued)
