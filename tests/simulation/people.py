"""People in the simulation: they speak, interrupt, drop, answer, drain, scale and reload."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from supervisor.core.decide import decide
from supervisor.core.effects import Accepted, Decision, Done, Refused
from supervisor.core.events import RenewalAsked, Transcribed
from supervisor.core.records import MessageAccepted, SessionBegun
from supervisor.core.state import BusyMode, session_of
from tests.world import World

SESSIONS = st.sampled_from(["s", "t", "u"])
NEW_SESSIONS = st.sampled_from(["s", "new", "newer"])
BUSY = st.sampled_from([mode.value for mode in BusyMode])
# Most messages are for the agent of their session.
WISHES = st.sampled_from(
    [{}, {}, {"agent": "poet"}, {"agent": "default", "instructions": "be brief", "by": "anna"}]
)
# Reminders that were made before are judged by the new values.
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "busy_seats": st.integers(1, 3),
        "spares": st.integers(0, 2),
        "turns_per_worker_max": st.sampled_from([1, 200]),
        "attempts_max": st.integers(1, 3),
        "queue_max": st.sampled_from([1, 100]),
        "cpu_pressure_max": st.sampled_from([None, 10, 90]),
        "resume": st.sampled_from(["auto", "never", "ask"]),
        "freshness_seconds": st.sampled_from([50.0, 3600.0]),
        "outage_seconds_max": st.sampled_from([5.3, 3600.0]),
        "deadline_seconds": st.sampled_from([7.0, 100.0]),
        "silence_seconds": st.sampled_from([3.1, 30.3]),
        "start_seconds": st.sampled_from([2.0, 10.1]),
        "pulse_seconds": st.sampled_from([2.0, 5.7]),
    },
)
ANSWERS = st.sampled_from(["yes", " Yes\n", "no", "words"])


class People(RuleBasedStateMachine):
    """Every rule is something that a person asks for."""

    world: World

    @rule(session=SESSIONS, text=ANSWERS, busy=BUSY, wishes=WISHES)
    def says(self, session: str, text: str, busy: str, wishes: dict[str, str]) -> None:
        message = self.world.says(session, text, busy, **wishes)
        answer = self.world.steps[-1].decision.answer
        assert isinstance(answer, Accepted | Refused)
        assert isinstance(answer, Accepted) == (message in self.world.witness.accepted)

    @rule(data=st.data(), session=SESSIONS, busy=BUSY)
    def says_for_one_turn(self, data: st.DataObject, session: str, busy: str) -> None:
        """Accepted only while that very turn is open: a late message must not touch another one."""
        ended = [turn for turn in self.world.witness.ended if session_of(turn) == session]
        running = self.world.witness.open_turns.get(session)
        expect = data.draw(st.sampled_from([running or "s/77", *ended, "nonsense"]))
        self.world.step()  # what is due anyway may end it
        is_open = expect == self.world.witness.open_turns.get(session)
        message = self.world.says(session, "words", busy, expect=expect)
        assert is_open or message not in self.world.witness.accepted

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
            assert isinstance(decision.answer, Accepted)
            assert decision.answer.again
        else:
            assert isinstance(decision.answer, Refused)
            assert not any(isinstance(record, MessageAccepted) for record in decision.records)

    @rule(
        session=st.sampled_from(["s", "new", "newer"]),
        key=st.sampled_from(["one", "two"]),
        turns=st.integers(0, 2),
    )
    def begins(self, session: str, key: str, turns: int) -> None:
        """Once, and only before anything else has happened in it; the same request again changes nothing."""
        self.world.step()
        journal = self.world.journal
        before = journal.read.session_seq(session), journal.begun_by(session)
        answer = self.world.begins(session, key, turns)
        assert isinstance(answer, Done if before[0] == 0 or before[1] == key else Refused)
        is_told = any(isinstance(each, SessionBegun) for each in self.world.steps[-1].decision.records)
        assert is_told == (before[0] == 0)

    @rule(session=SESSIONS, busy=BUSY, wishes=WISHES)
    def speaks_clip(self, session: str, busy: str, wishes: dict[str, str]) -> None:
        """Nothing is done by it yet: whoever runs goes on."""
        busy_before = set(self.world.state.busy)
        message = self.world.speaks_clip(session, busy, **wishes)
        decision = self.world.steps[-1].decision
        assert isinstance(decision.answer, Accepted) == (message in self.world.witness.accepted)
        assert set(self.world.state.busy) >= busy_before

    @precondition(lambda self: self.world.stt)
    @rule(data=st.data(), text=ANSWERS)
    def understands(self, data: st.DataObject, text: str) -> None:
        self.world.understands(data.draw(st.sampled_from(sorted(self.world.stt))), text)

    @precondition(lambda self: self.world.stt)
    @rule(data=st.data())
    def does_not_understand(self, data: st.DataObject) -> None:
        self.world.does_not_understand(data.draw(st.sampled_from(sorted(self.world.stt))))

    @precondition(lambda self: self.world.witness.accepted)
    @rule(data=st.data())
    def hears_of_any_clip(self, data: st.DataObject) -> None:
        """Words of a message of any kind and any time, and of another session: mostly echoes."""
        accepted = self.world.witness.accepted
        message = data.draw(st.sampled_from(list(accepted)))
        session = data.draw(st.sampled_from([accepted[message], accepted[message], "s", "elsewhere"]))
        heard = data.draw(st.booleans())
        if session != accepted[message]:
            self.world.step()
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
        assert isinstance(answer, Refused) or "nothing runs" in getattr(answer, "note", "")
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
        assert isinstance(answer, Done if is_open else Refused)
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

    @rule(agents=st.sampled_from([None, frozenset({"poet"})]))
    def reloads(self, agents: frozenset[str] | None) -> None:
        self.world.tell(RenewalAsked(agents))

    @rule(agents=st.sampled_from(["", "s:poet", "t:poet"]))
    def agents_change(self, agents: str) -> None:
        self.world.agents_are(agents)

    @rule(endpoints=st.sampled_from(["", "poet:elsewhere", "default:elsewhere", "default:model+elsewhere"]))
    def endpoints_change(self, endpoints: str) -> None:
        self.world.endpoints_are(endpoints)

    @rule()
    def undrains(self) -> None:
        self.world.undrains()

    @rule(seats=st.integers(1, 4))
    def scales(self, seats: int) -> None:
        """Nobody who works is touched."""
        busy_before = set(self.world.state.busy)
        self.world.scales(seats)
        assert set(self.world.state.busy) >= busy_before

    @rule(free=st.sampled_from([50, 200]), cpu=st.sampled_from([None, 20.0, 95.0]))
    def host_has(self, free: int, cpu: float | None) -> None:
        self.world.host_has(free, cpu)

    @rule(changed=SETTINGS)
    def settings_change(self, changed: dict[str, Any]) -> None:
        """Nobody who works is touched, and no process that lives is forgotten."""
        busy_before = set(self.world.state.busy)
        self.world.settings_are(**changed)
        assert set(self.world.state.busy) >= busy_before
