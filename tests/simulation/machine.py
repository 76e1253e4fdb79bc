"""A cruel world, played by hypothesis: anything may happen at any time, twice, late, or in another life.

The world checks what must hold after every step. Left alone in the end, every accepted message must end.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from supervisor.core.decide import decide
from supervisor.core.effects import Carried, Decision, Denied, Taken
from supervisor.core.events import (
    AnswerArrived,
    Asked,
    DrainAsked,
    Event,
    Failed,
    Finished,
    InterruptAsked,
    Noted,
    RenewalAsked,
    Spoke,
    Steered,
    TextArrived,
    Ticked,
    ToolFinished,
    ToolStarted,
    Transcribed,
    VoiceArrived,
    WorkerAlive,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
    WorkerUnreachable,
)
from supervisor.core.model import BusyMode, ModelState, Policy, Proof, Who, session_of
from supervisor.core.records import MessageAccepted
from tests.simulation.kindness import be_kind, left_alone
from tests.witness import Process
from tests.world import World

SESSIONS = st.sampled_from(["s", "t", "u"])
BUSY = st.sampled_from([mode.value for mode in BusyMode])
ANSWERS = st.sampled_from(["yes", " Yes\n", "no", "words"])
MODELS = st.sampled_from([state.value for state in ModelState])
# Short, just over each of the policy's limits, and long enough for everything to be overdue.
SECONDS = st.sampled_from([0.1, 0.3, 1.0, 4.0, 6.0, 11.0, 31.0, 101.0])
POLICIES = st.builds(
    Policy,
    busy_seats=st.integers(1, 2),
    spares=st.integers(0, 1),
    turns_per_worker_max=st.sampled_from([1, 2, 200]),
    attempts_max=st.integers(1, 3),
    waiting_max=st.sampled_from([2, 5, 100]),
    queue_max=st.sampled_from([3, 100]),
    memory_free_bytes_min=st.just(100 * 1024 * 1024),
    resume=st.sampled_from(["auto", "auto", "never", "ask"]),
    freshness_seconds=st.sampled_from([50.0, 3600.0]),
    deadline_seconds=st.just(100.0),
    # Not a whole number, as a person may write it: sums of such times are rounded.
    silence_seconds=st.just(30.3),
    start_seconds=st.just(10.1),
    pulse_seconds=st.just(5.7),
    rest_seconds_max=st.just(4.0),
    starts_failed_max=st.just(3),
)


class Cruelty(RuleBasedStateMachine):
    """Every rule is something that happens to the supervisor."""

    world: World

    @initialize(policy=POLICIES)
    def begin(self, policy: Policy) -> None:
        self.world = World(policy)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            left_alone(self.world)

    # --- people ---------------------------------------------------------------------------------------------

    @rule(session=SESSIONS, text=ANSWERS, busy=BUSY)
    def says(self, session: str, text: str, busy: str) -> None:
        message = self.world.says(session, text, busy)
        answer = self.world.steps[-1].decision.answer
        assert isinstance(answer, Taken | Denied)
        assert isinstance(answer, Taken) == (message in self.world.witness.accepted)

    @precondition(lambda self: self.world.witness.accepted)
    @rule(data=st.data(), busy=BUSY)
    def says_it_again(self, data: st.DataObject, busy: str) -> None:
        """The same text under a known key is known; another one, or a text in the place of a clip, is not."""
        accepted = self.world.witness.accepted
        message = data.draw(st.sampled_from(list(accepted)))
        known = self.world.journal.known(message)
        assert known is not None
        text = data.draw(st.sampled_from([known.text or "words", "other words"]))
        self.world.says(accepted[message], text, busy, id=message)
        decision = self.world.steps[-1].decision
        if text == known.text:
            assert isinstance(decision.answer, Taken)
            assert decision.answer.again
        else:
            assert isinstance(decision.answer, Denied)
            assert not any(isinstance(record, MessageAccepted) for record in decision.records)

    @rule(session=SESSIONS, busy=BUSY)
    def speaks_clip(self, session: str, busy: str) -> None:
        """Nothing is done by it yet: whoever runs goes on."""
        busy_before = set(self.world.state.busy)
        message = self.world.speaks_clip(session, busy)
        decision = self.world.steps[-1].decision
        assert isinstance(decision.answer, Taken) == (message in self.world.witness.accepted)
        assert set(self.world.state.busy) >= busy_before

    @precondition(lambda self: self.world.ears)
    @rule(data=st.data(), text=ANSWERS)
    def understands(self, data: st.DataObject, text: str) -> None:
        self.world.understands(data.draw(st.sampled_from(sorted(self.world.ears))), text)

    @precondition(lambda self: self.world.ears)
    @rule(data=st.data())
    def does_not_understand(self, data: st.DataObject) -> None:
        self.world.does_not_understand(data.draw(st.sampled_from(sorted(self.world.ears))))

    @precondition(lambda self: self.world.witness.accepted)
    @rule(data=st.data())
    def hears_of_any_clip(self, data: st.DataObject) -> None:
        """Words of a message of any kind and any time, and of another session: mostly echoes."""
        accepted = self.world.witness.accepted
        message = data.draw(st.sampled_from(list(accepted)))
        session = data.draw(st.sampled_from([accepted[message], accepted[message], "s", "elsewhere"]))
        heard = data.draw(st.booleans())
        if session != accepted[message]:
            self.world.tell(Ticked())
            before = repr(self.world.state)
            decided = decide(self.world.state, Transcribed(session, message, "words"), self.world.now)
            assert decided == Decision((), (), None)
            assert repr(self.world.state) == before
        elif heard:
            self.world.understands(message)
        else:
            self.world.does_not_understand(message)

    @rule(session=SESSIONS, drop=st.booleans())
    def interrupts(self, session: str, drop: bool) -> None:
        self.world.interrupts(session, drop=drop)

    @precondition(lambda self: self.world.witness.ended)
    @rule(data=st.data())
    def interrupts_too_late(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(list(self.world.witness.ended)))
        before = repr(self.world.state.sessions)
        answer = self.world.interrupts(turn.rpartition("/")[0], expect=turn)
        assert isinstance(answer, Denied) or "nothing runs" in getattr(answer, "note", "")
        assert repr(self.world.state.sessions) == before

    @precondition(lambda self: self.world.witness.accepted)
    @rule(data=st.data())
    def drops(self, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(list(self.world.witness.accepted)))
        self.world.drops(self.world.witness.accepted[message], message)

    @rule(session=SESSIONS)
    def clears(self, session: str) -> None:
        self.world.clears(session)

    @rule(session=SESSIONS)
    def resumes(self, session: str) -> None:
        self.world.resumes(session)

    @rule(data=st.data(), text=ANSWERS)
    def answers(self, data: st.DataObject, text: str) -> None:
        """The open question, one of long ago, or one that nobody ever asked."""
        witness = self.world.witness
        old = [f"{turn}#{number}" for turn, last in witness.asked.items() for number in range(1, last + 2)]
        question = data.draw(st.sampled_from([*witness.questions.values(), *old, "s/1#1", "nonsense"]))
        is_open = question in witness.questions.values()
        before = repr(self.world.state.sessions)
        answer = self.world.answers(question, text)
        assert isinstance(answer, Carried if is_open else Denied)
        assert is_open or repr(self.world.state.sessions) == before

    @precondition(lambda self: self.world.witness.ended)
    @rule(data=st.data())
    def says_again(self, data: st.DataObject) -> None:
        """What is retried answers no question."""
        turn = data.draw(st.sampled_from(list(self.world.witness.ended)))
        before = dict(self.world.witness.questions)
        self.world.says_again(turn, "yes")
        assert self.world.witness.questions == before

    @rule()
    def drains(self) -> None:
        self.world.drains()

    @rule()
    def reloads(self) -> None:
        self.world.tell(RenewalAsked())

    @rule()
    def undrains(self) -> None:
        self.world.undrains()

    @rule(seats=st.integers(1, 4))
    def scales(self, seats: int) -> None:
        """Nobody who works is touched."""
        busy_before = set(self.world.state.busy)
        self.world.scales(seats)
        assert set(self.world.state.busy) >= busy_before

    @rule(free=st.sampled_from([50, 200]))
    def host_has(self, free: int) -> None:
        self.world.host_has(free)

    # --- processes ------------------------------------------------------------------------------------------

    def _processes(self) -> list[Process]:
        """The living ones, whether their end was ordered or not."""
        return [each for each in self.world.processes.values() if not each.is_dead]

    @rule()
    def workers_get_ready(self) -> None:
        self.world.worker_ready()

    @precondition(lambda self: self._processes())
    @rule(data=st.data(), all_dead=st.booleans())
    def dies(self, data: st.DataObject, all_dead: bool) -> None:
        process = data.draw(st.sampled_from(self._processes()))
        self.world.dies(process.who.seat, "words", all_dead)

    @rule()
    def kills_are_proven(self) -> None:
        for process in [each for each in self._processes() if each.is_killed]:
            self.world.dies(process.who.seat, "killed")

    @precondition(lambda self: self._processes())
    @rule(data=st.data())
    def falls_silent(self, data: st.DataObject) -> None:
        self.world.falls_silent(data.draw(st.sampled_from(self._processes())).who.seat)

    @precondition(lambda self: self.world.witness.seqs)
    @rule(data=st.data(), cursor=st.sampled_from(["bridge", "watcher"]), off=st.sampled_from([0, 0, -2, 1]))
    def reads(self, data: st.DataObject, cursor: str, off: int) -> None:
        """A named client acknowledges what it has read, late or twice too; or what was never told."""
        session = data.draw(st.sampled_from(sorted(self.world.witness.seqs)))
        self.world.has_read(cursor, session, max(1, self.world.witness.seqs[session] + off))

    # --- frames ---------------------------------------------------------------------------------------------

    def _jobs(self) -> list[str]:
        return [each.job.turn for each in self._processes() if each.job is not None and each.is_heard]

    @precondition(lambda self: self._jobs())
    @rule(data=st.data())
    def speaks(self, data: st.DataObject) -> None:
        self.world.speaks(data.draw(st.sampled_from(self._jobs())), "words ")

    @precondition(lambda self: self._jobs())
    @rule(data=st.data())
    def uses_a_tool(self, data: st.DataObject) -> None:
        self.world.uses_tool(data.draw(st.sampled_from(self._jobs())))

    @precondition(lambda self: self._jobs())
    @rule(data=st.data())
    def asks(self, data: st.DataObject) -> None:
        self.world.asks(data.draw(st.sampled_from(self._jobs())), "which?", "this", "that")

    @precondition(lambda self: any(each.offers for each in self._processes()))
    @rule(data=st.data())
    def takes_in(self, data: st.DataObject) -> None:
        offers = [offer for process in self._processes() for offer in process.offers]
        offer = data.draw(st.sampled_from(offers))
        self.world.tell(Steered(offer.who, offer.turn, offer.attempt, offer.message))

    @precondition(lambda self: self._jobs())
    @rule(data=st.data())
    def finishes(self, data: st.DataObject) -> None:
        self.world.finishes(data.draw(st.sampled_from(self._jobs())))

    @precondition(lambda self: self._jobs())
    @rule(data=st.data(), again=st.booleans())
    def fails(self, data: st.DataObject, again: bool) -> None:
        self.world.fails(data.draw(st.sampled_from(self._jobs())), again=again)

    # --- echoes ---------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def hears_anything_of_anybody(self, data: st.DataObject) -> None:
        """A frame of any process of any life about any turn: late, twice, or never sent by anybody."""
        process = data.draw(st.sampled_from(list(self.world.processes.values())))
        who = data.draw(st.sampled_from([process.who, *self._forged(process.who)]))
        known = [(job.turn, job.attempt) for each in self.world.processes.values() for job in each.jobs]
        turn, attempt = data.draw(st.sampled_from(known)) if known else ("s/1", 1)
        attempt += data.draw(st.sampled_from([0, 0, 0, -1, 1]))
        self.world.tell(data.draw(st.sampled_from(_frames(who, turn, attempt))))

    @rule(data=st.data())
    def hears_of_processes_again(self, data: st.DataObject) -> None:
        """Reports about processes that were made before, and of lives that are over."""
        process = data.draw(st.sampled_from(list(self.world.processes.values())))
        who = data.draw(st.sampled_from([process.who, *self._forged(process.who)]))
        reports: list[Event] = [
            WorkerReady(who),
            WorkerAlive(who, "pulse"),
            WorkerAlive(who, "loop"),
            WorkerUnreachable(who, "gone"),
        ]
        if who.epoch == self.world.state.epoch:
            proof = Proof(1, True, 1.0, "late")
            reports.append(WorkerDied(who.seat, who.incarnation, proof, "late"))
            reports.append(WorkerStarted(who.seat, who.incarnation, process.pid))
        self.world.tell(data.draw(st.sampled_from(reports)))

    def _forged(self, who: Who) -> list[Who]:
        """The same numbers in another life, or another process in the same seat."""
        return [
            Who(self.world.state.epoch, who.seat, who.incarnation),
            Who(who.epoch + 1, who.seat, who.incarnation),
            Who(who.epoch, who.seat, who.incarnation + 1),
        ]

    # --- the house and the time -----------------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def passes(self, seconds: float) -> None:
        self.world.passes(seconds)

    @rule(seconds=SECONDS)
    def jumps(self, seconds: float) -> None:
        """The host slept: every deadline is late at once, and no sign of life came in between."""
        self.world.now += seconds
        self.world.tell(Ticked())

    @rule(state=MODELS)
    def model_changes(self, state: str) -> None:
        self.world.model_is(state, "no model", "wait")

    @rule(seconds=SECONDS)
    def crashes(self, seconds: float) -> None:
        self.world.crash(seconds)

    @rule(data=st.data(), session=SESSIONS, busy=BUSY)
    def crashes_before_the_commit(self, data: st.DataObject, session: str, busy: str) -> None:
        self.world.tell_then_crash_uncommitted(self._anything(data, session, busy))

    @rule(data=st.data(), session=SESSIONS, busy=BUSY)
    def crashes_before_the_effects(self, data: st.DataObject, session: str, busy: str) -> None:
        self.world.tell_then_crash_unperformed(self._anything(data, session, busy))

    @rule(seconds=SECONDS)
    def stops_and_starts(self, seconds: float) -> None:
        self.world.stops()
        self.world.crash(seconds)

    @rule(seconds=SECONDS)
    def restarts_in_place(self, seconds: float) -> None:
        self.world.restart_in_place(seconds)

    def _anything(self, data: st.DataObject, session: str, busy: str) -> Event:
        """Something true to happen in the last moment of a life."""
        message = f"last-words-{len(self.world.steps)}"
        events: list[Event] = [
            TextArrived(session, message, message, "words", BusyMode(busy)),
            VoiceArrived(session, f"{message}-spoken", message, "clip", BusyMode(busy)),
            InterruptAsked(session, "someone"),
            DrainAsked(),
        ]
        for spoken in sorted(self.world.ears):
            events.append(Transcribed(self.world.witness.accepted[spoken], spoken, "words"))
        for question in self.world.witness.questions.values():
            events.append(AnswerArrived(session_of(question), question, "yes", "someone"))
        for process in self._processes():
            proof = Proof(1, True, 1.0, "pretend")
            events.append(WorkerDied(process.who.seat, process.who.incarnation, proof, "words"))
            if process.job is not None and process.is_heard:
                events += _frames(process.who, process.job.turn, process.job.attempt)
        return data.draw(st.sampled_from(events))

    @rule()
    def is_kind_for_once(self) -> None:
        be_kind(self.world)


def _frames(who: Who, turn: str, attempt: int) -> list[Any]:
    return [
        Spoke(who, turn, attempt, "words "),
        ToolStarted(who, turn, attempt, "c0", "shell", "ls", "{}", "pure", 0),
        ToolFinished(who, turn, attempt, "c0", True, 5, "result"),
        Noted(who, turn, attempt),
        Steered(who, turn, attempt, "m1"),
        Asked(who, turn, attempt, "c0", "clarify", "which?", ()),
        Finished(who, turn, attempt, "answer", 7, 3),
        Failed(who, turn, attempt, "no luck", "try later", True),
        Failed(who, turn, attempt, "no luck", "try later", False),
    ]
