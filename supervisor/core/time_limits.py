"""Time limits: a turn that takes too long fails; an attempt without progress is lost with its worker.

`watch` starts their clocks. That of the whole turn is suspended while it waits for a person
or for an unavailable model; that of silence begins again with every frame.
"""

from supervisor.core import pool, turns
from supervisor.core.decision import Draft
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import NOTHING_TO_KILL, Session, Turn, TurnState, Verdict
from supervisor.core.timers import SilenceDue, TurnDue


def watch(draft: Draft, session: Session, turn: Turn) -> None:
    """Start the clocks: that of the turn with its first attempt in this epoch, that of silence now."""
    assert turn.attempt is not None
    turn.attempt.progress_at = draft.now
    if turn.started_at is None and not turn.is_held:
        run_clock(draft, session, turn)
    silence = SilenceDue(session.name, turn.id, turn.attempts)
    draft.remind(draft.now + draft.state.policy.silence_seconds, silence)


def run_clock(draft: Draft, session: Session, turn: Turn) -> None:
    """Start the clock of the turn, or resume it."""
    turn.started_at = draft.now
    due = TurnDue(session.name, turn.id, turn.pauses)
    draft.remind(draft.now + draft.state.policy.deadline_seconds - turn.ran_seconds, due)


def pause(draft: Draft, turn: Turn) -> None:
    """Suspend the clock of the turn until its next attempt, or until an answer that its attempt holds for."""
    if turn.started_at is not None:
        turn.ran_seconds += draft.now - turn.started_at
    turn.started_at, turn.pauses = None, turn.pauses + 1


def overdue(draft: Draft, due: TurnDue) -> None:
    """The turn took too long: it fails, and its worker is killed. Waiting for a person does not count."""
    session = draft.state.sessions.get(due.session)
    turn = session.turn if session else None
    if session is None or turn is None or turn.id != due.turn or turn.pauses != due.pauses:
        return
    error = f"it took longer than {draft.state.policy.deadline_seconds:.0f} s"
    verdict = Verdict(
        TurnState.FAILED, error=error, hint="raise [turns] deadline in hermes.toml, or ask for less"
    )
    if turn.attempt is None:
        turns.close(draft, session, turn, verdict, NOTHING_TO_KILL)
    elif turn.attempt.verdict is None:
        turns.stop(draft, session, turn, verdict, Reason(EndReason.DEADLINE))


def silent(draft: Draft, due: SilenceDue) -> None:
    """Check the attempt for progress; without any, its worker is killed and the attempt is lost."""
    session = draft.state.sessions.get(due.session)
    turn = session.turn if session else None
    attempt = turn.attempt if turn else None
    if turn is None or attempt is None or turn.id != due.turn or attempt.number != due.attempt:
        return
    limit = draft.state.policy.silence_seconds
    if turn.is_held:  # The answer is progress: until then this clock stands.
        attempt.progress_at = draft.now
    due_at = attempt.progress_at + limit
    if draft.now < due_at:  # The same sum as for the timer: a rounded difference could repeat for ever.
        draft.remind(due_at, due)
    elif attempt.verdict is None:
        reason = Reason(EndReason.SILENT, f"{limit:.0f} s")
        pool.kill(draft, draft.state.workers[attempt.who.seat], reason)
