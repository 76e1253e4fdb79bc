"""The one function that knows every rule: it takes an event and returns records, effects and an answer.

The order is always: handle the event, expire what is overdue, open turns, fill seats and recycle workers,
place turns, renew a worker; then timers whose subject has ended are removed. Handlers never open, start or
place, so none can forget to.
"""

import heapq
from typing import assert_never

from supervisor.core import (
    admission,
    agent_runtimes,
    backoff,
    beginning,
    cursors,
    giving,
    inbox,
    kept_turns,
    obsolete_timers,
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
from supervisor.core.decision import Draft
from supervisor.core.effects import Decision
from supervisor.core.events import (
    AnswerArrived,
    Asked,
    BeginAsked,
    DrainAsked,
    DropAsked,
    Event,
    EventsSeen,
    Failed,
    Finished,
    HandOverAsked,
    HostRead,
    InterruptAsked,
    ModelAway,
    ModelChanged,
    Noted,
    NotTranscribed,
    PolicyChanged,
    Recovered,
    RenewalAsked,
    ResumeAsked,
    ScaleAsked,
    SessionsTaken,
    SessionsToGive,
    Steered,
    StoodStill,
    StopAsked,
    TextArrived,
    TextStreamed,
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
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.core.state import Model, State
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

# Text and tool calls of an attempt change neither the queue nor a worker: no later step is needed.
_MOVES_NO_SEAT = (TextStreamed, ToolStarted, ToolFinished, Noted)
# Requests and readings that concern the service, not one session or worker; and the passing of time.
_Administration = (
    DrainAsked | UndrainAsked | ScaleAsked | HostRead | PolicyChanged | RenewalAsked | StoodStill | Ticked
)


def decide(state: State, event: Event, now: float) -> Decision:
    draft = Draft(state, now)
    _handle(draft, event)
    if _expire(draft) or not isinstance(event, _MOVES_NO_SEAT):
        placing.open_turns(draft)
        supply.provide(draft)
        placing.place(draft)
        renewal.renew(draft)
    obsolete_timers.remove(state)
    return draft.decision()


def next_deadline(state: State) -> float | None:
    """Return when `decide` wants to be called next even if nothing happens."""
    return state.deadlines[0][0] if state.deadlines else None


def _handle(draft: Draft, event: Event) -> None:
    match event:
        case Failed() if event.outage:
            outages.refused(draft, event)
        case ModelAway():
            outages.passed_over(draft, event)
        case TextStreamed() | ToolStarted() | ToolFinished() | Noted() | Steered() | Finished() | Failed():
            outages.received(draft, event)
            turns.frame(draft, event)
        case TextArrived() | VoiceArrived():
            inbox.arrived(draft, event)
        case BeginAsked():
            beginning.begin_asked(draft, event)
        case Transcribed():
            transcripts.transcribed(draft, event)
        case NotTranscribed():
            transcripts.not_transcribed(draft, event)
        case InterruptAsked():
            inbox.interrupt_asked(draft, event)
        case DropAsked():
            inbox.drop_asked(draft, event)
        case ResumeAsked():
            inbox.resume_asked(draft, event)
        case EventsSeen():
            cursors.seen(draft, event)
        case Asked():
            questions.asked(draft, event)
        case AnswerArrived():
            questions.answer_arrived(draft, event)
        case WorkerAlive():
            pool.alive(draft, event)
        case WorkerReady():
            pool.ready(draft, event)
        case WorkerStarted():
            pool.started(draft, event)
        case WorkerDied() | WorkerStuck():
            turns.worker_ended(draft, event)
        case WorkerUnreachable():
            _worker_unreachable(draft, event)
        case ModelChanged():
            _model_changed(draft, event)
        case RuntimeChanged():
            agent_runtimes.changed(draft, event)
        case Recovered():
            recovery.recovered(draft, event)
        case SessionsTaken():
            recovery.sessions_taken(draft, event)
        case SessionsToGive():
            giving.to_give(draft, event)
        case WorkerKept():
            kept_turns.confirmed(draft, event)
        case HandOverAsked():
            kept_turns.hand_over_asked(draft)
        case StopAsked():
            recovery.stop_asked(draft)
        case _:
            _administer(draft, event)


def _administer(draft: Draft, event: _Administration) -> None:
    match event:
        case DrainAsked():
            admission.drain_asked(draft)
        case UndrainAsked():
            admission.undrain_asked(draft)
        case ScaleAsked():
            pool.scale_asked(draft, event)
        case HostRead():
            admission.host_read(draft, event)
        case PolicyChanged():
            renewal.policy_changed(draft, event)
        case RenewalAsked():
            renewal.renewal_asked(draft, event)
        case StoodStill():
            stalls.stood_still(draft, event)
        case Ticked():
            pass
        case _:
            assert_never(event)


def _model_changed(draft: Draft, event: ModelChanged) -> None:
    before = draft.state.model
    since = before.since if before.state is event.state and before.since else draft.now
    draft.state.model = Model(event.state, event.error, event.hint, since)
    outages.forget(draft)


def _worker_unreachable(draft: Draft, event: WorkerUnreachable) -> None:
    """A worker that cannot be reached may still be busy: it is killed, and its turn is retried elsewhere."""
    worker = pool.current(draft.state, event.who)
    if worker is not None:
        pool.kill(draft, worker, event.reason)


def _expire(draft: Draft) -> bool:
    """Return whether anything was due."""
    deadlines, expired = draft.state.deadlines, False
    while deadlines and deadlines[0][0] <= draft.now:
        _due(draft, heapq.heappop(deadlines)[2])
        expired = True
    return expired


def _due(draft: Draft, due: Due) -> None:
    match due:
        case TurnDue():
            time_limits.overdue(draft, due)
        case SilenceDue():
            time_limits.silent(draft, due)
        case HoldDue():
            questions.held_too_long(draft, due)
        case ReadyDue():
            pool.not_ready(draft, due)
        case LifeDue():
            pool.look_for_life(draft, due)
        case RestDue():
            pool.rested(draft, due)
        case RetryDue():
            backoff.rested(draft, due)
        case OutageDue():
            outages.look(draft, due)
        case SparesDue():
            pool.spares_due(draft)
        case _:
            assert_never(due)
