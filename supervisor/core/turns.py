"""The life of a turn: attempts open, speak, use tools and end. Only the open attempt is listened to."""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from supervisor.core import backoff, line, pool, tool_calls
from supervisor.core.decision import Ledger
from supervisor.core.effects import AssignTurn, SteerTurn
from supervisor.core.events import (
    Failed,
    Finished,
    Frame,
    Spoke,
    Steered,
    ToolFinished,
    ToolStarted,
    WorkerStuck,
)
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    AttemptSpoke,
    AttemptStopped,
    AttemptStuck,
    TurnDone,
    TurnFailed,
    TurnInterrupted,
    TurnSteered,
)
from supervisor.core.state import (
    NOTHING_TO_KILL,
    Attempt,
    BusyMode,
    Message,
    Proof,
    Session,
    State,
    Turn,
    TurnState,
    Verdict,
    Who,
    Worker,
    WorkerState,
)
from supervisor.core.timers import SilenceDue, TurnDue

# As many messages as a worker keeps for its agent's next boundary: more would only fill the line to it.
_OFFERED_MAX = 32
# An answer without a word is none; a worker that knows more about it says so itself.
_EMPTY = ("the model gave an empty answer", "send the message again, or ask differently")


def running(state: State, who: Who, turn_id: str, number: int) -> tuple[Session, Turn, Attempt] | None:
    """The open attempt a frame speaks of, or None when the frame is an echo."""
    worker = pool.current(state, who)
    found = _work_of(state, worker) if worker else None
    if found is None or found[2].verdict is not None:
        return None
    _, turn, attempt = found
    if turn.id != turn_id or attempt.number != number or attempt.who != who:
        return None
    return found


def _work_of(state: State, worker: Worker) -> tuple[Session, Turn, Attempt] | None:
    """The attempt that runs in the session of a worker."""
    session = state.sessions.get(worker.session) if worker.session is not None else None
    turn = session.turn if session else None
    attempt = turn.attempt if turn else None
    return (session, turn, attempt) if session and turn and attempt else None


def open_attempt(
    ledger: Ledger, session: Session, turn: Turn, worker: Worker, away_since: float | None = None
) -> None:
    """Give the turn to an idle worker of its agent: the session's own, or one that has no session yet.

    With `away_since` the attempt is the probe of an endpoint that has been away since then.
    """
    turn.attempts += 1
    number, who = turn.attempts, pool.fence(ledger.state, worker)
    turn.attempt = Attempt(number, who, ledger.now, worker.level)
    turn.attempt.endpoint = ledger.state.policy.endpoint_of(turn.agent)
    if worker.session is None:
        pool.bind(ledger, worker, session.name)
    worker.state, worker.turn = WorkerState.BUSY, turn.id
    pool.index(ledger.state, worker)
    ledger.tell(
        session, AttemptOpened, turn=turn.id, attempt=number, who=who, pid=worker.pid, level=worker.level
    )
    assigned = (who, session.name, turn.id, number, turn.agent, turn.messages)
    ledger.perform(AssignTurn(*assigned, len(turn.said_before), away_since))
    for message in with_words(session.waiting):
        steer(ledger, turn, message)
    watch(ledger, session, turn)


def watch(ledger: Ledger, session: Session, turn: Turn) -> None:
    """The clock of the whole turn runs from its first attempt in this life on, that of silence from now."""
    assert turn.attempt is not None
    policy = ledger.state.policy
    turn.attempt.progress_at = ledger.now
    if turn.started_at is None:
        turn.started_at = ledger.now
        due = TurnDue(session.name, turn.id, turn.pauses)
        ledger.remind(ledger.now + policy.deadline_seconds - turn.ran_seconds, due)
    silence = SilenceDue(session.name, turn.id, turn.attempts)
    ledger.remind(ledger.now + policy.silence_seconds, silence)


def pause(ledger: Ledger, turn: Turn) -> None:
    """The clock of the turn stands still until its next attempt."""
    if turn.started_at is not None:
        turn.ran_seconds += ledger.now - turn.started_at
    turn.started_at, turn.pauses = None, turn.pauses + 1


def with_words(waiting: Iterable[Message]) -> Iterator[Message]:
    """Those at the head whose words are known: nobody overtakes a clip that is still being transcribed."""
    return takewhile(lambda message: not message.is_transcribing, waiting)


