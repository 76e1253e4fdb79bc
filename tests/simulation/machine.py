"""A cruel world, played by hypothesis: anything may happen at any time, twice, late, or in another life.

The world checks what must hold after every step. Left alone in the end, every accepted message must end.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from supervisor.core.events import (
    AnswerArrived,
    Asked,
    DrainAsked,
    DropAsked,
    Event,
    EventsSeen,
    Failed,
    Finished,
    InterruptAsked,
    ModelAway,
    Noted,
    ResumeAsked,
    ScaleAsked,
    Steered,
    TextArrived,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    Transcribed,
    UndrainAsked,
    VoiceArrived,
    WorkerAlive,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
    WorkerUnreachable,
)
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import BusyMode, ModelState, Proof, Who, session_of
from tests.pretend_processes import Process
from tests.simulation.people import BUSY, SESSIONS, People
from tests.simulation.settling import be_kind, left_alone
from tests.world import World, agent_of

_DIED = Reason(EndReason.EXITED, "words")
MODELS = st.sampled_from([state.value for state in ModelState])
# Short, just over each of the policy's limits, and long enough for everything to be overdue.
SECONDS = st.sampled_from([0.1, 0.3, 1.0, 4.0, 6.0, 11.0, 31.0, 101.0])
# How a kept worker is found after a restart in place.
FOUND = st.sampled_from(["right", "silent", "dead", "wrong", "idle"])
AGENTS = st.sampled_from([agent_of(""), agent_of("u:poet"), agent_of("t:poet,u:poet")])
POLICIES = st.builds(
    Policy,
    agent_of=AGENTS,
    busy_seats=st.integers(1, 2),
    spares=st.integers(0, 1),
    turns_per_worker_max=st.sampled_from([1, 2, 200]),
    attempts_max=st.integers(1, 3),
    waiting_max=st.sampled_from([2, 5, 100]),
    queue_max=st.sampled_from([3, 100]),
    memory_free_bytes_min=st.just(100 * 1024 * 1024),
    cpu_pressure_max=st.sampled_from([None, 90]),
    resume=st.sampled_from(["auto", "auto", "never", "ask"]),
    freshness_seconds=st.sampled_from([50.0, 3600.0]),
    outage_seconds_max=st.sampled_from([5.3, 3600.0]),
    deadline_seconds=st.just(100.0),
    # Not a whole number, as a person may write it: sums of such times are rounded.
    silence_seconds=st.just(30.3),
    hold_seconds=st.sampled_from([3.3, 40.0]),
    start_seconds=st.just(10.1),
    pulse_seconds=st.just(5.7),
    rest_seconds_max=st.just(4.0),
    starts_failed_max=st.just(3),
)


class Cruelty(People):
    """Every rule is something that happens to the supervisor."""

    @initialize(policy=POLICIES)
    def begin(self, policy: Policy) -> None:
        self.world = World(policy)
        self.world.worker_ready()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            left_alone(self.world)

    # --- processes ------------------------------------------------------------------------------------------

    def _processes(self) -> list[Process]:
        """The living ones, whether their end was ordered or not."""
        return [each for each in self.world.processes.values() if not each.is_dead]

    @rule()
    def workers_get_ready(self) -> None:
        self.world.worker_ready()

    # Three rules of many: without them most days would see no turn at all.
    @rule(busy=BUSY)
    def a_turn_can_begin_in_s(self, busy: str) -> None:
        self._a_turn_can_begin("s", busy)

    @rule(busy=BUSY)
    def a_turn_can_begin_in_t(self, busy: str) -> None:
        self._a_turn_can_begin("t", busy)

    @rule(busy=BUSY)
    def a_turn_can_begin_in_u(self, busy: str) -> None:
        self._a_turn_can_begin("u", busy)

    def _a_turn_can_begin(self, session: str, busy: str) -> None:
        if self.world.model.state is not ModelState.READY:
            self.world.model_is("ready")
        self.world.undrains()
        self.world.host_has(200)
        self.world.says(session, "words", busy)
        self.world.worker_ready()

    @precondition(lambda self: self._processes())
    @rule(data=st.data(), all_dead=st.sampled_from([True, True, True, False]))
    def dies(self, data: st.DataObject, all_dead: bool) -> None:
        process = data.draw(st.sampled_from(self._processes()))
        self.world.dies(process.who.seat, "words", all_dead)

    @rule()
    def kills_are_proven(self) -> None:
        for process in [each for each in self._processes() if each.is_killed or each.is_unproved]:
            self.world.dies(process.who.seat, "killed")

    @rule()
    def a_kill_is_not_proven_in_time(self) -> None:
        for process in [each for each in self._processes() if each.is_killed][:1]:
            self.world.sticks(process.who.seat)

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

    @precondition(lambda self: self._jobs())
    @rule(data=st.data(), kind=st.sampled_from(["clarify", "approve"]), is_held=st.booleans())
    def asks_without_a_call(self, data: st.DataObject, kind: str, is_held: bool) -> None:
        turn = data.draw(st.sampled_from(self._jobs()))
        if is_held:
            self.world.holds(turn, "may I?", "yes", "no", kind=kind, number=len(self.world.steps))
        else:
            self.world.asks_without_call(turn, "may I?", "yes", "no", kind=kind)

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

    @precondition(lambda self: self._jobs())
    @rule(data=st.data(), asked=st.sampled_from([0, 0, 3, 20]))
    def cannot_ask(self, data: st.DataObject, asked: int) -> None:
        """Nothing weighs against the turn."""
        turn = data.draw(st.sampled_from(self._jobs()))
        before = self._losses(turn)
        self.world.cannot_ask(turn, asked=asked)
        assert self._losses(turn) in (before, None)

    def _losses(self, turn: str) -> int | None:
        session = self.world.state.sessions.get(session_of(turn))
        return session.turn.losses if session and session.turn and session.turn.id == turn else None

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
            WorkerUnreachable(who, Reason(EndReason.NOT_CONNECTED)),
        ]
        if who.epoch == self.world.state.epoch:
            proof = Proof(1, True, 1.0, "late")
            reports.append(WorkerDied(who.seat, who.incarnation, proof, _DIED))
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
        self.world.step()

    @rule(state=MODELS)
    def model_changes(self, state: str) -> None:
        self.world.model_is(state, "no model", "wait")

    @rule(seconds=SECONDS, how=st.sampled_from(["crash", "stop", "clock set back", "taken over"]))
    def crashes(self, seconds: float, how: str) -> None:
        if how == "taken over":
            self.world.taken_over(seconds)
            return
        if how == "clock set back":
            self.world.crash_with_clock_set_back(seconds)
            return
        if how == "stop":
            self.world.stops()
        self.world.crash(seconds)

    @rule(session=SESSIONS)
    def gives_away_and_takes_back(self, session: str) -> None:
        self.world.gives(session)
        self.world.takes_back()

    @precondition(lambda self: self._processes())
    @rule(data=st.data(), seconds=SECONDS, is_stopped=st.booleans())
    def ends_and_leaves_a_process(self, data: st.DataObject, seconds: float, is_stopped: bool) -> None:
        left = data.draw(st.sampled_from(self._processes()))
        if is_stopped:
            self.world.stops()
        self.world.crash(seconds, stuck=left.who.seat)

    @rule(data=st.data(), count=st.integers(1, 3))
    def crashes_before_the_commit(self, data: st.DataObject, count: int) -> None:
        self.world.tell_then_crash_uncommitted(*self._several(data, count))

    @rule(data=st.data(), count=st.integers(1, 3))
    def crashes_before_the_effects(self, data: st.DataObject, count: int) -> None:
        self.world.tell_then_crash_unperformed(*self._several(data, count))

    # More than one batch takes.
    @rule(data=st.data(), count=st.integers(2, 6))
    def much_happens_at_once(self, data: st.DataObject, count: int) -> None:
        self.world.tell_together(*self._several(data, count))

    @rule(data=st.data(), count=st.integers(0, 5), seconds=SECONDS)
    def the_disk_is_full_for_a_while(self, data: st.DataObject, count: int, seconds: float) -> None:
        [first], meanwhile = self._several(data, 1), self._several(data, count)
        self.world.tell_while_the_disk_is_full(first, seconds, meanwhile)

    @rule(seconds=SECONDS, session=SESSIONS, kept=st.tuples(FOUND, FOUND))
    def restarts_in_place(self, seconds: float, session: str, kept: tuple[str, str]) -> None:
        self._can_be_replaced(session)
        self.world.restart_in_place(seconds, kept)

    @rule(seconds=SECONDS, session=SESSIONS, moment=st.sampled_from(["asked", "decided", "committed"]))
    def crashes_during_a_handoff(self, seconds: float, session: str, moment: str) -> None:
        self._can_be_replaced(session)
        self.world.crash_during_handoff(seconds, moment)

    def _can_be_replaced(self, session: str) -> None:
        """It refuses while something of an ended worker is left. A handoff without a turn shows little."""
        for seat in list(self.world.state.stuck):
            self.world.dies(seat, "killed")
        self._a_turn_can_begin(session, "queue")

    def _several(self, data: st.DataObject, count: int) -> list[Event]:
        """Things that may happen now, each true by itself; the first may make others impossible."""
        return [
            data.draw(st.sampled_from(self._possible(data.draw(SESSIONS), data.draw(BUSY))))
            for _ in range(count)
        ]

    def _possible(self, session: str, busy: str) -> list[Event]:
        """A message has the same key until the world has moved on: the second one is known by it."""
        key = f"{session}-{len(self.world.steps)}"
        turn = self.world.witness.open_turns.get(session, f"{session}/1")
        events: list[Event] = [
            TextArrived(session, key, key, "words", BusyMode(busy)),
            TextArrived(session, f"{key}-late", f"{key}-late", "words", BusyMode(busy), expect_turn=turn),
            InterruptAsked(session, "someone", expect_turn=turn),
            VoiceArrived(session, f"{key}-spoken", f"{key}-spoken", "clip", BusyMode(busy)),
            InterruptAsked(session, "someone"),
            DropAsked(session, None, "someone"),
            ResumeAsked(session),
            EventsSeen(session, "bridge", max(1, self.world.witness.seqs[session])),
            DrainAsked(),
            UndrainAsked(),
            ScaleAsked(1),
            ScaleAsked(3),
        ]
        for spoken in sorted(self.world.stt):
            events.append(Transcribed(self.world.witness.accepted[spoken], spoken, "words"))
            events.append(DropAsked(self.world.witness.accepted[spoken], spoken, "someone"))
        for question in self.world.witness.questions.values():
            events.append(AnswerArrived(session_of(question), question, "yes", "someone"))
        for process in self._processes():
            events += _reports(process)
        return events

    @rule()
    def is_kind_for_once(self) -> None:
        be_kind(self.world)


def _reports(process: Process) -> list[Event]:
    """What can be heard of a living process and from it."""
    who, proof = process.who, Proof(1, True, 1.0, "pretend")
    reports: list[Event] = [WorkerDied(who.seat, who.incarnation, proof, _DIED)]
    if not process.is_heard:
        return reports
    reports += [WorkerAlive(who, "pulse"), WorkerUnreachable(who, Reason(EndReason.NOT_READING))]
    if process.job is not None:
        reports += _frames(who, process.job.turn, process.job.attempt)
    elif not process.is_ready:
        reports += [WorkerStarted(who.seat, who.incarnation, process.pid), WorkerReady(who)]
    return reports


def _frames(who: Who, turn: str, attempt: int) -> list[Any]:
    return [
        TextStreamed(who, turn, attempt, "words "),
        ToolStarted(who, turn, attempt, "c0", "shell", "ls", "{}", "pure", 0, 11, 5),
        ToolFinished(who, turn, attempt, "c0", True, 5, "result"),
        Noted(who, turn, attempt),
        Steered(who, turn, attempt, "m1"),
        Asked(who, turn, attempt, "c0", "clarify", "which?", ()),
        Asked(who, turn, attempt, "c0", "approve", "run it?", ("yes", "no"), 7),
        Asked(who, turn, attempt, "", "clarify", "which?", (), 8, 17, 4),
        Finished(who, turn, attempt, "answer", 7, 3),
        Failed(who, turn, attempt, "no luck", "try later", True, 13, 2),
        Failed(who, turn, attempt, "no luck", "try later", False),
        Failed(who, turn, attempt, "nothing answers", "look at it", False, outage=True, wait_seconds=2),
        ModelAway(who, turn, attempt, "model", "nothing answers", "look at it"),
        ModelAway(who, turn, attempt, "elsewhere", "nothing answers", "look at it", wait_seconds=2),
    ]
