"""Questions to a person: a question holds no seat, and its answer queues the turn again."""

from supervisor.core import line, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import Done, Refused
from supervisor.core.events import AnswerArrived, Asked
from supervisor.core.records import QuestionAnswered, QuestionAsked
from supervisor.core.state import Message, Question, Session, Turn

# The supervisor's own question, and the answer that lets the turn continue.
_GO_ON = "yes"
_GO_ON_CHOICES = (_GO_ON, "no")


def asked(draft: Draft, event: Asked) -> None:
    """The running attempt asks. A question about a call that it never began is stale."""
    found = turns.running(draft.state, event.who, event.turn, event.attempt)
    if found is None or event.call not in found[2].calls:
        return
    session, turn, _ = found
    turns.give_back(draft, event.who)
    turn.end_attempt()
    _ask(draft, session, turn, event.kind, event.text, event.choices, event.call)


def ask_to_go_on(draft: Draft, session: Session, turn: Turn) -> None:
    """Only a person may decide whether a cut off turn is resumed."""
    text = f"The service ended while {turn.id} ran. Is it to go on?"
    _ask(draft, session, turn, "approve", text, _GO_ON_CHOICES, call="")


def _ask(
    draft: Draft,
    session: Session,
    turn: Turn,
    kind: str,
    text: str,
    choices: tuple[str, ...],
    call: str,
) -> None:
    turn.questions += 1
    turn.question = Question(f"{turn.id}#{turn.questions}", kind, text, choices, call)
    # A turn's deadline begins again with the answer: a person may take any time.
    turns.pause(draft, turn)
    turn.ran_seconds, turn.content_at = 0.0, draft.now
    draft.tell(
        session,
        QuestionAsked,
        turn=turn.id,
        attempt=turn.attempts,
        question=turn.question.id,
        number=turn.questions,
        kind=kind,
        text=text,
        choices=choices,
        call=call,
    )


def answer_arrived(draft: Draft, event: AnswerArrived) -> None:
    """An answer counts only for the question that is open."""
    session = draft.state.sessions.get(event.session)
    turn = session.turn if session else None
    if session is None or turn is None or turn.question is None or turn.question.id != event.question:
        error = f"question {event.question} is not open"
        draft.answer = Refused(error, "list what is asked with `hermesctl questions`")
        return
    goes_on = bool(turn.question.call) or _plain(event.text) == _GO_ON
    note = "" if goes_on else f"{turn.id} does not go on; `hermesctl retry {turn.id}` takes it up after all"
    draft.answer = Done(turns=(turn.id,), note=note)
    answer(draft, session, turn, event.text, by=event.by)


def take_answer(draft: Draft, session: Session, message: Message) -> bool:
    """Take a message as the answer to the open question, if there is one; return True if it was only that.

    A message from before the question is no answer to it. To the supervisor's own question only its choices
    are answers: any other text declines it, and is still answered as a message.
    """
    turn = session.turn
    if turn is None or turn.question is None or message.at < turn.content_at:
        return False
    is_answer = bool(turn.question.call) or _plain(message.text) in turn.question.choices
    taken = message.id if is_answer else ""
    if is_answer:
        line.take(draft.state, session, message)
    answer(draft, session, turn, message.text, by=message.id, message=taken)
    return is_answer


def answer(draft: Draft, session: Session, turn: Turn, text: str, *, by: str, message: str = "") -> None:
    """Queue the turn again for any worker; `message` is the message that was the answer."""
    question = turn.question
    assert question is not None
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
    )
    if question.call or _plain(text) == _GO_ON:
        line.join(draft.state, session.name, draft.now)
    else:
        error = "not resumed: the answer was not to go on"
        turns.fail(draft, session, turn, error, f"take it up with `hermesctl retry {turn.id}`")


def _plain(text: str) -> str:
    return text.strip().lower()
