"""Recovery: unfinished turns of an earlier epoch, or of another host, are queued again or ended.

A start recovers all sessions at once, before any request is answered. A host that shares its journal takes
sessions of another host over at any time, each by the same rules: their attempts are lost, because the
processes that ran them are gone. The other host's lease is over, or it gave the session away.
"""

from supervisor.core import admission, kept_turns, line, pool, questions, transcripts, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import Done
from supervisor.core.events import Recovered, SessionsTaken
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import AttemptStuck, MessageDropped
from supervisor.core.state import Intake, Orphan, Proof, Session, Turn, Worker, WorkerState

# The start has swept every process that the session had in the last epoch; they were not counted.
_SWEPT = Proof(processes=0, all_dead=True, ms=0.0, how="restart")
_ENDED = Reason(EndReason.SUPERVISOR_ENDED)
# The other host has ended them by its lease, or with its end; they were not counted.
_ENDED_ELSEWHERE = Proof(processes=0, all_dead=True, ms=0.0, how="takeover")
_HOST_LOST = Reason(EndReason.HOST_LOST)
_STOPPED = Reason(EndReason.SERVICE_STOPPED)
# `by` of a message that is dropped because it waited too long while the service was away.
TOO_OLD = "freshness"


def recovered(draft: Draft, event: Recovered) -> None:
    """The first event of an epoch, before the control socket is open."""
    draft.state.waiting = sum(len(session.waiting) for session in draft.state.sessions.values())
    going_on = kept_turns.take_back(draft, event)
    for orphan in event.left:
        _hold(draft, orphan)
    for session in list(draft.state.sessions.values()):
        if session.turn is not None and session.name not in going_on:
            _settle(draft, session, session.turn, _ENDED, _SWEPT)
        _take_up(draft, session)
    pool.fit(draft)
    draft.answer = Done(note="recovered")


def sessions_taken(draft: Draft, event: SessionsTaken) -> None:
    """Go on with sessions of another host, as the journal has them. The event names only those."""
    for name in event.sessions:
        session = draft.state.sessions.get(name)
        if session is None:
            continue  # it was claimed there, and nothing came of it
        draft.state.waiting += len(session.waiting)
        if session.turn is not None:
            _settle(draft, session, session.turn, _HOST_LOST, _ENDED_ELSEWHERE)
        _take_up(draft, session)
    draft.answer = Done(note="taken over")


def _take_up(draft: Draft, session: Session) -> None:
    """Go on with what waits in a session that was just loaded."""
    _let_go_of_the_old(draft, session)
    transcripts.take_up(draft, session)
    if session.turn is None and session.waiting:
        draft.state.openable[session.name] = None


def _hold(draft: Draft, orphan: Orphan) -> None:
    """A seat beyond the number stands for what is left: its session has no other worker until it is gone."""
    state, name = draft.state, orphan.session
    worker = Worker(orphan.seat, orphan.incarnation, WorkerState.DYING, session=name)
    worker.since = worker.stuck_since = draft.now
    worker.words = orphan.words
    state.workers[worker.seat] = worker
    state.incarnations = max(state.incarnations, worker.incarnation)
    pool.index(state, worker)
    if name is None:
        return
    state.seat_of[name] = worker.seat
    session = state.sessions.get(name)
    if session and session.turn and session.turn.attempt:
        told = {"processes": orphan.processes, "words": orphan.words}
        number = session.turn.attempt.number
        draft.tell(session, AttemptStuck, turn=session.turn.id, attempt=number, **told)


def _settle(draft: Draft, session: Session, turn: Turn, ended: Reason, proof: Proof) -> None:
    """Close the turn, let it wait, or queue it again. Its attempt, if it has one, ended by that reason."""
    if turn.attempt is not None and turn.attempt.verdict is not None:
        # What is left of the session holds it, and brings the proof when it is gone.
        if session.name not in draft.state.seat_of:
            turns.close(draft, session, turn, turn.attempt.verdict, proof)
        return
    if turn.question is not None:
        if turn.attempt is not None:
            turns.end_hold(draft, session, turn, str(ended))
        return  # it waits again, with the same question
    if turn.attempt is not None and not turns.count_loss(draft, session, turn, ended):
        return
    reason = _reason_to_end(draft.state.policy, turn, draft.now)
    if reason is not None:
        turns.fail(draft, session, turn, reason, f"take it up with `hermesctl retry {turn.id}`")
    elif draft.state.policy.resume == "ask" and turn.attempts > 0:
        questions.ask_to_go_on(draft, session, turn)
    else:
        line.join(draft.state, session.name, draft.now)


def _let_go_of_the_old(draft: Draft, session: Session) -> None:
    """Drop messages of a turn that has not begun, and that no one has added to, for too long.

    Held messages begin nothing by themselves; behind a turn that continues the session is in use.
    """
    if session.turn or session.held or not session.waiting:
        return
    if draft.now - max(message.at for message in session.waiting) > draft.state.policy.freshness_seconds:
        for message in session.waiting:
            draft.tell(session, MessageDropped, message=message.id, by=TOO_OLD)
        draft.state.waiting -= len(session.waiting)
        session.waiting.clear()


def _reason_to_end(policy: Policy, turn: Turn, now: float) -> str | None:
    """Return why the turn is not resumed; judged by the age of its latest content."""
    if now - turn.content_at > policy.freshness_seconds:
        return f"not resumed: older than {policy.freshness_seconds:.0f} s when the service came back"
    if policy.resume == "never" and turn.attempts > 0:
        return 'not resumed: the service ended while it ran and [turns] resume is "never"'
    return None


def stop_asked(draft: Draft) -> None:
    """Stop in order: running turns are left for the next epoch."""
    admission.change(draft, Intake.STOPPING)
    draft.answer = Done(note="stopping; what runs is taken up at the next start")
    for session in draft.state.sessions.values():
        turn = session.turn
        if turn and turn.is_held:
            turns.end_hold(draft, session, turn, str(_STOPPED))
        elif turn and turn.attempt and turn.attempt.verdict is None:
            turns.leave(draft, session, turn, _STOPPED)
