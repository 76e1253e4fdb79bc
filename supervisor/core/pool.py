"""The pool: seats and the worker processes in them, with their signs of life; independent of turns.

States of a worker, by the function that assigns them; `-` is a seat that does not exist yet. A seat without a
process is `resting`, or `failed` after too many failed starts in a row; it is still retried.

| worker | function | next state | cause |
| --- | --- | --- | --- |
| - | pool.fit | resting | a seat is made |
| - | kept_turns._go_on | busy | a worker is kept across a handoff |
| - | recovery._hold | dying | an orphan of its session cannot be ended yet |
| resting, failed | pool.start | starting | the seat gets a process |
| starting | pool._take_in | idle | its start is reported, and it is ready |
| idle | placing.open_attempt | busy | it gets a turn |
| busy | pool._take_in | idle | it is ready again after its turn |
| starting, idle, busy | pool.kill | dying | the supervisor ends it |
| starting, idle, busy | pool.stuck | dying | it ended by itself, and the end of its cell is not proved |
| starting, idle, busy, dying | pool._unbind | resting | it is reported dead, with the proof |
| resting | pool.emptied | failed | too many starts have failed |

Invariants: an incarnation is used once, so a frame with an older one is stale. A process serves one session,
from its first turn until it ends, and a session has at most one process (`seat_of`). Frames count only in the
states starting, idle and busy. A dying worker keeps its session until its death is proved: the session's next
turn cannot overlap with processes of the last one. `index` keeps the sets of seats in State; it must follow
every change of state, session, turn or agent.

`tests/core/test_transition_tables.py` compares the table with the stories.
"""

from dataclasses import replace
from itertools import count, islice

from supervisor.core import line, spares
from supervisor.core.decision import Draft
from supervisor.core.effects import Done, KillWorker, StartWorker
from supervisor.core.events import (
    ScaleAsked,
    WorkerAlive,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
    WorkerStuck,
)
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import State, Who, Worker, WorkerState
from supervisor.core.timers import LifeDue, ReadyDue, RestDue

# First pause of a seat whose worker did not start; each failure doubles it up to the policy's maximum.
_REST_SECONDS_FIRST = 0.25
# An idle worker's loop has nothing to wait for: without a beat for this many pulses it is stuck.
_IDLE_LOOP_PULSES = 4

NEVER_READY = Reason(EndReason.NEVER_READY)
MADE_ROOM = Reason(EndReason.MADE_ROOM)
RECYCLED = Reason(EndReason.RECYCLED)
RENEWED = Reason(EndReason.RENEWED)
RETIRED = Reason(EndReason.RETIRED)

# Frames of a dying process do not count, and an empty seat sends none.
_LIVING = (WorkerState.STARTING, WorkerState.IDLE, WorkerState.BUSY)
# States in which a worker can be removed without affecting a turn, the least useful first.
_AT_LEISURE = (WorkerState.FAILED, WorkerState.RESTING, WorkerState.STARTING, WorkerState.IDLE)


def current(state: State, who: Who) -> Worker | None:
    """Return the worker that sent a frame, or None when the frame is stale."""
    worker = state.workers.get(who.seat)
    if worker is None or who.epoch != state.epoch or worker.incarnation != who.incarnation:
        return None
    return worker if worker.state in _LIVING else None


def fence(state: State, worker: Worker) -> Who:
    return Who(state.epoch, worker.seat, worker.incarnation)


def wanted(state: State) -> int:
    """Return how many workers there should be."""
    return state.policy.busy_seats + state.policy.spares + state.spares_more


def scale_asked(draft: Draft, event: ScaleAsked) -> None:
    """Fill additional seats at once. Of too many, idle workers end at once, busy ones after a turn."""
    state = draft.state
    before = state.policy.busy_seats
    state.policy = replace(state.policy, busy_seats=event.seats)
    spares.bound(state)
    fit(draft)
    draft.answer = Done(note=f"seats: {event.seats}, before: {before}")


def fit(draft: Draft) -> None:
    """Make every wanted seat, at the lowest free numbers, and remove superfluous ones."""
    state, workers = draft.state, draft.state.workers
    missing = wanted(state) - len(workers) + len(state.stuck)
    free = (seat for seat in count() if seat not in workers)
    for seat in list(islice(free, max(0, missing))):
        workers[seat] = Worker(seat)
        vacate(state, workers[seat])
    for worker in _superfluous(state):
        if worker.is_empty:
            _remove(state, worker)
        else:
            kill(draft, worker, RETIRED)


