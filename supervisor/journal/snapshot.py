"""The durable part of State as a value: memory and journal must never differ in it."""

from dataclasses import dataclass

from supervisor.core.state import Attempt, Message, Question, Session, State, Turn, Verdict, Who


@dataclass(frozen=True, slots=True)
class DurableMessage:
    id: str
    text: str
    busy: str
    at: float
    clip: str
    seq: int
    wishes: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class DurableAttempt:
    number: int
    who: Who
    opened_at: float
    level: str
    text: str
    calls: frozenset[tuple[str, str]]
    verdict: Verdict | None
    spent: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class DurableTurn:
    id: str
    messages: tuple[DurableMessage, ...]
    opened_at: float
    agent: str
    attempts: int
    losses: int
    content_at: float
    earlier_text: str
    spent: tuple[int, int, int]
    attempt: DurableAttempt | None
    question: Question | None
    questions: int


@dataclass(frozen=True, slots=True)
class DurableSession:
    name: str
    seq: int
    turns: int
    held: int
    waiting: tuple[DurableMessage, ...]
    turn: DurableTurn | None


def durable(state: State) -> dict[str, DurableSession]:
    """Return the sessions that are not at rest. The others may be in memory or not: the journal has them."""
    return {name: session_of(each) for name, each in state.sessions.items() if not each.is_at_rest}


def session_of(session: Session) -> DurableSession:
    waiting = tuple(_message(each) for each in session.waiting)
    turn = _turn(session.turn) if session.turn else None
    return DurableSession(session.name, session.seq, session.turns, session.held, waiting, turn)


def _message(message: Message) -> DurableMessage:
    known = message.id, message.text, message.busy.value, message.at, message.clip, message.seq
    return DurableMessage(*known, (message.by, message.agent, message.instructions))


def _turn(turn: Turn) -> DurableTurn:
    return DurableTurn(
        turn.id,
        tuple(_message(each) for each in turn.messages),
        turn.opened_at,
        turn.agent,
        turn.attempts,
        turn.losses,
        turn.content_at,
        turn.earlier_text,
        (turn.input_tokens, turn.output_tokens, turn.cost),
        _attempt(turn.attempt) if turn.attempt else None,
        turn.question,
        turn.questions,
    )


def _attempt(attempt: Attempt) -> DurableAttempt:
    calls = frozenset(attempt.calls.items())
    known = attempt.number, attempt.who, attempt.opened_at, attempt.level
    spent = attempt.input_tokens, attempt.output_tokens, attempt.cost
    return DurableAttempt(*known, attempt.text, calls, attempt.verdict, spent)
