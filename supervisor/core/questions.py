"""Questions to a person. A question is a row from the moment it is asked, and never expires.

Two parties ask. An agent asks through its attempt, with or without a tool call that the question is about;
the supervisor asks after a restart whether a turn is to be resumed (`Question.resumes`).

An agent whose work the journal can continue ends its attempt with the question: the turn asks, holds no seat,
and the answer queues it again. An agent that keeps its state in a process holds for the answer: the attempt
stays open and keeps its seat, with the clocks of silence and of the turn suspended, for `[turns] hold` at
most. An answer within that time is committed and then delivered to the attempt. Any end of the attempt before
the answer leaves the question open: the turn asks without a seat, as if the attempt had not held.

    turn with a question       left by                                      to
    held (running)             the answer                                   running, the attempt goes on
    held (running)             `hold` passes: the worker is killed          asking
    held (running)             the worker ends, the service stops           asking
    held (running)             an interrupt, or the end of the turn         the question is withdrawn
    asking                     the answer                                   queued
    asking                     an interrupt                                 the question is withdrawn

An answer counts only for the question that is open. A turn has at most one: a worker sends its next question
after the answer to the last one.
"""

from supervisor.core import line, pool, time_limits, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import AnswerTurn, Done, Refused
from supervisor.core.events import AnswerArrived, Asked
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import QuestionAnswered, QuestionAsked
from supervisor.core.state import Message, Question, Session, Turn
from supervisor.core.timers import HoldDue

YES, NO = "yes", "no"
_GO_ON_CHOICES = (YES, NO)
_LETTERS = {"y": YES, "n": NO}
_APPROVE = "approve"
# The end of a tool call that a person was asked about, as its agent reads it.
_APPROVED = "approved by the user; it has not run yet"
_DENIED = "denied by the user; it was not run"


def asked(draft: Draft, event: Asked) -> None:
    """The running attempt asks. A question about a call that it never began is stale, as is a second one."""
    found = turns.running(draft.state, event.who, event.turn, event.attempt)
    if found is None or found[1].is_held or (event.call and event.call not in found[2].calls):
        return
    session, turn, attempt = found
    attempt.spend(event.input_tokens, event.output_tokens, event.cost)
    turn.questions += 1
    turn.question = Question(
        f"{turn.id}#{turn.questions}",
        event.kind,
        event.text,
        event.choices,
        event.call,
        hold=event.hold,
        at=draft.now,
    )
    _ask(draft, session, turn, turn.question)
    if event.hold:
        hold(draft, session, turn)
    else:
        turns.give_back(draft, event.who)
        turn.end_attempt()


def ask_to_go_on(draft: Draft, session: Session, turn: Turn) -> None:
    """Only a person may decide whether a cut off turn is resumed."""
    turn.questions += 1
    turn.question = Question(
        f"{turn.id}#{turn.questions}",
        _APPROVE,
        f"The service ended while {turn.id} ran. Is it to go on?",
        _GO_ON_CHOICES,
        resumes=True,
        at=draft.now,
    )
    _ask(draft, session, turn, turn.question)


def _ask(draft: Draft, session: Session, turn: Turn, question: Question) -> None:
    # A turn's deadline begins again with the answer: a person may take any time.
    time_limits.pause(draft, turn)
    turn.ran_seconds, turn.content_at = 0.0, draft.now
    attempt = turn.attempt
    draft.tell(
        session,
        QuestionAsked,
        turn=turn.id,
        attempt=turn.attempts,
        question=question.id,
        number=turn.questions,
        kind=question.kind,
        text=question.text,
        choices=question.choices,
        call=question.call,
        resumes=question.resumes,
        hold=question.hold,
        offset=len(turn.text),
        **(attempt.spent if attempt else {}),
    )


def hold(draft: Draft, session: Session, turn: Turn) -> None:
    """Let the attempt keep its seat for a while. After a handoff the time begins again."""
    due = HoldDue(session.name, turn.id, turn.questions)
    draft.remind(draft.now + draft.state.policy.hold_seconds, due)