def vacate(state: State, worker: Worker) -> None:
    """The seat gets its next process before the decision ends."""
    state.empty.pop(worker.seat, None)
    state.vacant[worker.seat] = None


def _remove(state: State, worker: Worker) -> None:
    del state.workers[worker.seat]
    state.stuck.pop(worker.seat, None)
    state.vacant.pop(worker.seat, None)
    state.empty.pop(worker.seat, None)


def _superfluous(state: State) -> list[Worker]:
    """Removal order when the pool shrinks: empty seats, then starting ones, then idle ones."""
    if _surplus(state) <= 0:
        return []
    at_leisure = sorted(
        (each for each in state.workers.values() if each.state in _AT_LEISURE),
        key=lambda worker: (_AT_LEISURE.index(worker.state), -worker.seat),
    )
    return at_leisure[: _surplus(state)]


def _surplus(state: State) -> int:
    """Return the workers beyond the wanted ones, without dying ones: their seats are not filled again."""
    return len(state.workers) - len(state.dying) - wanted(state)


def index(state: State, worker: Worker) -> None:
    """Update the sets of seats; call it after every change of a worker's state, session, turn or agent."""
    seat = worker.seat
    for seats in (
        state.starting, state.idle, state.busy, state.dying, state.stuck, state.empty, state.bound,
    ):  # fmt: skip
        seats.pop(seat, None)
    for seats in state.unbound.values():
        seats.pop(seat, None)
    match worker.state:
        case WorkerState.STARTING:
            state.starting[seat] = None
        case WorkerState.IDLE:
            state.idle[seat] = None
            if worker.session is None:
                state.unbound.setdefault(worker.agent, {})[seat] = None
        case WorkerState.BUSY if worker.turn is not None:
            state.busy[seat] = None
        case WorkerState.DYING:
            state.dying[seat] = None
            if worker.stuck_since is not None:
                state.stuck[seat] = None
        case WorkerState.RESTING | WorkerState.FAILED:
            state.empty[seat] = None
    if worker.session is not None and worker.state in _LIVING:
        state.bound[seat] = None


def start(draft: Draft, worker: Worker, agent: str) -> None:
    """Start a new process in the seat, with an unused incarnation, in a cell for this agent."""
    draft.state.incarnations += 1
    draft.state.outdated.pop(worker.seat, None)
    worker.incarnation, worker.agent, worker.level = draft.state.incarnations, agent, ""
    worker.state, worker.since = WorkerState.STARTING, draft.now
    worker.turns, worker.pid, worker.why, worker.is_ready_early = 0, 0, None, False
    worker.stuck_since = None
    index(draft.state, worker)
    draft.perform(StartWorker(worker.seat, worker.incarnation, agent))
    expect_ready(draft, worker)


def expect_ready(draft: Draft, worker: Worker) -> None:
    due = ReadyDue(worker.seat, worker.incarnation, worker.turns)
    draft.remind(draft.now + draft.state.policy.start_seconds, due)


def started(draft: Draft, event: WorkerStarted) -> None:
    worker = draft.state.workers.get(event.seat)
    if worker is not None and worker.incarnation == event.incarnation and not worker.is_empty:
        worker.pid, worker.level = event.pid, event.level
        if worker.is_ready_early and worker.state is WorkerState.STARTING:
            _take_in(draft, worker)


def ready(draft: Draft, event: WorkerReady) -> None:
    """A worker is ready: the first time, or again after a turn."""
    worker = current(draft.state, event.who)
    if worker is None or worker.turn is not None:
        return
    if worker.pid:
        _take_in(draft, worker)
    else:
        worker.is_ready_early = True  # the report of its start comes by another channel, and later


def _take_in(draft: Draft, worker: Worker) -> None:
    if worker.state is WorkerState.STARTING:
        worker.words = ""
        worker.pulse_at = worker.loop_at = draft.now
        draft.remind(draft.now + draft.state.policy.pulse_seconds, LifeDue(worker.seat, worker.incarnation))
    if worker.turns >= draft.state.policy.turns_per_worker_max:
        kill(draft, worker, RECYCLED)
        return
    if worker.turns and worker.seat in draft.state.outdated:
        kill(draft, worker, RENEWED)
        return
    worker.state = WorkerState.IDLE
    index(draft.state, worker)
    line.enlist(draft.state, worker.session)
    spares.came_back(draft, worker)
    fit(draft)


def alive(draft: Draft, event: WorkerAlive) -> None:
    worker = current(draft.state, event.who)
    if worker is None:
        return
    if event.kind == "pulse":
        worker.pulse_at = draft.now
    else:
        worker.loop_at = draft.now


