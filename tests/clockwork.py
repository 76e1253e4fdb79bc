"""The engine of a world: the real rules and a journal in memory, in the engine's order, on a pretend clock.

Wake, decide, commit, act, put to rest. Whatever must hold is checked after every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from supervisor.core import events
from supervisor.core.decide import decide
from supervisor.core.effects import (
    AssignTurn,
    BindWorker,
    Decision,
    Effect,
    ForgetClip,
    KillWorker,
    StartWorker,
    SteerTurn,
    Transcribe,
)
from supervisor.core.inbox import put_to_rest
from supervisor.core.policy import Policy
from supervisor.core.records import AttemptOpened, TurnOpened
from supervisor.core.state import Leftover, ModelState, Who
from supervisor.journal.memory import MemoryJournal
from supervisor.journal.snapshot import durable
from tests.pretend_processes import Process, is_echo
from tests.witness import Witness, check_clip, check_effect, check_state, check_workers, named

_ABOUT_SESSIONS = (
    events.TextArrived,
    events.VoiceArrived,
    events.InterruptAsked,
    events.DropAsked,
    events.ResumeAsked,
    events.EventsSeen,
)
# How a life begins in which no process of the one before is left.
_SWEPT = events.Recovered()


@dataclass(frozen=True)
class Step:
    """One thing that happened and what the rules made of it."""

    event: events.Event
    decision: Decision


class Clockwork:
    """Lets events happen; `processes` is what the machine knows of them, whatever the supervisor believes."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.journal = MemoryJournal()
        self.now = 1000.0
        self.witness = Witness()
        self.steps: list[Step] = []
        self.processes: dict[Who, Process] = {}
        self.ears: set[str] = set()  # messages whose clips this life has given to be transcribed
        self.model = events.ModelChanged(ModelState.READY)
        self._messages = 0
        self._calls = 0
        self.state = self.journal.load(self.policy)
        self._begin()

    def tell(self, event: events.Event) -> Decision:
        """Let something happen. An echo must change nothing at all."""
        if not (is_echo(event, self.state.epoch, self.processes) or self.witness.is_old_news(event)):
            self._make_true(event)
            return self._step(event)
        self._step(events.Ticked())  # What is due anyway is not the echo's doing.
        before = repr(self.state)
        decision = self._step(event)
        assert decision == Decision((), (), None), f"{event} is an echo, yet {decision}"
        assert repr(self.state) == before, f"{event} is an echo, yet the state changed"
        return decision

    def tell_then_crash_uncommitted(self, event: events.Event) -> None:
        """The supervisor dies between decision and commit: nobody was told anything."""
        self._decide(event)
        self._begin_next_life()

    def tell_then_crash_unperformed(self, event: events.Event) -> None:
        """The supervisor dies right after the commit: what it would have done is never done."""
        self._make_true(event)
        decision = self._decide(event)
        self._commit(decision)
        self._begin_next_life()

    def _step(self, event: events.Event) -> Decision:
        decision = self._decide(event)
        self._commit(decision)
        for effect in decision.effects:
            self._perform(effect)
        assert self.ears == self.witness.transcribing, "a clip that nobody transcribes, or for nobody"
        put_to_rest(self.state, {record.session for record in decision.records} | _asked_about(event))
        self.steps.append(Step(event, decision))
        self._check_nothing_starts_in_vain(decision)
        check_state(self.state)
        check_workers(self.state, self.processes)
        remembered = self.journal.load(self.policy)
        assert durable(self.state) == durable(remembered), "the journal remembers otherwise"
        for name, session in self.state.sessions.items():
            assert session.seq == self.witness.seqs[name]
        return decision

    def _check_nothing_starts_in_vain(self, decision: Decision) -> None:
        begun = {type(record) for record in decision.records} & {TurnOpened, AttemptOpened}
        assert not (begun and self.state.draining), f"begun while draining: {decision}"
        if AttemptOpened in begun:
            seats = 1 if self.state.strains else self.state.policy.busy_seats
            assert len(self.state.busy) <= seats, f"begun without a seat: {decision}"
        self._check_one_probe_at_a_time(decision)
        if self.state.model.state is not ModelState.READY:
            assert AttemptOpened not in begun, f"begun without a model: {decision}"

    def _check_one_probe_at_a_time(self, decision: Decision) -> None:
        """Only the probe of an endpoint that is away asks it."""
        for effect in decision.effects:
            if isinstance(effect, AssignTurn):
                outage = self.state.outages.get(self.state.policy.endpoint_of(effect.agent))
                assert (outage is None) == (effect.away_since is None), f"{effect}, {outage}"
                if outage is not None:
                    assert outage.probe == (effect.turn, effect.attempt), f"{effect}, {outage}"
                    assert outage.probe_at <= self.now, f"{effect} is early: {outage}"

    def _decide(self, event: events.Event) -> Decision:
        for name in _asked_about(event):
            session = self.journal.wake(name) if name not in self.state.sessions else None
            if session is not None:
                self.state.sessions[name] = session
        if isinstance(event, events.TextArrived | events.VoiceArrived):
            event = replace(event, known=self.journal.known(event.message))
        elif isinstance(event, events.EventsSeen):
            cursors = self.journal.cursors(event.session)
            event = replace(event, stands_at=cursors.get(event.cursor, 0), cursors=len(cursors))
        return decide(self.state, event, self.now)

    def _commit(self, decision: Decision) -> None:
        if decision.records:
            self.journal.commit_now(decision.records)
        self.witness.saw(decision.records, self.processes)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Transcribe | ForgetClip):
            check_clip(effect, self.witness, self.ears)
            self.ears ^= {effect.message}
            return
        check_effect(self.state, effect, self.witness, self.processes)
        who = named(self.state, effect)
        match effect:
            case StartWorker():
                self.processes[who] = Process(who, effect.agent)
            case KillWorker():
                self.processes[who].is_killed = True
            case BindWorker():
                self.processes[who].session = effect.session
            case AssignTurn():
                process = self.processes[who]
                process.job, process.is_ready, process.offers = effect, False, []
                process.calls = set()
                process.jobs.append(effect)
            case SteerTurn():
                self.processes[who].offers.append(effect)

    def _begin(self, recovered: events.Recovered = _SWEPT) -> None:
        self.tell(recovered)
        if self.model.state is not ModelState.WAITING:
            self.tell(self.model)

    def _begin_next_life(self, stuck: Sequence[Process] = ()) -> None:
        """Of the processes that are `stuck` something is left, and known by another fence from now on."""
        for process in self.processes.values():
            process.is_dead = True
        self.ears.clear()
        self.journal.new_life()
        self.state = self.journal.load(self.policy)
        left = []
        for seat, process in enumerate(stuck):
            who = Who(self.state.epoch, seat, seat + 1)
            self.processes[who] = Process(who, process.agent, process.session, is_killed=True)
            left.append(Leftover(seat, seat + 1, process.session, 1, "it waits in the kernel"))
        self._begin(events.Recovered(left=tuple(left)))

    def _make_true(self, event: events.Event) -> None:
        """What a report says has happened, whatever the supervisor makes of it."""
        match event:
            case events.WorkerDied():
                process = self.processes[Who(self.state.epoch, event.seat, event.incarnation)]
                process.is_dead, process.is_ready = True, False
            case events.Transcribed() | events.NotTranscribed():
                self.ears.discard(event.message)
            case events.WorkerReady():
                self.processes[event.who].is_ready = self.processes[event.who].job is None
            case events.ToolStarted():
                self.processes[event.who].calls.add(event.call)
            case events.ToolFinished():
                self.processes[event.who].calls.discard(event.call)
            case events.Finished() | events.Failed() | events.Asked():
                self.processes[event.who].job = None


def _asked_about(event: events.Event) -> set[str]:
    return {event.session} if isinstance(event, _ABOUT_SESSIONS) else set()
