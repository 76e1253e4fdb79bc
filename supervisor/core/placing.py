"""Placing, two steps of every decision: open turns where sessions are free, place them on workers.

A worker serves one session of one agent. So a turn is placed on its session's own worker, if that is idle,
and otherwise, if the session has none, on a worker of its agent that has no session yet. Of the turns for
which there is such a worker the first in the queue is placed; the others keep their place and delay none. A
session whose worker is busy with the end of a turn, or dying, waits for it: it never has two workers.

A turn answers the first message that waits, and those behind it that belong with it: a message in interrupt
or steer mode goes with the one before it, collected ones go together; one that wants another agent opens a
turn of its own. A message that arrives while a turn is queued waits, and joins it by the same rule when the
turn begins. So a message is never interrupted before its
turn has begun, and the order of arrival is kept (docs/decisions/0004).

Invariants: a session has at most one open turn. At most `free_seats` turns are placed, one while the host is
under a strain. No turn begins while the service drains, or while the model that its agent needs is not ready.
"""

from collections import deque

from supervisor.core import line, outages, pool, time_limits, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import AssignTurn, BindWorker
from supervisor.core.records import AttemptOpened, TurnJoined, TurnOpened
from supervisor.core.state import (
    Attempt,
    BusyMode,
    Message,
    ModelState,
    Session,
    State,
    Turn,
    Worker,
    WorkerState,
    turn_id,
)

# Limit of characters that one turn answers together. A character has four bytes at most, so they fit the
# Assign of the turn (supervisor/workers/assignment.py), and no message is cut.
_TOGETHER_CHARACTERS_MAX = 1_000_000


def open_turns(draft: Draft) -> None:
    """Open a turn in each free session with a waiting message, in the order in which they became free."""
    state = draft.state
    if state.draining:
        return
    while state.openable:
        name = next(iter(state.openable))
        del state.openable[name]
        session = state.sessions.get(name)
        while session and session.turn is None and not session.held and _has_words(session.waiting):
            _open(draft, session)


def _has_words(waiting: deque[Message]) -> bool:
    """No message overtakes a clip that is being transcribed."""
    return bool(waiting) and not waiting[0].is_transcribing


def _open(draft: Draft, session: Session) -> None:
    first = session.waiting[0]
    line.take(draft.state, session, first)
    agent = first.agent or draft.state.policy.agent_of(session.name)
    messages = (first, *_together(draft, session, (first,), agent))
    session.turns += 1
    turn = Turn(turn_id(session.name, session.turns), session.name, messages, draft.now, agent)
    turn.content_at = max(message.at for message in messages)
    session.turn = turn
    ids = tuple(message.id for message in messages)
    draft.tell(session, TurnOpened, turn=turn.id, number=session.turns, agent=agent, messages=ids)
    line.join(draft.state, session.name, draft.now)


def _join(draft: Draft, session: Session, turn: Turn) -> None:
    """The turn is about to begin: it also answers messages that came since it was opened."""
    messages = _together(draft, session, turn.messages, turn.agent)
    if messages:
        turn.messages += messages
        turn.content_at = max(message.at for message in messages)
        ids = tuple(message.id for message in messages)
        draft.tell(session, TurnJoined, turn=turn.id, messages=ids)


def _together(
    draft: Draft, session: Session, answered: tuple[Message, ...], agent: str
) -> tuple[Message, ...]:
    """Take the waiting messages that belong with messages whose turn has not begun.

    One that wants another agent than that of the turn ends the row.
    """
    last, found = answered[-1], list[Message]()
    room = _TOGETHER_CHARACTERS_MAX - sum(len(message.text) for message in answered)
    while _has_words(session.waiting) and _go_together(last, session.waiting[0]):
        last = session.waiting[0]
        room -= len(last.text)
        if room < 0 or last.agent not in ("", agent):
            break
        line.take(draft.state, session, last)
        found.append(last)
    return tuple(found)


def _go_together(before: Message, message: Message) -> bool:
    """Return whether a message is answered with the one before it; otherwise it opens its own turn."""
    if message.busy is BusyMode.COLLECT:
        return before.busy is BusyMode.COLLECT
    return message.busy is not BusyMode.QUEUE


