"""Supply of workers: which agent a seat's next process is for, and which idle workers are recycled.

A process serves one session of one agent, so the pool can serve the queue only as far as it holds *fresh*
workers: idle without a session, or starting. Before turns are placed, every decision compares the two:

- Need: one fresh worker for each turn that could run now and whose session has no worker, of that turn's
  agent, and the spares. Spares are for the turns queued behind those, and otherwise for the agents that began
  sessions last. Turns that wait for a model come after all others, so that they hold up none. Turns that wait
  for their runtime (core/agent_runtimes.py) need no worker yet.
- Supply: fresh workers that are ready or starting, each of an agent; and seats that are vacant or dying,
  whose next process may be for any agent. Seats that rest after a failed start count as spares; once two of
  them rest for the same agent, they meet all its needs, so that settings with which its workers cannot start
  cost two seats and not all of them.

A vacant seat is filled for the first unmet need. If needs are left, idle workers are recycled: the one whose
session has been quiet longest; for a queued turn also a fresh one of another agent, the worker of a session
further back in the queue, or that of a session whose turn pauses between two attempts. That comes before
placing: otherwise a session that never pauses would keep its worker from those before it in the queue. A busy
worker is never recycled, so a turn waits for a seat as long as all of them are busy. Nothing is recycled
while no turn may begin.

Each need is examined once and either gets a seat or ends the loop, so the cost of a decision grows with the
spares and the free seats, not with the sessions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from supervisor.core import agent_runtimes, pool
from supervisor.core.decision import Draft
from supervisor.core.placing import free_seats, may_begin
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.state import State, Worker

# One seat may fail by chance. A second failure points to the agent.
_FAILING_MAX = 2

# Number of seats by agent.
_Seats = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Need:
    """A fresh worker of an agent, for the turn at this rank of the queue; a spare has no rank."""

    agent: str
    rank: int | None = None


_SPARE = _Need("")


def provide(draft: Draft) -> None:
    """Fill vacant seats, then recycle idle workers as far as queued turns, or the spares, need it."""
    state = draft.state
    if not state.draining:
        agent_runtimes.want_queued(draft)
    if not (state.vacant or state.idle):
        return
    fresh = _fresh(state)
    needs = list(_unmet(state, fresh, draft.now))
    for seat in list(state.vacant):
        _fill(draft, state.workers[seat], needs, fresh)
    if state.draining:
        return
    for worker in _of_another_agent(state):
        pool.recycle(draft, worker)
    for need in needs[len(state.dying) - len(state.stuck) :]:
        replaced = _replaceable(draft, need, fresh)
        if replaced is None:
            return
        pool.recycle(draft, replaced)


def _fresh(state: State) -> _Seats:
    """Return workers without a session, ready or starting."""
    found = {agent: len(seats) for agent, seats in state.unbound.items()}
    for seat in state.starting:
        agent = state.workers[seat].agent
        found[agent] = found.get(agent, 0) + 1
    return found


def _of_another_agent(state: State) -> list[Worker]:
    """Return idle workers of sessions whose next turn is for another agent, after a reload."""
    found = ((state.sessions[name].turn, state.workers[state.seat_of[name]]) for name in state.own)
    return [worker for turn, worker in found if turn is not None and turn.agent != worker.agent]


def _unmet(state: State, fresh: _Seats, at: float) -> Iterator[_Need]:
    """Yield the needs without a fresh worker. Those that are met are taken from `fresh`."""
    now, later = max(0, free_seats(state)), state.policy.spares + state.spares_more
    needed = 0
    for need in islice(_without_worker(state, at), now + later):
        needed += 1
        if fresh.get(need.agent, 0) > 0:
            fresh[need.agent] -= 1
        elif _failing(state, need.agent) < _FAILING_MAX:
            yield need
    # Every further fresh worker is a spare, for whichever agent.
    spares = later - max(0, needed - now)
    for _ in range(spares - sum(fresh.values()) - len(state.empty)):
        yield _SPARE


def _without_worker(state: State, now: float) -> Iterator[_Need]:
    """Yield needs in queue order: first of the turns that may begin, then of those that wait for a model."""
    warm = {agent for agent in state.lines if agent_runtimes.is_warm(state, agent)}
    able = {agent for agent in warm if may_begin(state, agent, now)}
    for agents in (able, warm - able):
        for name, place in state.queued.items() if agents else ():
            turn = state.sessions[name].turn
            if name not in state.seat_of and turn is not None and turn.agent in agents:
                yield _Need(turn.agent, place.rank)


def _failing(state: State, agent: str) -> int:
    return sum(state.workers[seat].agent == agent for seat in state.empty)


def _fill(draft: Draft, worker: Worker, needs: list[_Need], fresh: _Seats) -> None:
    """Start a process for the first need; after a failed start for another agent first, if one is needed."""
    state = draft.state
    need = needs[0] if needs else _SPARE
    if worker.starts_failed:
        need = next((each for each in needs if each.agent not in ("", worker.agent)), need)
    if need in needs:
        needs.remove(need)
    agent = need.agent or _spare_agent(state, fresh)
    if not agent_runtimes.is_warm(state, agent):
        agent_runtimes.want_spare(draft, agent)
        return  # the seat stays vacant
    del state.vacant[worker.seat]
    if need is _SPARE:
        fresh[agent] = fresh.get(agent, 0) + 1
    pool.start(draft, worker, agent)


def _spare_agent(state: State, fresh: _Seats) -> str:
    """Return the agent for the next spare: the latest to begin a session that has no spare yet."""
    used = [agent for agent in reversed(state.agents_used) if agent_runtimes.is_warm(state, agent)]
    used = used or [DEFAULT_AGENT]
    return next((agent for agent in used if fresh.get(agent, 0) <= 0), used[0])


def _replaceable(draft: Draft, need: _Need, fresh: _Seats) -> Worker | None:
    """Return the idle worker to recycle for this need."""
    state = draft.state
    for seat in state.idle:
        worker = state.workers[seat]
        if worker.session is not None and not _is_in_use(state, worker.session):
            return worker
    if need.rank is None:
        return None
    for agent, seats in state.unbound.items():
        if seats and fresh[agent] > 0:
            fresh[agent] -= 1
            return state.workers[next(iter(seats))]
    last = max(state.own, key=lambda name: state.queued[name].rank, default=None)
    if last is not None and state.queued[last].rank > need.rank:
        return state.workers[state.seat_of[last]]
    if may_begin(state, need.agent, draft.now):
        owners = (state.workers[state.seat_of[name]] for name in state.own)
        for worker in owners:
            if not may_begin(state, worker.agent, draft.now):
                return worker
    idle = (state.workers[seat] for seat in state.idle)
    return next((worker for worker in idle if worker.session in state.resting), None)


def _is_in_use(state: State, session: str) -> bool:
    """Return whether the session's turn waits, in the queue or for its next attempt."""
    return session in state.queued or session in state.resting
