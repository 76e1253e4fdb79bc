"""What must hold after every step of a world, judged by what was committed and what processes really do."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from supervisor.core.agent_runtimes import is_warm
from supervisor.core.events import Event, NotTranscribed, Transcribed
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    AttemptStopped,
    AttemptStreamed,
    AttemptStuck,
    CursorMoved,
    MessageAccepted,
    MessageDropped,
    QuestionAnswered,
    QuestionAsked,
    Record,
    SessionBegun,
    SessionHeld,
    SessionReleased,
    ToolCallFinished,
    ToolCallStarted,
    TranscriptFailed,
    TranscriptReady,
    TurnDone,
    TurnFailed,
    TurnInterrupted,
    TurnJoined,
    TurnOpened,
    TurnSteered,
)
from supervisor.core.state import ModelState, Session, State, TurnState, Who, WorkerState
from tests.pretend_processes import Process

# What belongs to an attempt that runs, or has just been stopped.
_OF_AN_ATTEMPT = (
    AttemptStreamed, AttemptLost, AttemptStopped, AttemptStuck, ToolCallStarted, ToolCallFinished,
)  # fmt: skip


class Witness:
    """Has seen every committed record of all lives, and complains at the first that cannot be true."""

    def __init__(self) -> None:
        self.seqs: Counter[str] = Counter()
        self.accepted: dict[str, str] = {}  # message -> session
        self.waiting: defaultdict[str, list[str]] = defaultdict(list)  # session -> messages, in order
        self.held: set[str] = set()
        self.taken: dict[str, str] = {}  # message -> the turn it is part of
        self.dropped: set[str] = set()
        self.transcribing: set[str] = set()  # messages whose words nobody knows yet
        self.refused: set[str] = set()  # messages without words
        self.open_turns: dict[str, str] = {}  # session -> turn
        self.begun: set[str] = set()  # turns that a worker was given
        self.ended: dict[str, str] = {}  # turn -> how
        self.agents: dict[str, str] = {}  # turn -> the agent it is for
        self.wanted: dict[str, str] = {}  # message -> the agent that it names
        self.questions: dict[str, str] = {}  # session -> the question it waits for
        self.holding: set[str] = set()  # sessions whose attempt holds for the answer
        self.cursors: Counter[tuple[str, str]] = Counter()  # session and name -> seq
        self.asked: Counter[str] = Counter()  # turn -> how many questions it has asked
        self.losses: Counter[str] = Counter()  # turn -> how many attempts at it were lost
        self.newest_at = 0.0  # of all events

    def fates(self) -> dict[str, str]:
        """How each accepted message has ended so far; those without an end are left out."""
        ends = {message: self.ended[turn] for message, turn in self.taken.items() if turn in self.ended}
        gone = dict.fromkeys(self.dropped, "message.dropped")
        return ends | gone | dict.fromkeys(self.refused, "transcript.failed")

    def is_old_news(self, event: Event) -> bool:
        """Whether it tells the words of a clip that nobody waits for."""
        return isinstance(event, Transcribed | NotTranscribed) and event.message not in self.transcribing

    def saw(self, records: Iterable[Record], processes: dict[Who, Process]) -> None:
        records = list(records)
        self._check_stops(records)
        for record in records:
            if record.seq:
                self.seqs[record.session] += 1
                assert record.seq == self.seqs[record.session], f"the feed has a gap or a repeat at {record}"
                assert record.at >= self.newest_at, f"time runs backwards at {record}"
                self.newest_at = record.at
            self._saw(record, processes)

    def _check_stops(self, records: list[Record]) -> None:
        """Nobody is stopped by a message that has no words."""
        wordless = {record.message for record in records if isinstance(record, TranscriptFailed)}
        wordless |= {each.message for each in records if isinstance(each, MessageAccepted) and each.clip}
        for record in records:
            if isinstance(record, AttemptStopped | TurnInterrupted):
                by = record.by if isinstance(record, TurnInterrupted) else record.verdict.by
                assert by not in wordless | self.transcribing or _has_words(by, records), f"{record}"
            if isinstance(record, TurnInterrupted) and record.by in self.accepted:
                assert record.turn in self.begun, f"by a message, before anybody began it: {record}"

    def _saw(self, record: Record, processes: dict[Who, Process]) -> None:
        match record:
            case MessageAccepted():
                assert record.message not in self.accepted, f"accepted twice: {record}"
                self.accepted[record.message] = record.session
                self.waiting[record.session].append(record.message)
                self.wanted[record.message] = record.agent
                if record.clip:
                    self.transcribing.add(record.message)
            case TranscriptReady():
                assert record.text, f"words that are none: {record}"
                self.transcribing.remove(record.message)
            case TranscriptFailed():
                self.transcribing.remove(record.message)
                self.waiting[record.session].remove(record.message)
                self.refused.add(record.message)
            case MessageDropped():
                self.transcribing.discard(record.message)
                self.waiting[record.session].remove(record.message)
                self.dropped.add(record.message)
            case SessionBegun():
                assert record.seq == 1, f"it had begun already: {record}"
            case SessionHeld():
                assert record.session not in self.held, f"held twice: {record}"
                self.held.add(record.session)
            case SessionReleased():
                self.held.remove(record.session)
            case CursorMoved():
                place = record.session, record.cursor
                assert self.cursors[place] < record.seen, f"a cursor moves back: {record}"
                assert record.seen <= self.seqs[record.session], f"beyond the feed: {record}"
                self.cursors[place] = record.seen
            case TurnOpened():
                assert record.session not in self.open_turns, f"a second turn beside an open one: {record}"
                assert record.turn not in self.ended, f"the turn has ended before: {record}"
                self.open_turns[record.session] = record.turn
                self.agents[record.turn] = record.agent
                self._takes_first(record)
            case TurnJoined():
                self._takes_first(record)
            case TurnSteered():
                self._suits(record.turn, record.message)
                self._takes(record.session, record.turn, record.message)
            case QuestionAsked():
                self._question_asked(record)
            case QuestionAnswered():
                self._question_answered(record)
            case _ if isinstance(record, _OF_AN_ATTEMPT):
                self._of_an_attempt(record)
            case TurnDone() | TurnFailed() | TurnInterrupted():
                self._turn_ended(record)
            case AttemptOpened():
                self._attempt_opened(record, processes)

    def _takes_first(self, record: TurnOpened | TurnJoined) -> None:
        """Nobody is at the turn yet, and it takes those that have waited longest."""
        assert record.turn not in self.begun, f"it was being answered already: {record}"
        assert record.session not in self.held, f"it was held: {record}"
        first = tuple(self.waiting[record.session][: len(record.messages)])
        assert record.messages == first, f"out of order: {record}"
        for message in record.messages:
            self._suits(record.turn, message)
            self._takes(record.session, record.turn, message)

    def _suits(self, turn: str, message: str) -> None:
        """A message that names an agent is answered by it, unless it is the answer to a question."""
        assert self.wanted[message] in ("", self.agents[turn]), f"{message} goes into {turn}, not its agent's"

    def _takes(self, session: str, turn: str, message: str) -> None:
        assert self.open_turns[session] == turn, f"{message} goes into {turn}, which is not open"
        place = self.waiting[session].index(message)
        silent = self.transcribing.intersection(self.waiting[session][: place + 1])
        assert not silent, f"{message} goes into {turn} before the words of {silent} are known"
        self.waiting[session].remove(message)
        self.taken[message] = turn

    def _question_asked(self, record: QuestionAsked) -> None:
        assert record.session not in self.questions, f"two questions at once: {record}"
        assert self.open_turns[record.session] == record.turn, f"a closed turn asks: {record}"
        self.asked[record.turn] += 1
        assert record.question == f"{record.turn}#{self.asked[record.turn]}", f"out of order: {record}"
        self.questions[record.session] = record.question
        if record.hold:
            self.holding.add(record.session)

    def _question_answered(self, record: QuestionAnswered) -> None:
        assert self.questions.pop(record.session) == record.question, f"it is not open: {record}"
        assert record.is_held == self._lets_go(record), f"held or not: {record}"
        assert self.open_turns[record.session] == record.turn
        if record.message:
            self._takes(record.session, record.turn, record.message)

    def _lets_go(self, record: Record) -> bool:
        """Whether the session's attempt held for an answer until now."""
        is_held = record.session in self.holding
        self.holding.discard(record.session)
        return is_held

    def _of_an_attempt(self, record: Record) -> None:
        is_seatless = record.session in self.questions and record.session not in self.holding
        assert not is_seatless, f"while a human is waited for: {record}"
        if isinstance(record, AttemptStopped) and self._lets_go(record):
            del self.questions[record.session]
        if isinstance(record, AttemptLost):
            more = record.losses - self.losses[record.turn]
            assert more in (0, 1), f"losses are skipped: {record}"
            assert not (self._lets_go(record) and more), f"a person's slowness counts: {record}"
            self.losses[record.turn] = record.losses

    def _turn_ended(self, record: TurnDone | TurnFailed | TurnInterrupted) -> None:
        is_asking = self.questions.pop(record.session, None) is not None and not self._lets_go(record)
        assert not (is_asking and isinstance(record, TurnDone)), f"done while it asks: {record}"
        assert record.turn not in self.ended, f"the turn ends twice: {record}"
        assert self.open_turns.pop(record.session) == record.turn
        self.ended[record.turn] = record.type

    def _attempt_opened(self, record: AttemptOpened, processes: dict[Who, Process]) -> None:
        assert record.session not in self.questions, f"while a human is waited for: {record}"
        assert self.open_turns.get(record.session) == record.turn, f"an attempt at a closed turn: {record}"
        self.begun.add(record.turn)
        process = processes[record.who]
        assert process.session in (None, record.session), f"{record} by {process}, which served another one"
        assert process.agent == self.agents[record.turn], f"{record} by {process}, which is another agent's"


