"""What every kind of agent has from the host, one scenario a test.

A module of tests inherits them in a class `Test…`, with cases for its kinds. For what a kind cannot have
(absent.py) no case is made.
"""

import os
import signal
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from tests.acceptance.sight import named
from tests.kinds.absent import ABSENT
from tests.kinds.kind import Kind
from tests.kinds.stage import BUDGET_TOKENS, Stage
from tests.waiting import until

_QUESTION = "Which colour?"
_Test = TypeVar("_Test", bound=Callable[..., None])


def scenario(name: str) -> Callable[[_Test], _Test]:
    """Names a scenario as the table of docs/agents.md does."""

    def mark(test: _Test) -> _Test:
        vars(test)["scenario"] = name
        return test

    return mark


class ApprovalScenarios:
    @scenario("approval within hold")
    def test_an_approval_within_the_hold_lets_the_call_run_once(self, stage: Stage) -> None:
        turn, mark = stage.send_approved()
        asked = stage.event(turn, "question.asked")
        assert (asked.fields["kind"], "rm -rf nothing" in asked.fields["text"]) == ("approve", True)
        assert not mark.exists()
        stage.reply(asked, "yes")
        stage.answer_of(turn)
        assert mark.read_text() == "ran\n"
        if stage.kind.holds:
            assert len(stage.events(turn, "attempt.opened")) == 1

    @scenario("approval beyond hold")
    def test_an_approval_beyond_the_hold_reaches_another_worker_and_the_call_runs_once(
        self, stage: Stage
    ) -> None:
        with stage.served.short_hold():
            turn, mark = stage.send_approved(is_lost=True)
            asked = stage.event(turn, "question.asked")
            until(lambda: stage.service.show("turns", session=stage.session)[0]["state"] == "asking")
        stage.no_seat()
        assert not mark.exists()
        stage.reply(asked, "yes")
        stage.answer_of(turn)
        assert mark.read_text() == "ran\n"
        assert len(stage.events(turn, "attempt.opened")) > 1
        assert len(stage.events(turn, "question.asked")) == 1

    @scenario("approval across a restart")
    def test_d4_an_approval_outlives_the_supervisor_and_the_call_runs_once(self, stage: Stage) -> None:
        stage.answer(stage.kind.say("the word is basalt"))
        turn, mark = stage.send_approved(is_lost=True)
        asked = stage.event(turn, "question.asked")
        stage.restart()
        assert not mark.exists()
        stage.reply(asked, "yes")
        stage.answer_of(turn)
        assert mark.read_text() == "ran\n"
        assert len(stage.events(turn, "question.asked")) == 1
        assert "the word is basalt" in stage.answer(stage.kind.recall())
        # An agent with sessions of its own has found the one from before.
        assert not [note for note in stage.listener.notes if "could not load its session" in note]

    @scenario("approval denied")
    def test_a_denied_call_does_not_run_and_the_agent_is_told(self, stage: Stage) -> None:
        turn, mark = stage.send_approved()
        stage.reply(stage.event(turn, "question.asked"), "no")
        assert stage.kind.knows_of_denial in stage.answer_of(turn)
        assert not mark.exists()