def steer(ledger: Ledger, turn: Turn, message: Message) -> None:
    """Offer a waiting message to the running attempt. Until the agent has taken it in, it stays waiting."""
    attempt = turn.attempt
    if message.busy is not BusyMode.STEER:
        return
    if attempt is None or attempt.verdict is not None or message.id in attempt.offered:
        return
    if len(attempt.offered) < _OFFERED_MAX:
        attempt.offered.add(message.id)
        ledger.perform(SteerTurn(attempt.who, turn.id, attempt.number, message.id, message.text))


def frame(ledger: Ledger, event: Frame) -> None:
    """What the running attempt says or does; of anything else, nothing happens."""
    found = running(ledger.state, event.who, event.turn, event.attempt)
    if found is None:
        return
    session, turn, attempt = found
    attempt.progress_at = ledger.now
    match event:
        case Spoke():
            _spoke(ledger, session, turn, event.text)
        case ToolStarted():
            tool_calls.started(ledger, session, turn, event)
        case ToolFinished():
            tool_calls.finished(ledger, session, turn, event)
        case Steered():
            _steered(ledger, session, turn, event.message)
        case Finished():
            _finished(ledger, session, turn, event)
        case Failed():
            _failed(ledger, session, turn, event)


def _spoke(ledger: Ledger, session: Session, turn: Turn, text: str) -> None:
    attempt = turn.attempt
    assert attempt is not None
    if not _fits(ledger, attempt, len(turn.said_before) + len(attempt.said) + len(text)):
        return
    offset = len(attempt.said)
    ledger.note(session, AttemptSpoke, turn=turn.id, attempt=attempt.number, offset=offset, text=text)
    attempt.said += text
    turn.content_at = ledger.now


def _fits(ledger: Ledger, attempt: Attempt, characters: int) -> bool:
    """Whether an answer may have so many characters; if not, the worker that gives it is killed."""
    limit = ledger.state.policy.said_characters_max
    if characters > limit:
        worker = ledger.state.workers[attempt.who.seat]
        pool.kill(ledger, worker, f"it said more than {limit} characters")
    return characters <= limit


def _steered(ledger: Ledger, session: Session, turn: Turn, message_id: str) -> None:
    message = next((each for each in session.waiting if each.id == message_id), None)
    if message is None or turn.attempt is None or message.id not in turn.attempt.offered:
        return
    line.take(ledger.state, session, message)
    turn.messages += (message,)
    turn.content_at = ledger.now
    ledger.tell(session, TurnSteered, turn=turn.id, attempt=turn.attempt.number, message=message.id)
    turn.attempt.offered.discard(message.id)
    for waiting in with_words(session.waiting):
        steer(ledger, turn, waiting)


def _finished(ledger: Ledger, session: Session, turn: Turn, event: Finished) -> None:
    """The answer is what all attempts said, in order: the last one went on where those before it stopped."""
    attempt, text = turn.attempt, turn.said_before + event.text
    assert attempt is not None
    if not _fits(ledger, attempt, len(text)):
        return
    attempt.spend(event.input_tokens, event.output_tokens)
    give_back(ledger, event.who)
    if not text.strip():
        fail(ledger, session, turn, *_EMPTY)
        return
    ledger.tell(
        session,
        TurnDone,
        turn=turn.id,
        attempt=event.attempt,
        text=text,
        finish=event.finish,
        said_before=len(turn.said_before),
        **turn.spent,
    )
    _leave(ledger, session)


def _failed(ledger: Ledger, session: Session, turn: Turn, event: Failed) -> None:
    assert turn.attempt is not None
    turn.attempt.spend(event.input_tokens, event.output_tokens)
    give_back(ledger, event.who)
    if event.again and turn.losses + 1 < ledger.state.policy.attempts_max:
        lose(ledger, session, turn, event.error)
    else:
        fail(ledger, session, turn, event.error, event.hint)


def give_back(ledger: Ledger, who: Who) -> None:
    """The worker is at work no more; it says Ready when it can take its session's next turn."""
    worker = ledger.state.workers[who.seat]
    worker.turn = None
    worker.turns += 1
    worker.away_since = ledger.now
    pool.index(ledger.state, worker)
    pool.expect_ready(ledger, worker)


def interrupt(ledger: Ledger, session: Session, by: str) -> str | None:
    """Stop the session's turn now. Returns the turn it stops, or None when there is none to stop."""
    turn = session.turn
    if turn is None or (turn.attempt and turn.attempt.verdict):
        return None
    if turn.attempt is None:
        close(ledger, session, turn, Verdict(TurnState.INTERRUPTED, by=by), NOTHING_TO_KILL)
    else:
        stop(ledger, session, turn, Verdict(TurnState.INTERRUPTED, by=by), "interrupt")
    return turn.id


