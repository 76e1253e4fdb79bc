"""Removal of timers whose subject has ended.

A timer is not cancelled: if its attempt, turn or process ends first, it is ignored when it is due. But the
deadline of a turn lies half an hour ahead, so a service with many short turns would keep thousands of them.
Therefore such timers are removed whenever their number has doubled since the last removal: the cost of each
timer is constant, and at most every second one is obsolete, besides a minimum.

`applies` may be True for a timer that will have no effect, never False for one that will: numbers of turns,
attempts, pauses and incarnations only grow, so a subject that is gone does not return.
"""

import heapq

from supervisor.core.state import State, Turn
from supervisor.core.timers import (
    Due,
    HoldDue,
    LifeDue,
    OutageDue,
    ReadyDue,
    RestDue,
    RetryDue,
    SilenceDue,
    SparesDue,
    TurnDue,
)

# With fewer timers than this, removal is not worth its time.
KEPT_MIN = 64


def remove(state: State) -> None:
    if len(state.deadlines) <= 2 * max(KEPT_MIN, state.deadlines_kept):
        return
    state.deadlines[:] = [each for each in state.deadlines if applies(state, each[2])]
    heapq.heapify(state.deadlines)
    state.deadlines_kept = len(state.deadlines)


def applies(state: State, due: Due) -> bool:
    """Return whether the subject of the timer is still there."""
    match due:
        case TurnDue():
            turn = _turn(state, due.session, due.turn)
            return turn is not None and turn.pauses == due.pauses
        case SilenceDue():
            turn = _turn(state, due.session, due.turn)
            return turn is not None and turn.attempt is not None and turn.attempt.number == due.attempt
        case HoldDue():
            turn = _turn(state, due.session, due.turn)
            return turn is not None and turn.is_held and turn.questions == due.number
        case RetryDue():
            turn = _turn(state, due.session, due.turn)
            return turn is not None and turn.attempts == due.attempts
        case ReadyDue():
            return _is_current(state, due) and state.workers[due.seat].turns == due.turns
        case LifeDue() | RestDue():
            return _is_current(state, due)
        case OutageDue():
            return due.endpoint in state.outages
        case SparesDue():
            return True


def _turn(state: State, session_name: str, turn: str) -> Turn | None:
    """Return the open turn of the session, if it is this one."""
    session = state.sessions.get(session_name)
    found = session.turn if session else None
    return found if found is not None and found.id == turn else None


def _is_current(state: State, due: ReadyDue | LifeDue | RestDue) -> bool:
    worker = state.workers.get(due.seat)
    return worker is not None and worker.incarnation == due.incarnation
