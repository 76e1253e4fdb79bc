"""A world to tell stories in: sentences about people, workers and time, each an event or a few."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from supervisor.core import events
from supervisor.core.decide import next_deadline
from supervisor.core.effects import Answer
from supervisor.core.kept_turns import keepable
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import Record, SessionGiven
from supervisor.core.runtime_state import RuntimeChanged, RuntimeState
from supervisor.core.state import BusyMode, ModelState, Proof, Who, session_of
from tests.pretend_processes import Process
from tests.simulated_engine import Clockwork

# Bounds the walk from deadline to deadline: reminders that beget reminders without end are a defect.
_DEADLINES_MAX = 10_000


def agent_of(agents: str) -> Callable[[str], str]:
    """The agents of sessions, written as `session:agent,…`; all others have the default one."""
    known = dict(each.split(":") for each in agents.split(",") if each)
    return lambda session: known.get(session, DEFAULT_AGENT)


class World(Clockwork):
    """Sentences on it are what people, workers and time do."""

    # --- people ---------------------------------------------------------------------------------------------

    def says(
        self, session: str, text: str, busy: str = "queue", id: str = "", expect: str = "", **wishes: str
    ) -> str:
        """Somebody says something; returns the message's id. `wishes` are by, agent and instructions."""
        self._messages += 1
        message = id or f"m{self._messages}"
        arrived = events.TextArrived(session, message, f"key-{message}", text, BusyMode(busy), expect or None)
        self.tell(replace(arrived, **wishes))  # type: ignore[arg-type]
        return message

    def begins(self, session: str, key: str, turns: int = 1, origin: str = "") -> Answer | None:
        """Somebody makes a session that has a history."""
        asked = events.BeginAsked(session, key, origin, turns if origin else 0, ("{}",) * turns)
        return self.tell(asked).answer

    def speaks_clip(self, session: str, busy: str = "queue", id: str = "", **wishes: str) -> str:
        """Somebody says something that must be understood first; returns the message's id."""
        self._messages += 1
        message = id or f"m{self._messages}"
        clip = f"clip-of-{message}"
        arrived = events.VoiceArrived(session, message, f"key-{message}", clip, BusyMode(busy))
        self.tell(replace(arrived, **wishes))  # type: ignore[arg-type]
        return message

    def understands(self, message: str, text: str = "words") -> None:
        self.tell(events.Transcribed(self.witness.accepted[message], message, text))

    def does_not_understand(self, message: str, reason: str = "nothing was understood") -> None:
        self.tell(events.NotTranscribed(self.witness.accepted[message], message, reason, "say it again"))

    def interrupts(self, session: str, expect: str = "", drop: bool = False) -> Answer | None:
        return self.tell(events.InterruptAsked(session, "someone", expect or None, drop)).answer

    def drops(self, session: str, message: str) -> Answer | None:
        return self.tell(events.DropAsked(session, message, "someone")).answer

    def clears(self, session: str) -> Answer | None:
        return self.tell(events.DropAsked(session, None, "someone")).answer

    def resumes(self, session: str) -> Answer | None:
        return self.tell(events.ResumeAsked(session)).answer

    def has_read(self, cursor: str, session: str, seq: int) -> Answer | None:
        """A named client acknowledges the feed up to a place."""
        return self.tell(events.EventsSeen(session, cursor, seq)).answer

    def answers(self, question: str, text: str) -> Answer | None:
        """Somebody answers a question by its id."""
        return self.tell(events.AnswerArrived(session_of(question), question, text, "someone")).answer

    def says_again(self, turn: str, text: str) -> str:
        """Somebody has a turn of the past tried once more."""
        self._messages += 1
        message = f"m{self._messages}"
        arrived = events.TextArrived(session_of(turn), message, f"key-{message}", text, BusyMode.QUEUE)
        self.tell(replace(arrived, retries=turn))
        return message

    def drains(self) -> None:
        self.tell(events.DrainAsked())

    def undrains(self) -> None:
        self.tell(events.UndrainAsked())

    def scales(self, seats: int) -> None:
        self.tell(events.ScaleAsked(seats))

    def agents_are(self, agents: str) -> None:
        """The settings are read again, and sessions have other agents."""
        self.policy = replace(self.policy, agent_of=agent_of(agents))
        self.tell(events.PolicyChanged(replace(self.state.policy, agent_of=self.policy.agent_of)))

    def endpoints_are(self, endpoints: str) -> None:
        """The settings are read again, and agents ask other endpoints: `agent:endpoint+fallback,…`."""
        known = dict(each.split(":") for each in endpoints.split(",") if each)
        endpoints_of = lambda agent: tuple(known.get(agent, "model").split("+"))  # noqa: E731
        self.policy = replace(self.policy, endpoints_of=endpoints_of)
        self.tell(events.PolicyChanged(replace(self.state.policy, endpoints_of=endpoints_of)))

    def settings_are(self, **settings: Any) -> None:
        """The settings are read again, and the policy has other values."""
        self.policy = replace(self.policy, **settings)
        self.tell(events.PolicyChanged(replace(self.state.policy, **settings)))

    def host_has(self, free: int, cpu: float | None = None) -> None:
        """What the host has left: free memory in MiB, and the pressure on its CPUs in percent."""
        self.tell(events.HostRead(free * 1024 * 1024, cpu_pressure=cpu))

    # --- processes ------------------------------------------------------------------------------------------

    def process(self, seat: int) -> Process:
        """The process in a seat, dead or alive."""
        return max(
            (each for each in self.processes.values() if each.who.seat == seat),
            key=lambda each: (each.who.epoch, each.who.incarnation),
        )

    def starts(self, seat: int) -> None:
        process = self.process(seat)
        self.tell(events.WorkerStarted(seat, process.who.incarnation, process.pid, "workspace"))

    def ready(self, seat: int) -> None:
        self.tell(events.WorkerReady(self.process(seat).who))

    def worker_ready(self) -> None:
        """Every process that can takes work."""
        for process in list(self.processes.values()):
            if process.is_heard and not process.is_ready and process.job is None:
                self.starts(process.who.seat)
                self.ready(process.who.seat)

    def dies(self, seat: int, words: str = "segmentation fault", all_dead: bool = True) -> None:
        """The process in the seat is gone, by itself or because it was killed."""
        who = self.process(seat).who
        proof = Proof(processes=2, all_dead=all_dead, ms=4.0, how="pretend")
        self.tell(events.WorkerDied(seat, who.incarnation, proof, Reason(EndReason.EXITED, words)))

    def dies_unproved(self, seat: int) -> None:
        """The process in the seat is gone, and nobody knows whether something of its cell is left."""
        self.dies(seat, all_dead=False)

    def sticks(self, seat: int) -> None:
        """The process in the seat was killed, and the kernel cannot end it yet."""
        self.tell(events.WorkerStuck(seat, self.process(seat).who.incarnation, 1, "it waits in the kernel"))

    def falls_silent(self, seat: int) -> None:
        self.process(seat).is_mute = True

    def beats(self, seat: int, kind: str) -> None:
        self.tell(events.WorkerAlive(self.process(seat).who, kind))

    def unreachable(self, seat: int) -> None:
        self.tell(events.WorkerUnreachable(self.process(seat).who, Reason(EndReason.NOT_READING)))

    # --- what workers say -----------------------------------------------------------------------------------

    def _at_work(self, turn: str) -> tuple[Who, int]:
        """Who was given the turn last, and as which attempt; it may be long dead."""
        jobs = [job for process in self.processes.values() for job in process.jobs if job.turn == turn]
        latest = max(jobs, key=lambda job: job.attempt)
        return latest.who, latest.attempt

    def speaks(self, turn: str, text: str) -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.TextStreamed(who, turn, attempt, text))

    def begins_tool(self, turn: str, call: str, name: str = "shell", read: int = 0, written: int = 0) -> None:
        """`read` and `written` are the tokens that the attempt has cost until now."""
        who, attempt = self._at_work(turn)
        self.tell(events.ToolStarted(who, turn, attempt, call, name, "ls", "{}", "pure", 0, read, written))

    def ends_tool(self, turn: str, call: str) -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.ToolFinished(who, turn, attempt, call, True, 5, "result"))

    def uses_tool(self, turn: str) -> None:
        """A whole tool call, under a name of its own."""
        self._calls += 1
        self.begins_tool(turn, f"call-{self._calls}")
        self.ends_tool(turn, f"call-{self._calls}")

    def asks(self, turn: str, text: str, *choices: str, call: str = "", kind: str = "clarify") -> None:
        """The agent asks a human, by a tool call of its own, or about one that it is said to have begun."""
        if not call:
            self._calls += 1
            call = f"call-{self._calls}"
            self.begins_tool(turn, call, "ask")
        who, attempt = self._at_work(turn)
        self.tell(events.Asked(who, turn, attempt, call, kind, text, choices))

    def holds(
        self, turn: str, text: str, *choices: str, call: str = "", kind: str = "clarify", number: int = 1
    ) -> None:
        """The agent asks a person and keeps its process meanwhile; `number` counts its questions."""
        who, attempt = self._at_work(turn)
        self.tell(events.Asked(who, turn, attempt, call, kind, text, choices, number))

    def asks_without_call(self, turn: str, text: str, *choices: str, kind: str = "clarify") -> None:
        """The agent ends its attempt with a question that no tool call is for."""
        who, attempt = self._at_work(turn)
        self.tell(events.Asked(who, turn, attempt, "", kind, text, choices))

    def notes(self, turn: str) -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.Noted(who, turn, attempt))

    def takes_in(self, turn: str, message: str) -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.Steered(who, turn, attempt, message))

    def finishes(self, turn: str, text: str = "answer") -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.Finished(who, turn, attempt, text, input_tokens=7, output_tokens=3))

    def fails(
        self, turn: str, error: str = "no luck", again: bool = False, read: int = 0, written: int = 0
    ) -> None:
        who, attempt = self._at_work(turn)
        self.tell(events.Failed(who, turn, attempt, error, "try later", again, read, written))

    def cannot_ask(
        self, turn: str, error: str = "nothing answers", asked: int = 0, endpoint: str = "", read: int = 0
    ) -> None:
        """The attempt does not reach its model, which asks to be left alone for so many seconds."""
        who, attempt = self._at_work(turn)
        failed = events.Failed(who, turn, attempt, error, "look at it", False, outage=True)
        self.tell(replace(failed, wait_seconds=asked, endpoint=endpoint, input_tokens=read))

    def passes_over(self, turn: str, endpoint: str, asked: int = 0) -> None:
        """The attempt does not reach one of its models, and asks the next one."""
        who, attempt = self._at_work(turn)
        told = (endpoint, "nothing answers", "look at it", asked)
        self.tell(events.ModelAway(who, turn, attempt, *told))

    # --- the house and the time -----------------------------------------------------------------------------

    def model_is(self, state: str, error: str = "", hint: str = "") -> None:
        self.model = events.ModelChanged(ModelState(state), error, hint)
        self.tell(self.model)

    def runtime_is(self, state: RuntimeState, agent: str, error: str = "", hint: str = "") -> None:
        self.tell(RuntimeChanged(frozenset({agent}), state, error, hint))

    def crash(self, away: float = 1.0, stuck: int | None = None) -> None:
        """The supervisor is killed and comes back `away` seconds later; its workers die with it.

        The kernel cannot end the one in the seat `stuck` yet.
        """
        self.now += away
        self._begin_next_life([] if stuck is None else [self.process(stuck)])

    def crash_with_clock_set_back(self, seconds: float) -> None:
        """The supervisor is killed, and the host's clock set back: its own begins with what was written."""
        contents = (session.turn.content_at for session in self.state.sessions.values() if session.turn)
        self.now = max(self.now - seconds, self.witness.newest_at, *contents)
        self._begin_next_life()

    def taken_over(self, away: float = 1.0) -> None:
        """The host is lost; another one, which had no session, has all of them `away` seconds later."""
        self.now += away
        self.elsewhere = set(self.state.sessions)
        self._begin_next_life()
        self._take_all()

    def gives(self, *sessions: str) -> None:
        """Another host has free seats for these sessions."""
        self.tell(events.SessionsToGive(sessions, life=99))

    def takes_back(self) -> None:
        """The other host gives back what it has, as this one has left it."""
        self._take_all()

    def _commit(self, records: Sequence[Record]) -> None:
        super()._commit(records)
        self.elsewhere.update(record.session for record in records if isinstance(record, SessionGiven))

    def _take_all(self) -> None:
        """All that is elsewhere comes here; what was here before stays as it is."""
        names = (*self.state.sessions, *sorted(self.elsewhere))
        self.elsewhere = set()
        self.tell(events.SessionsTaken(names))

    def restart_in_place(self, away: float = 1.0, kept: Sequence[str] = ()) -> None:
        """The image of the supervisor is replaced: workers with a running turn live on, the others do not.

        `kept` says how each of them is found: right, silent, dead, with another turn (wrong) or none (idle).
        """
        recovered, staying = self._leave_image(away)
        self._begin(recovered)
        for who, how in zip_longest(staying, kept[: len(staying)], fillvalue="right"):
            assert isinstance(who, Who)
            self._is_found(self.processes[who], how)

    def crash_during_handoff(self, away: float = 1.0, moment: str = "asked") -> None:
        """The supervisor dies before the next image begins, or before that has committed or performed."""
        if moment == "asked":
            self.tell(events.HandOverAsked())
            self.crash(away)
            return
        recovered, _ = self._leave_image(away)
        if moment == "decided":
            self.tell_then_crash_uncommitted(recovered)
        else:
            self.tell_then_crash_unperformed(recovered)

    def _leave_image(self, away: float) -> tuple[events.Recovered, list[Who]]:
        """What the next image is given, and who lives on."""
        self.tell(events.HandOverAsked())
        kept, incarnations = keepable(self.state), self.state.incarnations
        staying = [Who(self.state.epoch, one.seat, one.incarnation) for one in kept]
        for process in self.processes.values():
            process.is_dead = process.is_dead or process.who not in staying
        self.stt.clear()
        self.now += away
        self._load()
        return events.Recovered(kept, incarnations), staying

    def _is_found(self, process: Process, how: str) -> None:
        """By the next image of the supervisor; one that does not have its turn is killed at once."""
        who, job = process.who, process.job
        match how:
            case "silent":
                process.is_mute = True
            case "dead":
                self.dies(who.seat)
            case "wrong":
                self.tell(events.WorkerKept(who, "s/999", 1))
            case "idle":
                self.tell(events.WorkerKept(who, "", 0))
            case _:
                self.tell(events.WorkerKept(who, job.turn if job else "", job.attempt if job else 0))
        assert how not in ("wrong", "idle") or not process.is_heard, f"{process} may go on"

    def stops(self) -> None:
        """The service is stopped in order; a crash is how the next life begins."""
        self.tell(events.StopAsked())

    def passes(self, seconds: float) -> None:
        """Time goes by from deadline to deadline; processes that are not mute give signs of life."""
        until = self.now + seconds
        for _ in range(_DEADLINES_MAX):
            at = next_deadline(self.state)
            if at is None or at > until:
                break
            self._beat_before(at)
            self.now = max(self.now, at)
            self.step()
        else:
            raise AssertionError("reminders beget reminders without end")
        self.now = until
        self.step()

    def stands_still(self, seconds: float) -> None:
        """The host itself cannot act for so long, as the decider finds out."""
        self.now += seconds
        self.step()
        assert any(isinstance(step.event, events.StoodStill) for step in self.steps[-2:]), "nothing was late"

    def _beat_before(self, at: float) -> None:
        """Signs of life come a moment before anybody looks for them."""
        self.now = max(self.now, at - 0.5)
        for process in list(self.processes.values()):
            if process.is_heard and not process.is_mute and process.who.epoch == self.state.epoch:
                self.tell(events.WorkerAlive(process.who, "pulse"))
                self.tell(events.WorkerAlive(process.who, "loop"))
