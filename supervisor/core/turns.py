"""Turns and attempts: an attempt opens, streams text, uses tools and ends; only frames of the open one count.

States of a turn, by the records that change them; `-` is a turn that does not exist yet. Done, failed and
interrupted turns never change again.

| turn | record | next state | cause |
| --- | --- | --- | --- |
| - | TurnOpened | queued | a free session has a message with text |
| queued | AttemptOpened | running | a worker gets the turn |
| running | AttemptLost | queued | the worker died, was stopped with the service, or found no model |
| running | AttemptLost | asking | the attempt held for an answer and ended before it came |
| running | QuestionAsked | asking | the agent asks a person, which ends the attempt |
| queued | QuestionAsked | asking | the supervisor asks after a restart whether to resume |
| asking | QuestionAnswered | queued | a person answers |
| running | TurnDone | done | the agent finished its answer |
| queued, running | TurnFailed | failed | an error, a limit, or too many lost attempts |
| queued, running, asking | TurnInterrupted | interrupted | a message or a client interrupts |

States of an attempt. A turn has at most one attempt that is open or stopped, and then it is running.

| attempt | record | next state | cause |
| --- | --- | --- | --- |
| - | AttemptOpened | open | a worker gets the turn |
| open | AttemptStopped | stopped | it is killed for a verdict: interrupted, or failed by a limit |
| open | AttemptLost | lost | its worker ended first, or it is put back |
| open | QuestionAsked | asked | it asks a person, and does not hold for the answer |
| open | TurnDone | done | it finished the answer |
| open, stopped | TurnFailed | failed | it failed, or its worker is proved dead after a limit |
| stopped | TurnInterrupted | interrupted | its worker is proved dead after an interrupt |

Invariants: a stopped attempt closes its turn only with the proof of the kill, so its processes cannot overlap
with the session's next turn; its frames no longer count. The text of a turn is that of all its attempts in
order: each attempt continues where the lost one stopped.

`tests/core/test_transition_tables.py` compares both tables with the stories.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from supervisor.core import backoff, line, pool, tool_calls
from supervisor.core.decision import Draft
from supervisor.core.effects import EndGrace, SteerTurn
from supervisor.core.events import (
    Failed,
    Finished,
    Frame,
    Steered,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    WorkerDied,
    WorkerStuck,
)
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import (
    AttemptLost,
    AttemptStopped,
    AttemptStreamed,
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
)

_UNPROVED = "it is not proved that nothing of it is left"
# Messages that a worker buffers for its agent, and their characters: more would only fill its link.
_OFFERED_MAX, OFFERED_CHARACTERS_MAX = 32, 1_000_000
# An empty answer counts as a failure; a worker that knows the cause reports it itself.
_EMPTY = ("the model gave an empty answer", "send the message again, or ask differently")
_INTERRUPT = Reason(EndReason.INTERRUPT)


def running(state: State, who: Who, turn_id: str, number: int) -> tuple[Session, Turn, Attempt] | None:
    """Return the open attempt that a frame belongs to, or None when the frame is stale."""
    worker = pool.current(state, who)
    found = _work_of(state, worker) if worker else None
    if found is None or found[2].verdict is not None:
        return None
    _, turn, attempt = found
    if turn.id != turn_id or attempt.number != number or attempt.who != who:
        return None
    return found


def _work_of(state: State, worker: Worker) -> tuple[Session, Turn, Attempt] | None:
    """Return the attempt that runs in the session of a worker."""
    session = state.sessions.get(worker.session) if worker.session is not None else None
    turn = session.turn if session else None
    attempt = turn.attempt if turn else None
    return (session, turn, attempt) if session and turn and attempt else None


def with_words(waiting: Iterable[Message]) -> Iterator[Message]:
    """Return the first messages that have text: none overtakes a clip that is being transcribed."""
    return takewhile(lambda message: not message.is_transcribing, waiting)


def steer(draft: Draft, turn: Turn, message: Message) -> None:
    """Offer a waiting message to the running attempt, if there is room and no earlier one found none."""
    attempt = turn.attempt
    if message.busy is not BusyMode.STEER:
        return
    if message.agent not in ("", turn.agent):
        return  # it opens a turn of its own
    if attempt is None or attempt.verdict is not None or message.id in attempt.offered:
        return
    characters, count = sum(attempt.offered.values()) + len(message.text), len(attempt.offered)
    attempt.is_offer_full |= count == _OFFERED_MAX or (count > 0 and characters > OFFERED_CHARACTERS_MAX)
    if not attempt.is_offer_full:
        attempt.offered[message.id] = len(message.text)
        draft.perform(SteerTurn(attempt.who, turn.id, attempt.number, message.id, message.text))


def frame(draft: Draft, event: Frame) -> None:
    """Handle a frame of the running attempt; any other frame is stale and ignored."""
    found = running(draft.state, event.who, event.turn, event.attempt)
    if found is None:
        return
    session, turn, attempt = found
    attempt.progress_at = draft.now
    match event:
        case TextStreamed():
            _spoke(draft, session, turn, event.text)
        case ToolStarted():
            tool_calls.started(draft, session, turn, event)
        case ToolFinished():
            tool_calls.finished(draft, session, turn, event)
        case Steered():
            _steered(draft, session, turn, event.message)
        case Finished():
            _finished(draft, session, turn, event)
        case Failed():
            _failed(draft, session, turn, event)


def _spoke(draft: Draft, session: Session, turn: Turn, text: str) -> None:
    attempt = turn.attempt
    assert attempt is not None
    if not _fits(draft, attempt, len(turn.earlier_text) + len(attempt.text) + len(text)):
        return
    offset = len(attempt.text)
    draft.note(session, AttemptStreamed, turn=turn.id, attempt=attempt.number, offset=offset, text=text)
    attempt.text += text
    turn.content_at = draft.now


def _fits(draft: Draft, attempt: Attempt, characters: int) -> bool:
    """Return whether an answer may have so many characters; if not, its worker is killed."""
    limit = draft.state.policy.said_characters_max
    if characters > limit:
        worker = draft.state.workers[attempt.who.seat]
        pool.kill(draft, worker, Reason(EndReason.TOO_MUCH_TEXT, str(limit)))
    return characters <= limit


def _steered(draft: Draft, session: Session, turn: Turn, message_id: str) -> None:
    message = next((each for each in session.waiting if each.id == message_id), None)
    if message is None or turn.attempt is None or message.id not in turn.attempt.offered:
        return
    line.take(draft.state, session, message)
    turn.messages += (message,)
    turn.content_at = draft.now
    draft.tell(session, TurnSteered, turn=turn.id, attempt=turn.attempt.number, message=message.id)
    del turn.attempt.offered[message.id]
    turn.attempt.is_offer_full = False
    for waiting in with_words(session.waiting):
        steer(draft, turn, waiting)


def _finished(draft: Draft, session: Session, turn: Turn, event: Finished) -> None:
    """End the turn. Its text is that of all attempts in order."""
    attempt, text = turn.attempt, turn.earlier_text + event.text
    assert attempt is not None
    if not _fits(draft, attempt, len(text)):
        return
    attempt.spend(event.input_tokens, event.output_tokens, event.cost)
    give_back(draft, event.who)
    if not text.strip():
        fail(draft, session, turn, *_EMPTY)
        return
    draft.tell(
        session,
        TurnDone,
        turn=turn.id,
        attempt=event.attempt,
        text=text,
        finish=event.finish,
        earlier_length=len(turn.earlier_text),
        model=event.model,
        **turn.spent,
    )
    _leave(draft, session)


def _failed(draft: Draft, session: Session, turn: Turn, event: Failed) -> None:
    assert turn.attempt is not None
    turn.attempt.spend(event.input_tokens, event.output_tokens, event.cost)
    give_back(draft, event.who)
    if event.again and turn.losses + 1 < draft.state.policy.attempts_max:
        lose(draft, session, turn, Reason(EndReason.ATTEMPT_FAILED, event.error))
    else:
        fail(draft, session, turn, event.error, event.hint)


def give_back(draft: Draft, who: Who) -> None:
    """The worker has no turn; it sends Ready when it can take its session's next one."""
    worker = draft.state.workers[who.seat]
    worker.turn = None
    worker.turns += 1
    worker.away_since = draft.now
    pool.index(draft.state, worker)
    pool.expect_ready(draft, worker)