def kill(draft: Draft, worker: Worker, why: Reason) -> None:
    """End the process in the seat and all it started. A second call changes nothing."""
    if worker.state not in _LIVING:
        return
    if worker.turn is not None:
        worker.away_since = draft.now
    worker.state, worker.why = WorkerState.DYING, why
    index(draft.state, worker)
    if worker.session is not None:
        draft.state.own.pop(worker.session, None)
    draft.perform(KillWorker(worker.seat, worker.incarnation, why, worker.turn or ""))


def stuck(draft: Draft, worker: Worker, event: WorkerStuck) -> None:
    """Add a seat until the process is gone, so that no turn waits for this one."""
    if worker.stuck_since is None:
        worker.stuck_since = draft.now
    worker.state, worker.words = WorkerState.DYING, event.words
    worker.away_since = None  # another seat replaces it, not a spare
    index(draft.state, worker)
    if worker.session is not None:
        draft.state.own.pop(worker.session, None)
    fit(draft)


def recycle(draft: Draft, worker: Worker) -> None:
    """End an idle worker, so that a fresh one takes its seat."""
    worker.away_since = draft.now
    kill(draft, worker, MADE_ROOM)


def emptied(draft: Draft, worker: Worker, event: WorkerDied) -> None:
    """The seat's process is gone: start the next one, after a pause if this one was never ready.

    A seat that is no longer wanted is removed.
    """
    state = draft.state
    useless = worker.state in (WorkerState.STARTING, WorkerState.IDLE) and worker.turns == 0
    failed_to_start = useless or worker.why == NEVER_READY
    if worker.turn is not None and worker.away_since is None:
        worker.away_since = draft.now
    _unbind(state, worker)
    if len(state.workers) - len(state.stuck) > wanted(state):
        _remove(state, worker)
        return
    worker.words = str(event.reason)
    if not failed_to_start:
        vacate(state, worker)
        return
    worker.starts_failed += 1
    worker.away_since = None  # what cannot start is not replaced by a spare that cannot start either
    hopeless = worker.starts_failed >= state.policy.starts_failed_max
    worker.state, worker.since = (WorkerState.FAILED if hopeless else WorkerState.RESTING), draft.now
    index(state, worker)
    doubled = _REST_SECONDS_FIRST * 2 ** min(worker.starts_failed - 1, 16)
    rest_seconds = state.policy.rest_seconds_max if hopeless else min(doubled, state.policy.rest_seconds_max)
    draft.remind(draft.now + rest_seconds, RestDue(worker.seat, worker.incarnation))


def _unbind(state: State, worker: Worker) -> None:
    """No process is left; its session, if it is queued, needs another worker."""
    session, worker.session, worker.turn, worker.pid = worker.session, None, None, 0
    worker.state = WorkerState.RESTING
    index(state, worker)
    if session is not None:
        del state.seat_of[session]
        state.own.pop(session, None)
        line.enlist(state, session)


def not_ready(draft: Draft, due: ReadyDue) -> None:
    worker = draft.state.workers.get(due.seat)
    if worker is None or worker.incarnation != due.incarnation or worker.turns != due.turns:
        return
    settling = worker.state is WorkerState.BUSY and worker.turn is None
    if worker.state is WorkerState.STARTING or settling:
        kill(draft, worker, NEVER_READY)


def look_for_life(draft: Draft, due: LifeDue) -> None:
    """The process must answer its pulse; an idle one must send beats. A busy one is judged by progress."""
    worker = draft.state.workers.get(due.seat)
    if worker is None or worker.incarnation != due.incarnation or worker.state not in _LIVING:
        return
    limit = draft.state.policy.pulse_seconds
    if draft.now >= worker.pulse_at + limit:
        kill(draft, worker, Reason(EndReason.NO_PULSE, f"{limit:.0f} s"))
    elif worker.state is WorkerState.IDLE and draft.now >= worker.loop_at + limit * _IDLE_LOOP_PULSES:
        kill(draft, worker, Reason(EndReason.LOOP_STILL, f"{limit * _IDLE_LOOP_PULSES:.0f} s"))
    else:
        worker.starts_failed = 0  # It has run for a while: starts work again.
        draft.remind(worker.pulse_at + limit, due)


def spares_due(draft: Draft) -> None:
    spares.look(draft)
    fit(draft)


def rested(draft: Draft, due: RestDue) -> None:
    worker = draft.state.workers.get(due.seat)
    if worker is not None and worker.incarnation == due.incarnation:
        vacate(draft.state, worker)