def check_owner(record: AttemptOpened, processes: dict[Who, Process]) -> None:
    """When an attempt is opened no other process of its session lives, nor one that is yet to be bound."""
    living = [each for each in processes.values() if not each.is_dead]
    owners = [each for each in living if record.session in (each.session, each.promised)]
    assert owners in ([], [processes[record.who]]), f"{record} while {owners} live"


def check_state(state: State) -> None:
    """The fleeting part of the state agrees with itself."""
    _check_seats(state)
    for session in state.sessions.values():
        _check_session(state, session)
    ranks = [place.rank for place in state.queued.values()]
    assert ranks == sorted(set(ranks)), f"the line is out of order: {state.queued}"
    for name in (*state.queued, *state.resting):
        assert _is_queued(state, name), f"{name} is in the line and has no turn that waits for a seat"
    assert state.waiting == sum(len(session.waiting) for session in state.sessions.values())
    seats = 1 if state.strains else state.policy.busy_seats
    may_begin = state.model.state is ModelState.READY and not state.draining
    if may_begin and len(state.busy) < seats:
        for name in state.queued:
            if not state.outages:
                _check_wait(state, name)


def check_workers(state: State, processes: dict[Who, Process]) -> None:
    """What is believed of the living processes is what they are."""
    for worker in state.workers.values():
        process = processes.get(Who(state.epoch, worker.seat, worker.incarnation))
        if process is not None and process.is_heard:
            assert (worker.agent, worker.session) == (process.agent, process.session), f"{worker}, {process}"


