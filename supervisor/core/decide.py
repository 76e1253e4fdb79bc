"""The one function that knows every rule: it takes an event and returns records, effects and an answer.

The order is always: handle the event, expire what is overdue, open turns, fill seats and recycle workers,
place turns, renew a worker. Handlers never open, start or place, so none can forget to.
"""

import heapq
from typing import assert_never

from supervisor.core import (
    admission,
    backoff,
    cursors,
    inbox,
    kept_turns,
    outages,
    placing,
    pool,
    questions,
    recovery,
    renewal,
    stalls,
    supply,
    time_limits,
    transcripts,
    turns,
)
from supervisor.core.decision import Ledger
from supervisor.core.effects import Decision
from supervisor.core.events import (
    AnswerArrived,
    Asked,
    DrainAsked,
    DropAsked,
    Event,
    EventsSeen,
    Failed,
    Finished,
    Frame,
    HandOverAsked,
    HostRead,
    InterruptAsked,
    ModelChanged,
    Noted,
    NotTranscribed,
    PolicyChanged,
    Recovered,
    RenewalAsked,
    ResumeAsked,
    ScaleAsked,
    Spoke,
    Steered,
    StoodStill,
    StopAsked,
    TextArrived,
    Ticked,
    ToolFinished,
    ToolStarted,
    Transcribed,
    UndrainAsked,
    VoiceArrived,
    WorkerAlive,
    WorkerDied,
    WorkerKept,
    WorkerReady,
    WorkerStarted,
    WorkerStuck,
    WorkerUnreachable,
)
from supervisor.core.state import Model, State
from supervisor.core.timers import (
    Due,
    LifeDue,
    OutageDue,
    ReadyDue,
    RestDue,
    RetryDue,
    SilenceDue,
    SparesDue,
    TurnDue,
)

# Text and tool calls of an attempt change neither the queue nor a worker: no later step is needed.
_MOVES_NO_SEAT = (Spoke, ToolStarted, ToolFinished, Noted)


def decide(state: State, event: Event, now: float) -> Decision:
    ledger = Ledger(state, now)
    _handle(ledger, event)
    if _expire(ledger) or not isinstance(event, _MOVES_NO_SEAT):
        _settle(ledger)
    return ledger.decision()


def _settle(ledger: Ledger) -> None:
    placing.open_turns(ledger)
    supply.provide(ledger)
    placing.place(ledger)
    renewal.renew(ledger)


def next_deadline(state: State) -> float | None:
    """Return when `decide` wants to be called next even if nothing happens."""
    return state.deadlines[0][0] if state.deadlines else None


def _handle(ledger: Ledger, event: Event) -> None:
    match event:
        case Spoke() | ToolStarted() | ToolFinished() | Noted() | Steered() | Finished() | Failed():
            _frame(ledger, event)
        case TextArrived() | VoiceArrived():
            inbox.arrived(ledger, event)
        case Transcribed():
            transcripts.transcribed(ledger, event)
        case NotTranscribed():
            transcripts.not_transcribed(ledger, event)
        case InterruptAsked():
            inbox.interrupt_asked(ledger, event)
        case DropAsked():
            inbox.drop_asked(ledger, event)
        case ResumeAsked():
            inbox.resume_asked(ledger, event)
        case EventsSeen():
            cursors.seen(ledger, event)
        case Asked():
            questions.asked(ledger, event)
        case AnswerArrived():
            questions.answer_arrived(ledger, event)
        case WorkerAlive():
            pool.alive(ledger, event)
        case WorkerReady():
            pool.ready(ledger, event)
        case WorkerStarted():
            pool.started(ledger, event)
        case WorkerDied() | WorkerStuck():
            _worker_ended(ledger, event)
        case WorkerUnreachable():
            _worker_unreachable(ledger, event)
        case ModelChanged():
            _model_changed(ledger, event)
        case Recovered():
            recovery.recovered(ledger, event)
        case WorkerKept():
            kept_turns.confirmed(ledger, event)
        case HandOverAsked():
            kept_turns.hand_over_asked(ledger)
        case StopAsked():
            recovery.stop_asked(ledger)
        case DrainAsked():
            admission.drain_asked(ledger)
        case UndrainAsked():
            admission.undrain_asked(ledger)
        case ScaleAsked():
            pool.scale_asked(ledger, event)
        case HostRead():
            admission.host_read(ledger, event)
        case PolicyChanged():
            renewal.policy_changed(ledger, event)
        case RenewalAsked():
            renewal.renewal_asked(ledger, event)
        case StoodStill():
            stalls.stood_still(ledger, event)
        case Ticked():
            pass
        case _:
            assert_never(event)


def _frame(ledger: Ledger, event: Frame) -> None:
    """Handle a frame: first its meaning for the endpoint, then for the turn."""
    if isinstance(event, Failed) and event.outage:
        outages.refused(ledger, event)
    else:
        outages.heard(ledger, event)
        turns.frame(ledger, event)


def _model_changed(ledger: Ledger, event: ModelChanged) -> None:
    before = ledger.state.model
    since = before.since if before.state is event.state and before.since else ledger.now
    ledger.state.model = Model(event.state, event.error, event.hint, since)
    outages.forget(ledger)


def _worker_ended(ledger: Ledger, event: WorkerDied | WorkerStuck) -> None:
    """Handle the end of a worker: first for the turn, then for the seat.

    With a stuck worker the turn stays open and the session gets no other worker; another seat is added.
    """
    worker = ledger.state.workers.get(event.seat)
    if worker is None or worker.incarnation != event.incarnation or worker.is_empty:
        return
    if isinstance(event, WorkerStuck):
        turns.worker_stuck(ledger, worker, event)
        pool.stuck(ledger, worker, event)
    else:
        turns.worker_gone(ledger, worker, event.proof, event.reason)
        pool.emptied(ledger, worker, event)


def _worker_unreachable(ledger: Ledger, event: WorkerUnreachable) -> None:
    """A worker that cannot be reached may still be busy: it is killed, and its turn is retried elsewhere."""
    worker = pool.current(ledger.state, event.who)
    if worker is not None:
        pool.kill(ledger, worker, event.reason)


def _expire(ledger: Ledger) -> bool:
    """Return whether anything was due."""
    deadlines, expired = ledger.state.deadlines, False
    while deadlines and deadlines[0][0] <= ledger.now:
        _due(ledger, heapq.heappop(deadlines)[2])
        expired = True
    return expired


def _due(ledger: Ledger, due: Due) -> None:
    match due:
        case TurnDue():
            time_limits.overdue(ledger, due)
        case SilenceDue():
            time_limits.silent(ledger, due)
        case ReadyDue():
            pool.not_ready(ledger, due)
        case LifeDue():
            pool.look_for_life(ledger, due)
        case RestDue():
            pool.rested(ledger, due)
        case RetryDue():
            backoff.rested(ledger, due)
        case OutageDue():
            outages.look(ledger, due)
        case SparesDue():
            pool.spares_due(ledger)
        case _:
            assert_never(due)
