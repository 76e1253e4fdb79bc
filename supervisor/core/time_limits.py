"""Time limits: a turn that takes too long fails; an attempt without progress is lost with its worker.

Their clocks are started by `turns.watch`. That of the whole turn is suspended while it waits for a person
or for an unavailable model; that of silence begins again with every frame.
"""

from supervisor.core import pool, turns
from supervisor.core.decision import Draft
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import NOTHING_TO_KILL, TurnState, Verdict
from supervisor.core.timers import SilenceDue, TurnDue


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
    due_at = attempt.progress_at + limit
    if draft.now < due_at:  # The same sum as for the timer: a rounded difference could repeat for ever.
        draft.remind(due_at, due)
    elif attempt.verdict is None:
        reason = Reason(EndReason.SILENT, f"{limit:.0f} s")
        pool.kill(draft, draft.state.workers[attempt.who.seat], reason)