def _check_wait(state: State, name: str) -> None:
    """Nobody waits for a worker that is there, nor for one that is not even on its way."""
    turn = state.sessions[name].turn
    assert turn is not None
    seat = state.seat_of.get(name)
    if seat is not None:
        own = state.workers[seat]
        assert own.state is not WorkerState.IDLE or own.agent != turn.agent, f"{name} waits for {own}"
        return
    if not is_warm(state, turn.agent):
        assert turn.agent in state.runtimes.wanted, f"{name} waits for a runtime that is not asked for"
        return
    free = [each for each in state.workers.values() if each.state is WorkerState.IDLE]
    assert not any(each.session is None and each.agent == turn.agent for each in free), f"{name} waits"
    if name == next(each for each in state.queued if each not in state.seat_of):
        coming = [*state.starting, *state.dying, *state.empty]
        assert coming or not free, f"{name} is first in line, and {free} are left idle"


def _check_seats(state: State) -> None:
    workers = state.workers.values()

    def seats(*states: WorkerState) -> set[int]:
        return {each.seat for each in workers if each.state in states}

    assert set(state.starting) == seats(WorkerState.STARTING)
    assert set(state.idle) == seats(WorkerState.IDLE)
    assert set(state.dying) == seats(WorkerState.DYING)
    assert set(state.empty) | set(state.vacant) == seats(WorkerState.RESTING, WorkerState.FAILED)
    assert not state.vacant or not is_warm(state, DEFAULT_AGENT), f"{state.vacant} are left without a process"
    busy = seats(WorkerState.BUSY)
    assert set(state.busy) == {each.seat for each in workers if each.seat in busy and each.turn is not None}
    bound = {each.seat for each in workers if each.session is not None}
    assert set(state.bound) == bound & (busy | seats(WorkerState.IDLE))
    unbound = {(agent, seat) for agent, found in state.unbound.items() for seat in found}
    assert unbound == {(each.agent, each.seat) for each in workers if each.seat in set(state.idle) - bound}
    assert state.seat_of == {each.session: each.seat for each in workers if each.session is not None}
    assert len(state.seat_of) == len(bound), "two workers on one session"
    _check_size_of_the_pool(state)
    for worker in workers:
        session = state.sessions.get(worker.session) if worker.session is not None else None
        if worker.turn is not None and not state.draining:
            assert session is not None, f"{worker} works for a session at rest"
            assert session.turn is not None
            assert session.turn.attempt is not None
            assert session.turn.attempt.who.incarnation == worker.incarnation