def interrupt(draft: Draft, session: Session, by: str) -> str | None:
    """Stop the session's turn now. Return the turn, or None when there is none to stop."""
    turn = session.turn
    if turn is None or (turn.attempt and turn.attempt.verdict):
        return None
    if turn.attempt is None:
        # What an earlier life left of the turn may still be there: then nothing was seen to end.
        is_left = turn.has_begun and draft.state.seat_of.get(session.name) in draft.state.stuck
        proof = replace(NOTHING_TO_KILL, all_dead=not is_left)
        close(draft, session, turn, Verdict(TurnState.INTERRUPTED, by=by), proof)
    else:
        stop(draft, session, turn, Verdict(TurnState.INTERRUPTED, by=by), _INTERRUPT)
    return turn.id


def end_grace(draft: Draft, turn: Turn) -> None:
    """Interrupt a stopped turn again, not by a message: if its agent may cancel by itself, that is over."""
    who = turn.attempt.who if turn.attempt else None
    worker = draft.state.workers.get(who.seat) if who else None
    if worker and who == pool.fence(draft.state, worker):
        draft.perform(EndGrace(who))


def stop(draft: Draft, session: Session, turn: Turn, verdict: Verdict, why: Reason) -> None:
    """End the running attempt by killing its cell. The turn closes when the proof has come.

    A question that it holds for is withdrawn at once.
    """
    attempt = turn.attempt
    assert attempt is not None
    attempt.verdict, turn.question = verdict, None
    draft.note(session, AttemptStopped, turn=turn.id, attempt=attempt.number, verdict=verdict)
    pool.kill(draft, draft.state.workers[attempt.who.seat], why)


