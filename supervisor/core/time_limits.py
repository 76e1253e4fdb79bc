"""Turns that take too long: the whole of it fails, an attempt without progress is lost with its worker.

Their clocks are started by `turns.watch`. That of the whole turn stands still while a human, or a model
server that is away, is waited for; that of silence begins again with every frame.
"""

from supervisor.core import pool, turns
from supervisor.core.decision import Ledger
from supervisor.core.state import NOTHING_TO_KILL, TurnState, Verdict
from supervisor.core.timers import SilenceDue, TurnDue


def overdue(ledger: Ledger, due: TurnDue) -> None:
    """The whole turn took too long: it fails, and what it started is killed. A human may think for ever."""
    session = ledger.state.sessions.get(due.session)
    turn = session.turn if session else None
    if session is None or turn is None or turn.id != due.turn or turn.pauses != due.pauses:
        return
    error = f"it took longer than {ledger.state.policy.deadline_seconds:.0f} s"
    verdict = Verdict(
        TurnState.FAILED, error=error, hint="raise [turns] deadline in hermes.toml, or ask for less"
    )
    if turn.attempt is None:
        turns.close(ledger, session, turn, verdict, NOTHING_TO_KILL)
    elif turn.attempt.verdict is None:
        turns.stop(ledger, session, turn, verdict, "deadline")


def silent(ledger: Ledger, due: SilenceDue) -> None:
    """Look for progress of the attempt; without any, its worker is killed and the attempt counts as lost."""
    session = ledger.state.sessions.get(due.session)
    turn = session.turn if session else None
    attempt = turn.attempt if turn else None
    if turn is None or attempt is None or turn.id != due.turn or attempt.number != due.attempt:
        return
    limit = ledger.state.policy.silence_seconds
    due_at = attempt.progress_at + limit
    if ledger.now < due_at:  # The same sum as in the reminder: a rounded difference could ask again for ever.
        ledger.remind(due_at, due)
    elif attempt.verdict is None:
        pool.kill(ledger, ledger.state.workers[attempt.who.seat], f"no progress for {limit:.0f} s")