def stop(ledger: Ledger, session: Session, turn: Turn, verdict: Verdict, why: str) -> None:
    """End the running attempt by killing its cell. The turn closes when the proof has come."""
    attempt = turn.attempt
    assert attempt is not None
    attempt.verdict = verdict
    ledger.note(session, AttemptStopped, turn=turn.id, attempt=attempt.number, verdict=verdict)
    pool.kill(ledger, ledger.state.workers[attempt.who.seat], why)


def worker_gone(ledger: Ledger, worker: Worker, proof: Proof, words: str) -> None:
    """The worker of a running turn is dead: close the turn by its verdict, or count the attempt as lost."""
    found = _work_of(ledger.state, worker)
    if found is None:
        return
    session, turn, attempt = found
    if attempt.verdict is not None:
        close(ledger, session, turn, attempt.verdict, proof)
    else:
        lose(ledger, session, turn, worker.why or words)


def worker_stuck(ledger: Ledger, worker: Worker, event: WorkerStuck) -> None:
    """Told once: the turn closes when the last process is gone."""
    found = _work_of(ledger.state, worker)
    if found is None or worker.stuck_since is not None:
        return
    session, turn, attempt = found
    told = {"processes": event.processes, "words": event.words}
    ledger.tell(session, AttemptStuck, turn=turn.id, attempt=attempt.number, **told)


def lose(ledger: Ledger, session: Session, turn: Turn, reason: str) -> None:
    """The attempt is gone without an answer: try again, before others who have not begun."""
    if count_loss(ledger, session, turn, reason):
        backoff.again(ledger, session, turn)


def count_loss(ledger: Ledger, session: Session, turn: Turn, reason: str) -> bool:
    """Whether the turn may be tried again; one that has cost too many workers is closed."""
    _put_back(ledger, session, turn, reason, losses=turn.losses + 1)
    if turn.losses < ledger.state.policy.attempts_max:
        return True
    fail(
        ledger,
        session,
        turn,
        f"lost {turn.losses} times, last: {reason}",
        f"read its story with `hermesctl why {turn.id}`, then `hermesctl retry {turn.id}`",
        poison=True,
    )
    return False


def leave(ledger: Ledger, session: Session, turn: Turn, reason: str) -> None:
    """Put the turn back, for a later life or until its model is back. Not its fault: it weighs nothing."""
    _put_back(ledger, session, turn, reason, turn.losses)


def _put_back(ledger: Ledger, session: Session, turn: Turn, reason: str, losses: int) -> None:
    attempt = turn.attempt
    assert attempt is not None
    ledger.tell(
        session,
        AttemptLost,
        turn=turn.id,
        attempt=attempt.number,
        reason=reason,
        losses=losses,
        said=len(turn.said),
        input_tokens=attempt.input_tokens,
        output_tokens=attempt.output_tokens,
    )
    turn.losses = losses
    turn.end_attempt()


def fail(
    ledger: Ledger, session: Session, turn: Turn, error: str, hint: str, *, poison: bool = False
) -> None:
    """End the turn without an answer. Poison is a turn that has cost too many workers."""
    told = {"turn": turn.id, "attempt": turn.attempts, "error": error, "hint": hint, "poison": poison}
    ledger.tell(session, TurnFailed, **told, **turn.spent)
    _leave(ledger, session)


def close(ledger: Ledger, session: Session, turn: Turn, verdict: Verdict, proof: Proof) -> None:
    """End a stopped turn in the state its verdict names."""
    if verdict.state is TurnState.FAILED:
        fail(ledger, session, turn, verdict.error, verdict.hint)
        return
    ledger.tell(
        session,
        TurnInterrupted,
        turn=turn.id,
        attempt=turn.attempts,
        by=verdict.by,
        partial=turn.said,
        killed=proof,
        **turn.spent,
    )
    _leave(ledger, session)


def _leave(ledger: Ledger, session: Session) -> None:
    """The session is free: whatever waits may open the next turn.

    One that replaces a turn that was in the line takes over its place; else the place is given up.
    """
    session.turn = None
    if session.waiting:
        ledger.state.openable[session.name] = None
    replaced = session.waiting and not session.waiting[0].is_transcribing
    if not replaced or session.held or ledger.state.draining:
        line.leave(ledger.state, session.name)
