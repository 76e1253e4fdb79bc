"""Who waits: messages in their sessions, and sessions in one line for a seat; each has one place at most.

A session stands in the line once, whatever is said to it, and goes to its end with every further turn. So a
chatty one is served as often as any other, and nobody is passed over.

A worker serves one session, so the first in line is not always the one that can be served. Three parts of
the line answer who can, without a walk through ten thousand sessions:

- `own`: sessions whose own worker is idle.
- `lines`: sessions that have no worker, by the agent of their turn. Each part is a heap of (rank, session).
  A session may leave the line or get another place while its entry stays behind; such an entry is
  recognised by `Place.rank` and `Place.line` when it comes to the top, and dropped then. Every entry is
  dropped once.
- The others wait for their own worker, which settles or dies. They are listed when it has: `enlist` is
  called whenever a session joins the line, and whenever its worker becomes idle or is gone.
"""

from heapq import heappop, heappush

from supervisor.core.state import Message, Place, Session, State


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
    if session not in state.queued:
        lowest, highest = state.ranks
        state.ranks = lowest, highest + 1
        state.queued[session] = Place(highest + 1, now)
    state.resting.pop(session, None)
    enlist(state, session)


def go_first(state: State, session: str, now: float) -> None:
    """A turn that has begun and was thrown back goes before those that have not begun.

    It still has the worker it was thrown back by: it is listed when that is ready again, or gone.
    """
    lowest, highest = state.ranks
    state.ranks = lowest - 1, highest
    state.queued[session] = Place(lowest - 1, now)
    state.queued.move_to_end(session, last=False)
    state.resting.pop(session, None)


def rest(state: State, session: str) -> None:
    """The session's turn is out of the line until its rest is over (core/backoff.py)."""
    state.resting[session] = None


def leave(state: State, session: str) -> None:
    state.queued.pop(session, None)
    state.own.pop(session, None)
    state.resting.pop(session, None)


def enlist(state: State, session: str | None) -> None:
    """Put a session of the line into the part in which it is looked for."""
    place = state.queued.get(session) if session is not None else None
    if session is None or place is None:
        return
    seat = state.seat_of.get(session)
    if seat is not None:
        if seat in state.idle:
            state.own[session] = None
        return
    turn = state.sessions[session].turn
    assert turn is not None  # a session without a turn has left the line
    if place.line != turn.agent:
        place.line = turn.agent
        heappush(state.lines.setdefault(turn.agent, []), (place.rank, session))


def first_of(state: State, agent: str) -> str | None:
    """The first in line that needs a worker of this agent and has none."""
    entries = state.lines.get(agent, [])
    while entries:
        rank, session = entries[0]
        place = state.queued.get(session)
        if place is not None and (place.rank, place.line) == (rank, agent):
            return session
        heappop(entries)
    return None


def backlog(state: State) -> int:
    """All that was accepted and has not begun."""
    return state.waiting + len(state.queued) + len(state.resting)
