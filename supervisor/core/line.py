"""The queue: messages in their sessions, and sessions in one queue for a seat; each has at most one place.

Problem: ten thousand sessions share a few seats. The order must be fair, and a decision must not cost more
with more sessions.

A session is in the queue once, however many messages it has, and goes to its end with every further turn. So
a busy session gets as many turns as any other, and none is passed over. `Place.rank` is its position: the
lowest is placed first; a turn that has begun and was put back gets a rank below all others.

A worker serves one session, so the first session in the queue is not always the one that can be placed. Three
parts of the queue show which can, without a scan:

- `own`: sessions whose own worker is idle.
- `lines`: sessions that have no worker, by the agent of their turn. Each part is a heap of (rank, session).
  A session may leave the queue or get another place while its old entry remains; such an entry is recognised
  by `Place.rank` and `Place.line` when it comes to the top, and removed then. Each entry is removed once, so
  the cost is amortised.
- The others wait until their own worker is idle or has ended. `enlist` is called whenever a session joins the
  queue, and whenever its worker becomes idle or has ended.

Invariants: a session in `queued` has a turn without an attempt; it is never in `resting` at the same time;
a session in `own` is in `queued`.
"""

from heapq import heappop, heappush

from supervisor.core.state import Message, Place, Session, State


def put(state: State, session: Session, message: Message) -> None:
    """Append a message to those that wait in its session."""
    session.waiting.append(message)
    state.waiting += 1


def take(state: State, session: Session, message: Message) -> None:
    """Remove a message from those that wait."""
    session.waiting.remove(message)
    state.waiting -= 1


def join(state: State, session: str, now: float) -> None:
    """Queue the session's turn for a seat. A turn that keeps its place keeps its time, too."""
    if session not in state.queued:
        lowest, highest = state.ranks
        state.ranks = lowest, highest + 1
        state.queued[session] = Place(highest + 1, now)
    state.resting.pop(session, None)
    enlist(state, session)


def go_first(state: State, session: str, now: float) -> None:
    """Queue a turn that has begun and was put back before those that have not begun.

    Its worker still exists: the session is listed when that is ready again, or gone.
    """
    lowest, highest = state.ranks
    state.ranks = lowest - 1, highest
    state.queued[session] = Place(lowest - 1, now)
    state.queued.move_to_end(session, last=False)
    state.resting.pop(session, None)


def rest(state: State, session: str) -> None:
    """Take the session's turn out of the queue until its pause is over (core/backoff.py)."""
    state.resting[session] = None


def leave(state: State, session: str) -> None:
    state.queued.pop(session, None)
    state.own.pop(session, None)
    state.resting.pop(session, None)


def enlist(state: State, session: str | None) -> None:
    """List a queued session in the part of the queue where it is searched."""
    place = state.queued.get(session) if session is not None else None
    if session is None or place is None:
        return
    seat = state.seat_of.get(session)
    if seat is not None:
        if seat in state.idle:
            state.own[session] = None
        return
    turn = state.sessions[session].turn
    assert turn is not None  # a session without a turn is not in the queue
    if place.line != turn.agent:
        place.line = turn.agent
        heappush(state.lines.setdefault(turn.agent, []), (place.rank, session))


def first_of(state: State, agent: str) -> str | None:
    """Return the first session in the queue that needs a worker of this agent and has none."""
    entries = state.lines.get(agent, [])
    while entries:
        rank, session = entries[0]
        place = state.queued.get(session)
        if place is not None and (place.rank, place.line) == (rank, agent):
            return session
        heappop(entries)
    return None


def backlog(state: State) -> int:
    """Return the number of accepted messages and turns that have not begun."""
    return state.waiting + len(state.queued) + len(state.resting)
