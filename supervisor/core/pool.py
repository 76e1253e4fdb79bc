"""Seats and the processes in them: start, ready, signs of life, kill, rest; knows nothing of turns."""

from supervisor.core.effects import KillWorker, StartWorker
from supervisor.core.events import WorkerAlive, WorkerDied, WorkerReady, WorkerStarted
from supervisor.core.ledger import Ledger
from supervisor.core.model import LifeDue, ReadyDue, RestDue, State, Who, Worker, WorkerState

# First rest of a seat whose worker did not start; each failure doubles it up to the policy's maximum.
_REST_SECONDS_FIRST = 0.25
# Nothing can keep an idle worker's loop from turning: silent for this many pulses, it is stuck.
_IDLE_LOOP_PULSES = 4

NEVER_READY = "it was not ready in time"
RENEWED = "renewed"

# What a dying process still says counts no more, and an empty seat says nothing.
_LIVING = (WorkerState.STARTING, WorkerState.IDLE, WorkerState.BUSY)


def current(state: State, who: Who) -> Worker | None:
    """The worker a frame speaks for, or None when the frame is an echo of another process or another life."""
    worker = state.workers.get(who.seat)
    if worker is None or who.epoch != state.epoch or worker.incarnation != who.incarnation:
        return None
    return worker if worker.state in _LIVING else None


def fence(state: State, worker: Worker) -> Who:
    return Who(state.epoch, worker.seat, worker.incarnation)


def fill(ledger: Ledger) -> None:
    """Make every seat the policy wants; new seats start a worker at once."""
    policy = ledger.state.policy
    for seat in range(policy.busy_seats + policy.spares):
        if seat not in ledger.state.workers:
            start(ledger, ledger.state.workers.setdefault(seat, Worker(seat)))


def start(ledger: Ledger, worker: Worker) -> None:
    """Put a new process in the seat, under a number that was never used."""
    ledger.state.incarnations += 1
    ledger.state.outdated.pop(worker.seat, None)
    worker.incarnation = ledger.state.incarnations
    worker.state, worker.since = WorkerState.STARTING, ledger.now
    worker.turns, worker.pid, worker.session, worker.why = 0, 0, None, ""
    ledger.perform(StartWorker(worker.seat, worker.incarnation))
    expect_ready(ledger, worker)


def expect_ready(ledger: Ledger, worker: Worker) -> None:
    due = ReadyDue(worker.seat, worker.incarnation, worker.turns)
    ledger.remind(ledger.now + ledger.state.policy.start_seconds, due)


def started(ledger: Ledger, event: WorkerStarted) -> None:
    worker = ledger.state.workers.get(event.seat)
    if worker is not None and worker.incarnation == event.incarnation and not worker.is_empty:
        worker.pid = event.pid


def ready(ledger: Ledger, event: WorkerReady) -> None:
    """A worker takes work: its first time, or again after a turn."""
    worker = current(ledger.state, event.who)
    if worker is None or worker.session is not None:
        return
    if worker.state is WorkerState.STARTING:
        worker.words = ""
        worker.pulse_at = worker.loop_at = ledger.now
        ledger.remind(
            ledger.now + ledger.state.policy.pulse_seconds, LifeDue(worker.seat, worker.incarnation)
        )
    if worker.turns >= ledger.state.policy.turns_per_worker_max:
        kill(ledger, worker, "recycled")
        return
    if worker.turns and worker.seat in ledger.state.outdated:
        kill(ledger, worker, RENEWED)
        return
    worker.state = WorkerState.IDLE
    ledger.state.idle[worker.seat] = None


def alive(ledger: Ledger, event: WorkerAlive) -> None:
    worker = current(ledger.state, event.who)
    if worker is None:
        return
    if event.kind == "pulse":
        worker.pulse_at = ledger.now
    else:
        worker.loop_at = ledger.now


def kill(ledger: Ledger, worker: Worker, why: str) -> None:
    """End the process in the seat and all it started. A second call changes nothing."""
    if worker.state not in _LIVING:
        return
    ledger.state.idle.pop(worker.seat, None)
    ledger.state.busy.pop(worker.seat, None)
    worker.state, worker.why = WorkerState.DYING, why
    ledger.perform(KillWorker(worker.seat, worker.incarnation, why))


def emptied(ledger: Ledger, worker: Worker, event: WorkerDied) -> None:
    """The seat's process is gone: start the next one, after a rest if this one was never of use."""
    state = ledger.state
    state.idle.pop(worker.seat, None)
    state.busy.pop(worker.seat, None)
    useless = worker.state in (WorkerState.STARTING, WorkerState.IDLE) and worker.turns == 0
    failed_to_start = useless or worker.why == NEVER_READY
    worker.words, worker.session, worker.pid = event.words, None, 0
    if not failed_to_start:
        start(ledger, worker)
        return
    worker.starts_failed += 1
    hopeless = worker.starts_failed >= state.policy.starts_failed_max
    worker.state, worker.since = (WorkerState.FAILED if hopeless else WorkerState.RESTING), ledger.now
    doubled = _REST_SECONDS_FIRST * 2 ** min(worker.starts_failed - 1, 16)
    rest_seconds = state.policy.rest_seconds_max if hopeless else min(doubled, state.policy.rest_seconds_max)
    ledger.remind(ledger.now + rest_seconds, RestDue(worker.seat, worker.incarnation))


def not_ready(ledger: Ledger, due: ReadyDue) -> None:
    worker = ledger.state.workers.get(due.seat)
    if worker is None or worker.incarnation != due.incarnation or worker.turns != due.turns:
        return
    settling = worker.state is WorkerState.BUSY and worker.session is None
    if worker.state is WorkerState.STARTING or settling:
        kill(ledger, worker, NEVER_READY)


def look_for_life(ledger: Ledger, due: LifeDue) -> None:
    """The process must answer its pulse; an idle one must turn its loop. A busy one is judged by progress."""
    worker = ledger.state.workers.get(due.seat)
    if worker is None or worker.incarnation != due.incarnation or worker.state not in _LIVING:
        return
    limit = ledger.state.policy.pulse_seconds
    if ledger.now >= worker.pulse_at + limit:
        kill(ledger, worker, f"its process gave no sign of life for {limit:.0f} s")
    elif worker.state is WorkerState.IDLE and ledger.now >= worker.loop_at + limit * _IDLE_LOOP_PULSES:
        kill(ledger, worker, f"its loop stood still for {limit * _IDLE_LOOP_PULSES:.0f} s")
    else:
        worker.starts_failed = 0  # It has lived for a while: whatever kept others from starting is over.
        ledger.remind(worker.pulse_at + limit, due)


def rested(ledger: Ledger, due: RestDue) -> None:
    worker = ledger.state.workers.get(due.seat)
    if worker is not None and worker.incarnation == due.incarnation:
        start(ledger, worker)
