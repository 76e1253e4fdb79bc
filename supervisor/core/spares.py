"""How many warm workers are kept beyond the busy ones: as many as stand in for those that are away.

A worker of use is away from the moment it is killed or gives its turn back until a process in its seat is
ready. The mean number of workers away is the rate at which that happens times how long it takes; so it is
enough to add up the times, fading, and neither factor need be known.
"""

from math import exp, sqrt

from supervisor.core.decision import Ledger
from supervisor.core.state import State, Worker
from supervisor.core.timers import SparesDue

# What was a minute ago has little to say, and a seat is not given up sooner than this.
_WINDOW_SECONDS = 60.0
# Deaths come by chance: the mean and twice its spread are enough for all but one moment in twenty.
_SPREADS = 2.0


def came_back(ledger: Ledger, worker: Worker) -> None:
    """A seat is of use again: remember how long it was not, and keep more spares if that calls for it."""
    if worker.away_since is None:
        return
    state = ledger.state
    away_seconds, worker.away_since = ledger.now - worker.away_since, None
    state.demand.away_seconds = _faded(state, ledger.now) + away_seconds
    state.demand.at = ledger.now
    more = _more_needed(state, ledger.now)
    # Who is short of memory keeps what it has.
    if more > state.spares_more and not state.strains:
        if not state.spares_more:
            ledger.remind(ledger.now + _WINDOW_SECONDS, SparesDue())
        state.spares_more = more


def look(ledger: Ledger) -> None:
    """Give up one spare if fewer will do; one at a time, so that a lull does not cost the next burst."""
    state = ledger.state
    if _more_needed(state, ledger.now) < state.spares_more:
        state.spares_more -= 1
    if state.spares_more:
        ledger.remind(ledger.now + _WINDOW_SECONDS, SparesDue())


def _more_needed(state: State, now: float) -> int:
    """Beyond the policy's. More than there are busy seats cannot be needed: no more can be away at once."""
    mean = _faded(state, now) / _WINDOW_SECONDS
    needed = int(mean + _SPREADS * sqrt(mean) + 0.5)
    return max(0, min(needed, state.policy.busy_seats) - state.policy.spares)


def _faded(state: State, now: float) -> float:
    return state.demand.away_seconds * exp((state.demand.at - now) / _WINDOW_SECONDS)
