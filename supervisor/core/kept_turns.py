"""Turns that survive a handoff: workers continue, and the supervisor's next image takes them back.

The epoch stays, because it is the same run of the same process: so every fence of a kept worker is valid.
"""

from supervisor.core import admission, pool, questions, time_limits, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import Done, KillWorker
from supervisor.core.events import Recovered, WorkerKept
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import (
    Attempt,
    BusyMode,
    Intake,
    Kept,
    Session,
    State,
    Turn,
    Who,
    Worker,
    WorkerState,
)
from supervisor.core.timers import LifeDue


def hand_over_asked(draft: Draft) -> None:
    """Begin nothing new, so that the kept work does not change."""
    admission.change(draft, Intake.STOPPING)
    draft.answer = Done(turns=tuple(kept.turn for kept in keepable(draft.state)))


def keepable(state: State) -> tuple[Kept, ...]:
    """Return the workers whose turn runs. One that is being stopped is no longer busy."""
    found = []
    for seat in state.busy:
        worker = state.workers[seat]
        session = state.sessions.get(worker.session) if worker.session is not None else None
        turn = session.turn if session else None
        if turn and turn.attempt and worker.pid:
            offered = tuple(sorted(turn.attempt.offered))
            found.append(Kept(seat, worker.incarnation, worker.pid, turn.id, offered))
    return tuple(found)


def take_back(draft: Draft, event: Recovered) -> set[str]:
    """Put kept workers into their seats; return the sessions whose turns continue."""
    state = draft.state
    state.incarnations = max(state.incarnations, event.incarnations)
    kept = {Who(state.epoch, one.seat, one.incarnation): one for one in event.kept}
    going_on: set[str] = set()
    for session in state.sessions.values():
        attempt = session.turn.attempt if session.turn else None
        found = kept.pop(attempt.who, None) if attempt else None
        if session.turn is not None and found is not None:
            _go_on(draft, session, session.turn, found)
            going_on.add(session.name)
    for one in kept.values():
        draft.perform(KillWorker(one.seat, one.incarnation, Reason(EndReason.TURN_OVER)))
    return going_on


def confirmed(draft: Draft, event: WorkerKept) -> None:
    """Compare the turn that a kept worker reports with the one it was assigned."""
    worker = pool.current(draft.state, event.who)
    if worker is None:
        return
    worker.loop_at = draft.now
    if worker.turn is not None and turns.running(draft.state, event.who, event.turn, event.attempt) is None:
        pool.kill(draft, worker, Reason(EndReason.TURN_UNKNOWN))


def _go_on(draft: Draft, session: Session, turn: Turn, kept: Kept) -> None:
    assert turn.attempt is not None
    policy = draft.state.policy
    _offer_again(session, turn.attempt, kept)
    # It was started by the previous image: it is recycled after this turn.
    turns_had = policy.turns_per_worker_max
    worker = Worker(kept.seat, kept.incarnation, WorkerState.BUSY, kept.pid, session.name, turn.id, turns_had)
    worker.agent, worker.level = turn.agent, turn.attempt.level
    worker.since = worker.pulse_at = worker.loop_at = draft.now
    draft.state.workers[kept.seat] = worker
    draft.state.seat_of[session.name] = kept.seat
    pool.index(draft.state, worker)
    draft.remind(draft.now + policy.pulse_seconds, LifeDue(kept.seat, kept.incarnation))
    time_limits.watch(draft, session, turn)
    if turn.is_held:
        questions.hold(draft, session, turn)


def _offer_again(session: Session, attempt: Attempt, kept: Kept) -> None:
    """Messages that the worker was sent before, and whether others wait behind them."""
    steering = [each for each in turns.with_words(session.waiting) if each.busy is BusyMode.STEER]
    attempt.offered = {each.id: len(each.text) for each in steering if each.id in kept.offered}
    attempt.is_offer_full = len(attempt.offered) < len(steering)
