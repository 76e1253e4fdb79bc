"""Spares: how many warm workers are kept beyond the busy ones, to replace those that are away.

A worker is away from the moment it is killed or gives its turn back until a process in its seat is ready. The
mean number of workers away is the rate of that times its duration (Little's law); so it is enough to add up
the durations with exponential decay, and neither factor need be known.
"""

from math import exp, sqrt

from supervisor.core.decision import Draft
from supervisor.core.state import State, Worker
from supervisor.core.timers import SparesDue

# The time constant of the decay; a spare is not given up sooner than this.
_WINDOW_SECONDS = 60.0
# Deaths are random: the mean plus twice its standard deviation covers about 95% of the moments.
_SPREADS = 2.0


def came_back(draft: Draft, worker: Worker) -> None:
    """A seat is ready again: add the time it was away, and keep more spares if needed."""
    if worker.away_since is None:
        return
    state = draft.state
    away_seconds, worker.away_since = draft.now - worker.away_since, None
    state.demand.away_seconds = _faded(state, draft.now) + away_seconds
    state.demand.at = draft.now
    more = _more_needed(state, draft.now)
    # While memory is short, no spare is added.
    if more > state.spares_more and not state.strains:
        if not state.spares_more:
            draft.remind(draft.now + _WINDOW_SECONDS, SparesDue())
        state.spares_more = more


def look(draft: Draft) -> None:
    """Give up one spare if fewer are enough; one at a time, so that a pause does not cost the next burst."""
    state = draft.state
    if _more_needed(state, draft.now) < state.spares_more:
        state.spares_more -= 1
    if state.spares_more:
        draft.remind(draft.now + _WINDOW_SECONDS, SparesDue())


def bound(state: State) -> None:
    """Give up at once what a smaller pool cannot need: no more workers are away than may be busy."""
    state.spares_more = min(state.spares_more, max(0, state.policy.busy_seats - state.policy.spares))


def _more_needed(state: State, now: float) -> int:
    """Return the spares beyond the policy's; at most the number of busy seats, since no more can be away."""
    mean = _faded(state, now) / _WINDOW_SECONDS
    needed = int(mean + _SPREADS * sqrt(mean) + 0.5)
    return max(0, min(needed, state.policy.busy_seats) - state.policy.spares)


def _faded(state: State, now: float) -> float:
    return state.demand.away_seconds * exp((state.demand.at - now) / _WINDOW_SECONDS)