class Scenarios(ApprovalScenarios):
    @scenario("fresh turn")
    def test_a_fresh_turn_is_answered(self, stage: Stage) -> None:
        turn = stage.send(stage.kind.say("good morning"))
        assert "good morning" in stage.answer_of(turn)
        assert "good morning" in stage.listener.words
        assert stage.listener.types().count("attempt.opened") == 1

    @scenario("tool")
    def test_a_tool_runs_after_its_record_and_its_result_is_read(self, stage: Stage) -> None:
        turn = stage.send(stage.kind.run("echo $((6 * 7))"))
        assert "42" in stage.answer_of(turn)
        (started,), (finished,) = stage.events(turn, "tool.started"), stage.events(turn, "tool.finished")
        assert started.fields["call"] == finished.fields["call"]
        assert finished.fields["ok"]
        assert started.seq < finished.seq

    @scenario("interrupt in the stream")
    def test_an_interrupt_in_the_stream_ends_it_and_the_next_turn_answers(self, stage: Stage) -> None:
        turn = stage.send(stage.kind.stream())
        stage.listener.until(lambda: len(stage.listener.words) > 20, stage.kind.patience_seconds)
        stage.interrupt()
        ended = stage.ending(turn)
        assert (ended.type, ended.fields["killed"]["all_dead"]) == ("turn.interrupted", True)
        assert len(ended.fields["partial"]) > 20
        assert "here again" in stage.answer(stage.kind.say("here again"))

    @scenario("interrupt in a tool")
    def test_an_interrupt_in_a_tool_leaves_no_process_and_the_session_goes_on(self, stage: Stage) -> None:
        """The tool heeds no signal but the last one."""
        stage.answer(stage.kind.say("the word is basalt"))
        mark = f"{os.getpid()}{stage.session.rpartition('-')[2]}"
        turn = stage.send(stage.kind.run(f"trap '' TERM INT HUP; sleep {mark} | sleep {mark}"))
        stage.event(turn, "tool.started")
        until(lambda: len(named(f"sleep\0{mark}")) == 2)
        stage.interrupt()
        ended = stage.ending(turn)
        assert (ended.type, ended.fields["killed"]["all_dead"]) == ("turn.interrupted", True)
        assert named(f"sleep\0{mark}") == set()
        assert "the word is basalt" in stage.answer(stage.kind.recall())

    @scenario("crash in a tool")
    def test_a_crash_in_a_tool_is_resumed_with_what_is_known_of_it(self, stage: Stage) -> None:
        mark = stage.shared / f"{stage.session}-began"
        turn = stage.send(stage.kind.run(f"echo began >> {mark}; sleep 1000"))
        stage.event(turn, "tool.started")
        until(lambda: mark.exists() and mark.read_text())
        os.kill(stage.event(turn, "attempt.opened").fields["pid"], signal.SIGKILL)
        assert stage.kind.knows_of_loss in stage.answer_of(turn)
        assert len(stage.events(turn, "attempt.lost")) == 1
        assert len(stage.events(turn, "attempt.opened")) == 2
        assert mark.read_text() == "began\n"

    @scenario("question across a restart")
    def test_d4_a_question_outlives_the_supervisor_and_its_answer_goes_on(self, stage: Stage) -> None:
        turn = stage.send(stage.kind.ask(_QUESTION, is_lost=True))
        asked = stage.event(turn, "question.asked")
        assert (asked.fields["kind"], asked.fields["text"]) == ("clarify", _QUESTION)
        stage.restart()
        (row,) = [each for each in stage.service.show("questions") if each["turn"] == turn]
        assert row["question"] == asked.fields["question"]
        stage.no_seat()
        stage.reply(asked, "blue")
        assert "blue" in stage.answer_of(turn)
        assert len(stage.events(turn, "question.asked")) == 1

    @scenario("steer")
    def test_a_message_steers_the_running_turn(self, stage: Stage) -> None:
        gate = stage.shared / f"{stage.session}-gate"
        turn = stage.send(stage.kind.run(f"until test -e {gate}; do sleep 0.05; done"))
        stage.event(turn, "tool.started")
        stage.service.say(stage.session, "to the left", busy="steer")
        gate.touch()
        assert "to the left" in stage.answer_of(turn)

    @scenario("budget")
    def test_a_budget_asks_before_more_is_used(self, stage: Stage) -> None:
        stage.answer(stage.kind.spend(BUDGET_TOKENS))
        refused = stage.send(stage.kind.say("more"))
        asked = stage.event(refused, "question.asked")
        assert asked.fields["text"].startswith("This session has reached ")
        assert f"[budgets.session] tokens_max allows {BUDGET_TOKENS} tokens" in asked.fields["text"]
        stage.reply(asked, "no")
        ended = stage.ending(refused)
        assert ended.type == "turn.failed"
        assert ended.fields["error"].endswith("the answer was not to go on")
        turn = stage.send(stage.kind.say("more, please"))
        stage.reply(stage.event(turn, "question.asked"), "yes")
        assert "more, please" in stage.answer_of(turn)


def names() -> list[str]:
    """Returns the names of all scenarios."""
    tests = (getattr(Scenarios, name) for name in dir(Scenarios) if name.startswith("test_"))
    return [test.scenario for test in tests]


def parametrize(metafunc: pytest.Metafunc, kinds: Mapping[str, Kind]) -> None:
    """Makes the cases of a test: the kinds that can have its scenario."""
    scenario = vars(metafunc.function)["scenario"]
    names = [name for name in kinds if scenario not in ABSENT.get(name, {})]
    metafunc.parametrize("served", [kinds[name] for name in names], ids=names, indirect=True, scope="module")
