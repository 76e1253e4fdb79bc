"""Two steps of every decision: open turns where sessions are free, place them on workers.

A worker serves one session of one agent. So a turn is placed on its session's own worker, if that is idle,
and otherwise, if the session has none, on a worker of its agent that has no session yet. Of the turns for
which there is such a worker the first in line is placed; the others keep their place and are not waited
for. A session whose worker settles after a turn, or dies, waits for it: it never has two.

A turn answers the first message that waits, and with it those behind it that nobody has begun to answer
either: a message in interrupt or steer mode goes with the one before it, collected ones go together. What
arrives while a turn is still in line waits, and joins it by the same rule when it begins. So no message is
interrupted before anybody has begun to answer it, and the order of arrival is kept (docs/decisions/0004).
"""

from collections import deque

from supervisor.core import line, outages, turns
from supervisor.core.decision import Ledger
from supervisor.core.records import TurnJoined, TurnOpened
from supervisor.core.state import (
    BusyMode,
    Message,
    ModelState,
    Session,
    State,
    Turn,
    Worker,
    turn_id,
)

# Characters of messages that are put together in one turn. A character has four bytes at most, so they fit
# the Assign of the turn (supervisor/workers/briefing.py), and no message is cut.
_TOGETHER_CHARACTERS_MAX = 1_000_000


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
    first = session.waiting[0]
    line.take(ledger.state, session, first)
    messages = (first, *_together(ledger, session, (first,)))
    session.turns += 1
    agent = ledger.state.policy.agent_of(session.name)
    turn = Turn(turn_id(session.name, session.turns), session.name, messages, ledger.now, agent)
    turn.content_at = max(message.at for message in messages)
    session.turn = turn
    ids = tuple(message.id for message in messages)
    ledger.tell(session, TurnOpened, turn=turn.id, number=session.turns, agent=agent, messages=ids)
    line.join(ledger.state, session.name, ledger.now)


def _join(ledger: Ledger, session: Session, turn: Turn) -> None:
    """The turn is about to begin: it answers what has come since it was opened, too."""
    messages = _together(ledger, session, turn.messages)
    if messages:
        turn.messages += messages
        turn.content_at = max(message.at for message in messages)
        ids = tuple(message.id for message in messages)
        ledger.tell(session, TurnJoined, turn=turn.id, messages=ids)


def _together(ledger: Ledger, session: Session, answered: tuple[Message, ...]) -> tuple[Message, ...]:
    """Takes those that wait and are answered together with messages that nobody has begun to answer."""
    last, found = answered[-1], list[Message]()
    room = _TOGETHER_CHARACTERS_MAX - sum(len(message.text) for message in answered)
    while _has_words(session.waiting) and _go_together(last, session.waiting[0]):
        last = session.waiting[0]
        room -= len(last.text)
        if room < 0:
            break
        line.take(ledger.state, session, last)
        found.append(last)
    return tuple(found)


def _go_together(before: Message, message: Message) -> bool:
    """Whether a message is answered with the one before it; otherwise it opens a turn of its own."""
    if message.busy is BusyMode.COLLECT:
        return before.busy is BusyMode.COLLECT
    return message.busy is not BusyMode.QUEUE


def place(ledger: Ledger) -> None:
    """Queued turns go to workers that can take them, first come first served, up to the number of busy seats.

    While the host is short of something they run one at a time: none makes it worse, and all get done.
    """
    state = ledger.state
    if state.draining or state.model.state is ModelState.WAITING:
        return
    if state.model.state is ModelState.FAILED:
        _fail_all(ledger)
        return
    while state.queued and free_seats(state) > 0 and (found := _next(state, ledger.now)) is not None:
        session, worker = found
        line.leave(state, session.name)
        assert session.turn is not None
        if not session.turn.has_begun:
            _join(ledger, session, session.turn)
        away_since = outages.begun(ledger, session.turn)
        turns.open_attempt(ledger, session, session.turn, worker, away_since)


def _fail_all(ledger: Ledger) -> None:
    state = ledger.state
    while state.queued:
        session = state.sessions[next(iter(state.queued))]
        line.leave(state, session.name)
        assert session.turn is not None  # a session without a turn has left the line
        turns.fail(ledger, session, session.turn, state.model.error, state.model.hint)
        open_turns(ledger)


def free_seats(state: State) -> int:
    """How many more turns may run now."""
    return (1 if state.strains else state.policy.busy_seats) - len(state.busy)


def _next(state: State, now: float) -> tuple[Session, Worker] | None:
    """The first in line for whom there is a worker and whose endpoint is not away, and that worker."""
    found = [
        (state.queued[name].rank, name, state.seat_of[name])
        for name in state.own
        if outages.may_begin(state, _agent(state, name), now)
    ]
    for agent, seats in state.unbound.items():
        name = line.first_of(state, agent) if seats and outages.may_begin(state, agent, now) else None
        if name is not None:
            found.append((state.queued[name].rank, name, next(iter(seats))))
    if not found:
        return None
    _, name, seat = min(found)
    return state.sessions[name], state.workers[seat]


def _agent(state: State, name: str) -> str:
    turn = state.sessions[name].turn
    assert turn is not None  # a session without a turn has left the line
    return turn.agent