def worker_ended(draft: Draft, event: WorkerDied | WorkerStuck) -> None:
    """Handle the end of a worker: first for the turn, then for the seat.

    With a stuck worker the turn stays open and the session gets no other worker; another seat is added. An
    end without the proof that nothing is left is no end yet.
    """
    worker = draft.state.workers.get(event.seat)
    if worker is None or worker.incarnation != event.incarnation or worker.is_empty:
        return
    if isinstance(event, WorkerDied) and not event.proof.all_dead:
        event = WorkerStuck(event.seat, event.incarnation, 0, _UNPROVED)
    if isinstance(event, WorkerStuck):
        _worker_stuck(draft, worker, event)
        pool.stuck(draft, worker, event)
    else:
        _worker_gone(draft, worker, event.proof, event.reason)
        pool.emptied(draft, worker, event)


def _worker_gone(draft: Draft, worker: Worker, proof: Proof, reason: Reason) -> None:
    """The worker of a running turn is dead: close the turn by its verdict, or count the attempt as lost."""
    found = _work_of(draft.state, worker)
    if found is None:
        return
    session, turn, attempt = found
    if attempt.verdict is not None:
        close(draft, session, turn, attempt.verdict, proof)
    else:
        lose(draft, session, turn, worker.why or reason)


def _worker_stuck(draft: Draft, worker: Worker, event: WorkerStuck) -> None:
    """Record this once: the turn closes when the last process is gone."""
    found = _work_of(draft.state, worker)
    if found is None or worker.stuck_since is not None:
        return
    session, turn, attempt = found
    told = {"processes": event.processes, "words": event.words}
    draft.tell(session, AttemptStuck, turn=turn.id, attempt=attempt.number, **told)


def lose(draft: Draft, session: Session, turn: Turn, reason: Reason) -> None:
    """The attempt is gone without an answer: try again, before others who have not begun.

    One that held for an answer is not tried again before the answer comes.
    """
    if turn.is_held:
        end_hold(draft, session, turn, str(reason))
    elif count_loss(draft, session, turn, reason):
        backoff.again(draft, session, turn)


def count_loss(draft: Draft, session: Session, turn: Turn, reason: Reason) -> bool:
    """Whether the turn may be tried again; one that has cost too many workers is closed."""
    _put_back(draft, session, turn, reason, losses=turn.losses + 1)
    if turn.losses < draft.state.policy.attempts_max:
        return True
    fail(
        draft,
        session,
        turn,
        f"lost {turn.losses} times, last: {reason}",
        f"read its story with `hermesctl why {turn.id}`, then `hermesctl retry {turn.id}`",
        poison=True,
    )
    return False


def leave(draft: Draft, session: Session, turn: Turn, reason: Reason) -> None:
    """Put the turn back, for a later life or until its model is back. Not its fault: it weighs nothing."""
    _put_back(draft, session, turn, reason, turn.losses)


def end_hold(draft: Draft, session: Session, turn: Turn, cause: str) -> None:
    """The attempt no longer holds for its answer: the turn asks without a seat. A person may take any time,
    so it weighs nothing."""
    leave(draft, session, turn, Reason(EndReason.GIVEN_BACK, cause))


def _put_back(draft: Draft, session: Session, turn: Turn, reason: Reason, losses: int) -> None:
    attempt = turn.attempt
    assert attempt is not None
    draft.tell(
        session,
        AttemptLost,
        turn=turn.id,
        attempt=attempt.number,
        reason=reason,
        losses=losses,
        offset=len(turn.text),
        **attempt.spent,
    )
    turn.losses = losses
    turn.end_attempt()


def fail(draft: Draft, session: Session, turn: Turn, error: str, hint: str, *, poison: bool = False) -> None:
    """End the turn without an answer. `poison`: it has cost too many workers."""
    told = {"turn": turn.id, "attempt": turn.attempts, "error": error, "hint": hint, "poison": poison}
    draft.tell(session, TurnFailed, **told, **turn.spent)
    _leave(draft, session)


def close(draft: Draft, session: Session, turn: Turn, verdict: Verdict, proof: Proof) -> None:
    """End a stopped turn in the state its verdict names."""
    if verdict.state is TurnState.FAILED:
        fail(draft, session, turn, verdict.error, verdict.hint)
        return
    draft.tell(
        session,
        TurnInterrupted,
        turn=turn.id,
        attempt=turn.attempts,
        by=verdict.by,
        partial=turn.text,
        killed=proof,
        **turn.spent,
    )
    _leave(draft, session)


def _leave(draft: Draft, session: Session) -> None:
    """Free the session: a waiting message may open the next turn.

    A turn that replaces a queued one takes over its place; else the place is given up.
    """
    session.turn = None
    if session.waiting:
        draft.state.openable[session.name] = None
    replaced = session.waiting and not session.waiting[0].is_transcribing
    if not replaced or session.held or draft.state.draining:
        line.leave(draft.state, session.name)
