"""The engine of a simulated world: the production decider and rules, a journal in memory, a pretend clock.

What `supervisor/engine.py` does with an event loop is done here by hand, one batch at a time: take,
commit, perform. The decider's outputs end in pretend processes. Whatever must hold is checked after every
decision, at every effect and after every batch.

What happens is true from the moment it is decided, not from the moment it is posted. So within a batch every
decision is judged by what was true then, though nothing of the batch is performed yet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from supervisor.core import events
from supervisor.core.decide import decide
from supervisor.core.effects import (
    Answer,
    AnswerTurn,
    AssignTurn,
    BindWorker,
    Decision,
    Effect,
    ForgetClip,
    KillWorker,
    StartWorker,
    SteerTurn,
    Transcribe,
    WarmRuntime,
)
from supervisor.core.policy import Policy
from supervisor.core.records import AttemptOpened, Record, TurnOpened
from supervisor.core.state import ModelState, Orphan, State, Who
from supervisor.decider import RETRY_SECONDS, Decided, Decider
from supervisor.event_queue import EventQueue
from supervisor.journal.snapshot import durable
from supervisor.performer import perform
from tests.effect_invariants import check_clip, check_effect, check_named, named
from tests.invariants import Witness, check_owner, check_state, check_workers
from tests.memory_journal import MemoryJournal
from tests.no_containment import uncontained
from tests.order_invariants import Queue, check_losses, check_timers
from tests.pretend_processes import Process, is_stale, promise
from tests.twin_journals import TwinJournals

# Small, so that what gathers needs several batches.
_BATCH_MAX = 4
# How a life begins in which no process of the one before is left.
_SWEPT = events.Recovered()
Journal = MemoryJournal | TwinJournals
_E = TypeVar("_E", bound=events.Event)


@dataclass(frozen=True)
class Step:
    """One thing that happened and what the rules made of it."""

    event: events.Event
    decision: Decision


class Clockwork:
    """Lets events happen; `processes` is what the machine knows of them, whatever the supervisor believes."""

    _batch: list[Decision]
    _answers: list[Answer]
    # Processes and clips that came to their end within the batch: its effects may be too late for them.
    _late: set[Who | str]

    def __init__(self, policy: Policy | None = None, journal: Journal | None = None) -> None:
        self.policy = policy or Policy()
        self.journal = journal or MemoryJournal()
        self.now = 1000.0
        self.witness = Witness()
        self.steps: list[Step] = []
        self.batches: list[int] = []  # how many steps each had
        self.processes: dict[Who, Process] = {}
        self.stt: set[str] = set()  # messages whose clips this life has given to be transcribed
        self.elsewhere: set[str] = set()  # sessions that another host has
        self.model = events.ModelChanged(ModelState.READY)
        self.runtimes: dict[str, str] = {}  # of agents with their own: what was asked of them last
        self._messages = 0
        self._calls = 0
        self._load()
        self._begin()

    # --- the driver -----------------------------------------------------------------------------------------

    def tell(self, event: events.Event) -> Decision:
        """Let one thing happen, in a batch of its own."""
        self.tell_together(event)
        return self.steps[-1].decision

    def tell_together(self, *happened: events.Event) -> None:
        """Let several things happen before the supervisor looks."""
        self.post(*happened)
        self.step()

    def step(self) -> None:
        """Decide, commit and perform until nothing urgent is left; with nothing posted, time has passed."""
        self._commit(self._take())
        self._written()
        if self.is_urgent:
            self.step()

    def tell_while_the_disk_is_full(
        self, first: events.Event, seconds: float, meanwhile: Sequence[events.Event]
    ) -> None:
        """The commit is refused until so many seconds have passed; the rest happens in that time."""
        self.post(first)
        records = self._take()
        if records:
            until, before = self.now + seconds, repr(self.state)
            while self.now < until:
                self._decider.refused("the disk is full", "make room")
                self.post(*meanwhile)
                meanwhile = ()
                self._pulse_in_vain()
                self.now += RETRY_SECONDS
            assert repr(self.state) == before, "something was decided while a commit was refused"
            assert self._decider.trouble is not None
        self._commit(records)
        self._written()
        assert self._decider.trouble is None
        self.post(*meanwhile)
        self.step()

    def _pulse_in_vain(self) -> None:
        """Signs of life that come while nothing is decided are dropped: they may be many."""
        for who in list(self.processes):
            self._queue.post(events.WorkerAlive(who, "pulse"))

    def tell_then_crash_uncommitted(self, *happened: events.Event) -> None:
        """The supervisor dies between decision and commit: nobody was told anything."""
        self.post(*happened)
        self._take()
        self._begin_next_life()

    def tell_then_crash_unperformed(self, *happened: events.Event) -> None:
        """The supervisor dies right after the commit: what it would have done is never done."""
        self.post(*happened)
        self._commit(self._take())
        self._begin_next_life()

    @property
    def is_urgent(self) -> bool:
        return self._queue.is_urgent

    def post(self, *happened: events.Event) -> None:
        """By the ways of the engine: words are held, an interrupt is asked late what it is."""
        if any(map(self._is_echo, happened)) and self._is_resting:
            self.step()  # What is due anyway is not the echo's doing.
        for event in happened:
            assert not isinstance(event, events.Ticked | events.StoodStill), "the decider makes these itself"
            is_dropped = self._decider.trouble and isinstance(event, events.WorkerAlive | events.HostRead)
            self._pending += not is_dropped
            match event:
                case events.TextStreamed():
                    self._queue.post(_giving(event), can_wait=True)
                case events.InterruptAsked():
                    self._queue.post(_giving(event), self._answered)
                case _:
                    self._queue.post(event, self._answered)

    def _take(self) -> list[Record]:
        self._batch, self._late = [], set()
        self._is_resting, self._is_committed = False, False
        records = self._decider.take()
        assert len(self._batch) <= _BATCH_MAX + 1, "a batch without bound"  # one more for a stall
        assert records == [record for decision in self._batch for record in decision.records]
        return records

    def _commit(self, records: Sequence[Record]) -> None:
        if records:
            self.journal.commit_now(records)
        gone = self.witness.dropped | self.witness.refused
        for decision in self._batch:
            self.witness.saw(decision.records, self.processes)
        self._late |= (self.witness.dropped | self.witness.refused) - gone
        self._is_committed = True

    def _written(self) -> None:
        self._answers = []
        perform(self._decider.written(), self)
        self._decider.performed()
        self._is_resting = True
        here = {
            each for each in self.witness.transcribing if self.witness.accepted[each] not in self.elsewhere
        }
        assert self.stt == here, "a clip that nobody transcribes, or for nobody"
        check_state(self.state)
        check_workers(self.state, self.processes)
        remembered = self._own(self.journal.load(self.policy))
        assert durable(self.state) == durable(remembered), "the journal remembers otherwise"
        for name, session in self.state.sessions.items():
            assert session.seq == self.witness.seqs[name]

    # --- the rules, watched ---------------------------------------------------------------------------------

    def _decide(self, state: State, event: events.Event, now: float) -> Decision:
        """An echo must change nothing at all."""
        self._pending -= not isinstance(event, events.Ticked | events.StoodStill)
        is_old = self._is_echo(event)
        before = repr(state) if is_old else ""
        if not is_old:
            self._make_true(event)
        self._turns_queued.look(state)
        decision = decide(state, event, now)
        self._turns_queued.check(state, decision)
        check_losses(state, decision)
        check_timers(state)
        if is_old:
            assert decision == Decision((), (), None), f"{event} is an echo, yet {decision}"
            assert repr(state) == before, f"{event} is an echo, yet the state changed"
        self._check_nothing_starts_in_vain(decision)
        for record in decision.records:
            if isinstance(record, AttemptOpened):
                check_owner(record, self.processes)
        for effect in decision.effects:
            check_named(state, effect)
            promise(effect, state.epoch, self.processes)
        self._batch.append(decision)
        return decision

    def _is_echo(self, event: events.Event) -> bool:
        return is_stale(event, self.state.epoch, self.processes) or self.witness.is_old_news(event)

    def _check_nothing_starts_in_vain(self, decision: Decision) -> None:
        begun = {type(record) for record in decision.records} & {TurnOpened, AttemptOpened}
        assert not (begun and self.state.draining), f"begun while draining: {decision}"
        if AttemptOpened in begun:
            seats = 1 if self.state.strains else self.state.policy.busy_seats
            assert len(self.state.busy) <= seats, f"begun without a seat: {decision}"
        self._check_one_probe_at_a_time(decision)
        if self.state.model.state is not ModelState.READY:
            needs = {effect.agent for effect in decision.effects if isinstance(effect, AssignTurn)}
            needs -= self.state.policy.own_model
            assert not needs, f"begun without a model: {decision}"

    def _check_one_probe_at_a_time(self, decision: Decision) -> None:
        """Only the probe of an endpoint that is away asks it."""
        for effect in decision.effects:
            if isinstance(effect, AssignTurn):
                outages, endpoints = self.state.outages, self.state.policy.endpoints_of(effect.agent)
                assert effect.away == tuple(each for each in endpoints if each in outages), f"{effect}"
                asked = next((each for each in endpoints if each not in effect.away), None)
                assert asked or effect.probe, f"{effect} has no endpoint to ask"
                if effect.probe:
                    outage = outages[effect.probe]
                    assert asked is None or endpoints.index(effect.probe) < endpoints.index(asked)
                    assert outage.probe == (effect.turn, effect.attempt), f"{effect}, {outage}"
                    assert outage.probe_at <= self.now, f"{effect} is early: {outage}"

    # --- what the decider tells, and the actions of a batch ------------------------------------------------

    def all_taken(self) -> None:
        assert not self._pending, "workers would be told that a frame is safe which was not decided"

    def committed(self, seconds: float, count: int) -> None:
        assert self._is_committed
        assert count
        assert seconds >= 0

    def _answered(self, answer: Answer) -> None:
        assert self._is_committed, f"{answer} before the commit"
        self._answers.append(answer)

    def publish(self, records: Sequence[Record]) -> None:
        """Everybody who asked has been answered by then."""
        assert self._is_committed, "published before the commit"
        assert self._answers == [each.answer for each in self._batch if each.answer is not None]

    def flush(self) -> None:
        assert self._is_committed, "sent before the commit"

    def acknowledge(self) -> None:
        assert self._is_committed, "acknowledged before the commit"

    def decided(self, batch: Decided) -> None:
        assert [decision for _, decision, _ in batch] == self._batch
        self.batches.append(len(batch))
        self.steps += [Step(event, decision) for event, decision, _ in batch]

    def act(self, effect: Effect) -> None:
        assert self._is_committed, f"{effect} before the commit"
        if isinstance(effect, Transcribe | ForgetClip):
            check_clip(effect, self.witness, self.stt, self._late)
            (self.stt.add if isinstance(effect, Transcribe) else self.stt.discard)(effect.message)
            return
        if isinstance(effect, WarmRuntime):
            assert effect.agent in self.state.policy.apart, f"{effect} of the common runtime"
            self.runtimes[effect.agent] = "wanted"
            return
        check_effect(self.state, effect, self.witness, self.processes, self._late)
        who = named(self.state, effect)
        match effect:
            case StartWorker():
                self.processes[who] = Process(who, effect.agent)
            case KillWorker():
                self.processes[who].is_killed = True
                self._late.add(who)
            case BindWorker():
                self.processes[who].session = effect.session
            case AssignTurn():
                process = self.processes[who]
                process.job, process.is_ready, process.offers = effect, False, []
                process.calls, process.holds, process.answered = set(), set(), set()
                process.jobs.append(effect)
            case SteerTurn():
                self.processes[who].offers.append(effect)
            case AnswerTurn():
                self.processes[who].holds.discard(effect.hold)

    # --- lives ----------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """What the next life, or the next image, finds on disk; nothing has happened in it."""
        self.state = self._own(self.journal.load(self.policy))
        self._pending = 0  # events that were posted and are not decided
        self._batch, self._answers, self._late = [], [], set()
        self._is_resting, self._is_committed = True, False
        self._queue = EventQueue(lambda: self.now)
        self._turns_queued = Queue()
        self._decider = Decider(
            self.state,
            self._queue,
            now=lambda: self.now,
            journal=self.journal,
            outputs=self,
            contain=uncontained(),
            rules=self._decide,
            batch_max=_BATCH_MAX,
        )

    def _own(self, state: State) -> State:
        for name in self.elsewhere:
            state.sessions.pop(name, None)
        return state

    def _begin(self, recovered: events.Recovered = _SWEPT) -> None:
        self.tell(recovered)
        if self.model.state is not ModelState.WAITING:
            self.tell(self.model)

    def _begin_next_life(self, stuck: Sequence[Process] = ()) -> None:
        """Of the processes that are `stuck` something is left, and known by another fence from now on."""
        for process in self.processes.values():
            process.is_dead = True
        self.stt.clear()
        self.journal.new_life()
        self._load()
        left = []
        for seat, process in enumerate(stuck):
            who = Who(self.state.epoch, seat, seat + 1)
            self.processes[who] = Process(who, process.agent, process.session, is_killed=True)
            left.append(Orphan(seat, seat + 1, process.session, 1, "it waits in the kernel"))
        self._begin(events.Recovered(left=tuple(left)))

    def _make_true(self, event: events.Event) -> None:
        """What a report says has happened, whatever the supervisor makes of it."""
        match event:
            case events.WorkerDied():
                who = Who(self.state.epoch, event.seat, event.incarnation)
                self.processes[who].is_ready = False
                if event.proof.all_dead:
                    self.processes[who].is_dead = True
                else:
                    # Something of it may run: no other process may have its session until the proof comes.
                    self.processes[who].is_unproved = True
                self._late.add(who)
            case events.Transcribed() | events.NotTranscribed():
                self.stt.discard(event.message)
                self._late.add(event.message)
            case events.WorkerReady():
                self.processes[event.who].is_ready = self.processes[event.who].job is None
            case events.ToolStarted():
                self.processes[event.who].calls.add(event.call)
            case events.ToolFinished():
                self.processes[event.who].calls.discard(event.call)
            case events.Asked() if event.hold:
                self.processes[event.who].holds.add(event.hold)
            case events.Finished() | events.Failed() | events.Asked():
                self.processes[event.who].job = None
                self._late.add(event.who)


def _giving(event: _E) -> Callable[[], _E]:
    return lambda: event