def place(draft: Draft) -> None:
    """Place queued turns on workers, in queue order, up to the number of busy seats.

    While the host is under a strain one turn runs at a time: none makes it worse, and all get done.
    """
    state = draft.state
    if state.draining:
        return
    if state.model.state is ModelState.FAILED:
        _fail_all(draft)
    while state.queued and free_seats(state) > 0 and (found := _next(state, draft.now)) is not None:
        session, worker = found
        line.leave(state, session.name)
        assert session.turn is not None
        if not session.turn.has_begun:
            _join(draft, session, session.turn)
        open_attempt(draft, session, session.turn, worker, *outages.begun(draft, session.turn))


def open_attempt(
    draft: Draft, session: Session, turn: Turn, worker: Worker, away: tuple[str, ...] = (), probe: str = ""
) -> None:
    """Give the turn to an idle worker of its agent: the session's own, or one that has no session yet.

    `away` are its agent's endpoints that are away; it tries one of them, the `probe`, or none.
    """
    turn.attempts += 1
    number, who = turn.attempts, pool.fence(draft.state, worker)
    turn.attempt = Attempt(number, who, draft.now, worker.level)
    turn.attempt.endpoint = next(iter(draft.state.policy.endpoints_of(turn.agent)), "")
    if worker.session is None:
        _bind(draft, worker, session.name)
    worker.state, worker.turn = WorkerState.BUSY, turn.id
    pool.index(draft.state, worker)
    draft.tell(
        session, AttemptOpened, turn=turn.id, attempt=number, who=who, pid=worker.pid, level=worker.level
    )
    assigned = (who, session.name, turn.id, number, turn.agent, turn.messages)
    draft.perform(AssignTurn(*assigned, len(turn.earlier_text), away, probe))
    for message in turns.with_words(session.waiting):
        turns.steer(draft, turn, message)
    time_limits.watch(draft, session, turn)


def _bind(draft: Draft, worker: Worker, session: str) -> None:
    """Bind the process to this session until it ends; no other process serves the session."""
    state = draft.state
    worker.session = session
    state.seat_of[session] = worker.seat
    state.agents_used.pop(worker.agent, None)
    state.agents_used[worker.agent] = None
    draft.perform(BindWorker(pool.fence(state, worker), session))


def _fail_all(draft: Draft) -> None:
    """Fail the queued turns that need the model, and those that are opened then."""
    state = draft.state
    own = state.policy.own_model
    while name := next((name for name in state.queued if _agent(state, name) not in own), None):
        session = state.sessions[name]
        line.leave(state, name)
        assert session.turn is not None  # a session without a turn is not in the queue
        turns.fail(draft, session, session.turn, state.model.error, state.model.hint)
        open_turns(draft)


def free_seats(state: State) -> int:
    """Return how many more turns may run now."""
    return (1 if state.strains else state.policy.busy_seats) - len(state.busy)


def may_begin(state: State, agent: str, now: float) -> bool:
    """Return whether the model that this agent needs, if any, allows a turn of it to begin."""
    is_ready = state.model.state is ModelState.READY or agent in state.policy.own_model
    return is_ready and outages.may_begin(state, agent, now)


def _next(state: State, now: float) -> tuple[Session, Worker] | None:
    """Return the first queued session with a worker and an available endpoint, and that worker."""
    found = [
        (state.queued[name].rank, name, state.seat_of[name])
        for name in state.own
        if may_begin(state, _agent(state, name), now)
    ]
    for agent, seats in state.unbound.items():
        name = line.first_of(state, agent) if seats and may_begin(state, agent, now) else None
        if name is not None:
            found.append((state.queued[name].rank, name, next(iter(seats))))
    if not found:
        return None
    _, name, seat = min(found)
    return state.sessions[name], state.workers[seat]


def _agent(state: State, name: str) -> str:
    turn = state.sessions[name].turn
    assert turn is not None  # a session without a turn is not in the queue
    return turn.agent