def _check_size_of_the_pool(state: State) -> None:
    """As many workers as are wanted; more only as long as it takes to end a turn, or to die."""
    policy = state.policy
    wanted = policy.busy_seats + policy.spares + state.spares_more
    assert 0 <= state.spares_more <= max(0, policy.busy_seats - policy.spares)
    assert len(state.workers) >= wanted, f"{len(state.workers)} workers where {wanted} are wanted"
    at_leisure = [each for each in state.workers.values() if each.state is not WorkerState.DYING]
    if any(each.state is not WorkerState.BUSY for each in at_leisure):
        assert len(at_leisure) <= wanted, f"{len(at_leisure)} workers where {wanted} are wanted"


def _check_session(state: State, session: Session) -> None:
    assert len(session.waiting) <= state.policy.waiting_max, f"too many wait in {session.name}"
    if session.held:
        assert session.waiting, f"{session.name} holds nothing"
    if session.turn is None and session.waiting and not (session.held or session.waiting[0].is_transcribing):
        assert state.draining, f"{session.name} is free, has messages, and opened no turn"
        assert session.name in state.openable
    turn = session.turn
    if turn is not None and turn.is_held:
        assert turn.attempt is not None
        assert turn.attempt.verdict is None, f"{turn.id} holds and is stopped"
        assert turn.started_at is None, f"the clock of {turn.id} runs while a person is asked"
    elif turn is not None and turn.question is not None:
        assert turn.state is TurnState.ASKING, f"{turn.id} asks and runs"
        assert session.name not in state.queued, f"{turn.id} asks and queues"
        at_work = [each.session for each in state.workers.values() if each.turn is not None]
        assert session.name not in at_work or state.draining, f"{turn.id} has a seat"
    elif turn is not None and turn.attempt is None and not state.draining:
        assert (session.name in state.queued) != (session.name in state.resting), f"{turn.id} is on no road"


def _has_words(message: str, records: list[Record]) -> bool:
    return any(isinstance(record, TranscriptReady) and record.message == message for record in records)


def _is_queued(state: State, name: str) -> bool:
    session = state.sessions.get(name)
    found = session.turn if session else None
    return found is not None and found.state is TurnState.QUEUED
