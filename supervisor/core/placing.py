"""The two steps every decision ends with: open turns where sessions are free, place them on workers."""

from collections import deque

from supervisor.core import line, turns
from supervisor.core.ledger import Ledger
from supervisor.core.model import (
    NOTHING_TO_KILL,
    BusyMode,
    Message,
    ModelState,
    Session,
    Turn,
    TurnState,
    Verdict,
    turn_id,
)
from supervisor.core.records import TurnOpened


def open_turns(ledger: Ledger) -> None:
    """Each free session with something waiting gets a turn, in the order in which sessions became free."""
    state = ledger.state
    if state.draining:
        return
    while state.openable:
        name = next(iter(state.openable))
        del state.openable[name]
        session = state.sessions.get(name)
        while session and session.turn is None and not session.held and _has_words(session.waiting):
            _open(ledger, session)


def _has_words(waiting: deque[Message]) -> bool:
    """Nobody overtakes a spoken message that is still being transcribed."""
    return bool(waiting) and not waiting[0].is_transcribing


def _open(ledger: Ledger, session: Session) -> None:
    messages = _gather(session.waiting)
    ledger.state.waiting -= len(messages)
    session.turns += 1
    turn = Turn(turn_id(session.name, session.turns), session.name, messages, ledger.now)
    turn.content_at = max(message.at for message in messages)
    session.turn = turn
    ids = tuple(message.id for message in messages)
    ledger.tell(session, TurnOpened, turn=turn.id, number=session.turns, messages=ids)
    if _is_superseded(messages, session.waiting):
        verdict = Verdict(TurnState.INTERRUPTED, by=session.waiting[0].id)
        turns.close(ledger, session, turn, verdict, NOTHING_TO_KILL)
    else:
        line.join(ledger.state, session.name, ledger.now)


def _gather(waiting: deque[Message]) -> tuple[Message, ...]:
    """The next message, or the collected run of messages at the head."""
    messages = [waiting.popleft()]
    if messages[0].busy is BusyMode.COLLECT:
        while _has_words(waiting) and waiting[0].busy is BusyMode.COLLECT:
            messages.append(waiting.popleft())
    return tuple(messages)


def _is_superseded(messages: tuple[Message, ...], waiting: deque[Message]) -> bool:
    """Interrupts that came while the last turn was dying: only the newest of them is worth starting."""
    return _has_words(waiting) and messages[0].busy is waiting[0].busy is BusyMode.INTERRUPT


def place(ledger: Ledger) -> None:
    """Queued turns go to idle workers, first come first served, up to the number of busy seats.

    While the host is short of something they run one at a time: none makes it worse, and all get done.
    """
    state = ledger.state
    if state.draining or state.model.state is ModelState.WAITING:
        return
    while state.queued and (_has_seat(ledger) or state.model.state is ModelState.FAILED):
        name, _ = state.queued.popitem(last=False)
        session = state.sessions[name]
        turn = session.turn
        assert turn is not None  # who has no turn has left the line
        if state.model.state is ModelState.FAILED:
            turns.fail(ledger, session, turn, state.model.error, state.model.hint)
            open_turns(ledger)
        else:
            turns.open_attempt(ledger, session, turn, state.workers[next(iter(state.idle))])


def _has_seat(ledger: Ledger) -> bool:
    state = ledger.state
    seats = 1 if state.strains else state.policy.busy_seats
    return bool(state.idle) and len(state.busy) < seats