def held_too_long(draft: Draft, due: HoldDue) -> None:
    """No answer in time: the worker is killed, and its seat is free for others."""
    session = draft.state.sessions.get(due.session)
    turn = session.turn if session else None
    if session is None or turn is None or turn.id != due.turn or turn.questions != due.number:
        return
    if not turn.is_held:
        return
    assert turn.attempt is not None
    worker = draft.state.workers[turn.attempt.who.seat]
    cause = f"no answer within {draft.state.policy.hold_seconds:.0f} s"
    turns.end_hold(draft, session, turn, cause)
    worker.turn, worker.away_since = None, draft.now
    pool.kill(draft, worker, Reason(EndReason.GIVEN_BACK, cause))


def answer_arrived(draft: Draft, event: AnswerArrived) -> None:
    """An answer counts only for the question that is open."""
    session = draft.state.sessions.get(event.session)
    turn = session.turn if session else None
    if session is None or turn is None or turn.question is None or turn.question.id != event.question:
        error = f"question {event.question} is not open"
        draft.answer = Refused(error, "list what is asked with `hermesctl questions`", code="unknown")
        return
    goes_on = not turn.question.resumes or _meant(turn.question, event.text) == YES
    note = "" if goes_on else f"{turn.id} does not go on; `hermesctl retry {turn.id}` takes it up after all"
    draft.answer = Done(turns=(turn.id,), note=note)
    answer(draft, session, turn, event.text, by=event.by)


def take_answer(draft: Draft, session: Session, message: Message) -> bool:
    """Take a message as the answer to the open question, if there is one; return True if it was only that.

    A message from before the question is no answer to it. To the supervisor's own question only its choices
    are answers: any other text declines it, and is still answered as a message.
    """
    question = session.turn.question if session.turn else None
    if session.turn is None or question is None or message.at < question.at:
        return False
    is_answer = not question.resumes or _meant(question, message.text) in question.choices
    taken = message.id if is_answer else ""
    if is_answer:
        line.take(draft.state, session, message)
    answer(draft, session, session.turn, message.text, by=message.id, message=taken)
    return is_answer


def answer(draft: Draft, session: Session, turn: Turn, text: str, *, by: str, message: str = "") -> None:
    """Let the turn continue; `message` is the message that was the answer."""
    question, is_held = turn.question, turn.is_held
    assert question is not None
    text = _meant(question, text)
    is_denied = question.kind == _APPROVE and (text not in question.choices or text == NO)
    turn.question, turn.content_at = None, draft.now
    draft.tell(
        session,
        QuestionAnswered,
        turn=turn.id,
        attempt=turn.attempts,
        question=question.id,
        kind=question.kind,
        text=text,
        choices=question.choices,
        call=question.call,
        by=by,
        message=message,
        is_held=is_held,
        result=_result(text, question.kind, is_denied) if question.call and not is_held else "",
        is_denied=is_denied,
        offset=len(turn.text),
    )
    if is_held:
        _deliver(draft, session, turn, question, text)
    elif not question.resumes or text == YES:
        line.join(draft.state, session.name, draft.now)
    else:
        error = "not resumed: the answer was not to go on"
        turns.fail(draft, session, turn, error, f"take it up with `hermesctl retry {turn.id}`")


def _deliver(draft: Draft, session: Session, turn: Turn, question: Question, text: str) -> None:
    """Give the answer to the attempt that holds for it, and let its clocks run again."""
    attempt = turn.attempt
    assert attempt is not None
    attempt.progress_at = draft.now
    time_limits.run_clock(draft, session, turn)
    if pool.current(draft.state, attempt.who) is not None:  # One that is being killed gets nothing more.
        draft.perform(AnswerTurn(attempt.who, turn.id, attempt.number, question.id, question.hold, text))


def _result(text: str, kind: str, is_denied: bool) -> str:
    """Return the result of the call that a question was about.

    To a request for approval any text other than a consent is a denial, and the agent reads it.
    """
    if kind != _APPROVE:
        return text
    if not is_denied:
        return _APPROVED
    return _DENIED if text == NO else f"{_DENIED}: {text}"


def _meant(question: Question, text: str) -> str:
    """Return the choice that a person means by a text, else the text as it is."""
    plain = text.strip().lower()
    if question.kind == _APPROVE:
        plain = _LETTERS.get(plain, plain)
    return next((choice for choice in question.choices if choice.lower() == plain), text)
