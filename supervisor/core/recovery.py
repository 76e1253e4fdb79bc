"""What a new life does with the old one's unfinished turns: it puts them back on the road or ends them."""

from supervisor.core import admission, kept_turns, line, pool, questions, transcripts, turns
from supervisor.core.decision import Ledger
from supervisor.core.effects import Carried
from supervisor.core.events import Recovered
from supervisor.core.policy import Policy
from supervisor.core.records import MessageDropped
from supervisor.core.state import Intake, Proof, Session, Turn

# The start has swept away every process of the life before; nobody counted them.
_SWEPT = Proof(processes=0, all_dead=True, ms=0.0, how="restart")
_ENDED = "the supervisor ended while it ran"
# By whom a message is dropped that waited too long for a service that was away.
TOO_OLD = "freshness"


def recovered(ledger: Ledger, event: Recovered) -> None:
    """First event of a life, before any door is open."""
    ledger.state.waiting = sum(len(session.waiting) for session in ledger.state.sessions.values())
    going_on = kept_turns.take_back(ledger, event)
    for session in list(ledger.state.sessions.values()):
        if session.turn is not None and session.name not in going_on:
            _settle(ledger, session, session.turn)
        _let_go_of_the_old(ledger, session)
        transcripts.take_up(ledger, session)
        if session.turn is None and session.waiting:
            ledger.state.openable[session.name] = None
    pool.fit(ledger)
    ledger.answer = Carried(note="recovered")


def _settle(ledger: Ledger, session: Session, turn: Turn) -> None:
    if turn.attempt is not None and turn.attempt.verdict is not None:
        turns.close(ledger, session, turn, turn.attempt.verdict, _SWEPT)
        return
    if turn.question is not None:
        return  # waiting for a human is a boundary: it waits again, with the same question
    if turn.attempt is not None and not turns.count_loss(ledger, session, turn, _ENDED):
        return
    reason = _reason_to_end(ledger.state.policy, turn, ledger.now)
    if reason is not None:
        turns.fail(ledger, session, turn, reason, f"take it up with `hermesctl retry {turn.id}`")
    elif ledger.state.policy.resume == "ask" and turn.attempts > 0:
        questions.ask_to_go_on(ledger, session, turn)
    else:
        line.join(ledger.state, session.name, ledger.now)


def _let_go_of_the_old(ledger: Ledger, session: Session) -> None:
    """What nobody has begun to answer, and nobody has added to, for too long: who asked has gone.

    What an interrupt holds begins nothing by itself; behind a turn that goes on the conversation is alive.
    """
    if session.turn or session.held or not session.waiting:
        return
    if ledger.now - max(message.at for message in session.waiting) > ledger.state.policy.freshness_seconds:
        for message in session.waiting:
            ledger.tell(session, MessageDropped, message=message.id, by=TOO_OLD)
        ledger.state.waiting -= len(session.waiting)
        session.waiting.clear()


def _reason_to_end(policy: Policy, turn: Turn, now: float) -> str | None:
    """Why the turn is not taken up again; by the age of what was really said or done, never of a marker."""
    if now - turn.content_at > policy.freshness_seconds:
        return f"not resumed: older than {policy.freshness_seconds:.0f} s when the service came back"
    if policy.resume == "never" and turn.attempts > 0:
        return 'not resumed: the service ended while it ran and [turns] resume is "never"'
    return None


def stop_asked(ledger: Ledger) -> None:
    """The end of a life, in order: what runs is left for the next one."""
    admission.change(ledger, Intake.STOPPING)
    ledger.answer = Carried(note="stopping; what runs is taken up at the next start")
    for session in ledger.state.sessions.values():
        turn = session.turn
        if turn and turn.attempt and turn.attempt.verdict is None:
            turns.leave(ledger, session, turn, "the service was stopped")
