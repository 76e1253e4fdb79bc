"""The gate before tool calls of the built-in agent: rules, a question that ends the attempt, its answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.bounds import SENTENCE_CHARACTERS_MAX
from ipc.messages import (
    AgentSpec,
    Asked,
    Finished,
    FromWorker,
    PastAnswer,
    PastAttempt,
    ToolFinished,
    ToolStarted,
    ToolTrace,
)
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.approved_calls import WAITING, approved_calls, clarified_calls
from worker.agents.builtin import Builtin
from worker.approvals import Approvals, Verdict
from worker.attempt import Attempt
from worker.model import Model

APPROVED = "approved by the user; it has not run yet"


def shell(command: str) -> dict[str, Any]:
    return {"name": "shell", "arguments": {"command": command}}


class Turn:
    """Attempts at one turn, each given what the journal would have of the earlier ones."""

    def __init__(self, fake: FakeModel, **rules: Any) -> None:
        self.fake = fake
        self.spec = AgentSpec("default", "builtin", {"tools": ["shell", "write", "ask"], **rules})
        self.tried: tuple[PastAttempt, ...] = ()
        self.answers: tuple[PastAnswer, ...] = ()

    def attempt(self, *calls: dict[str, Any], safe: Any = lambda _: True) -> list[FromWorker]:
        """Plays one attempt; the model makes the calls unless it has results of some already."""
        self.fake.set_mode("tools", calls=list(calls), text="Done.")
        desk = Desk(safe)

        async def scene() -> None:
            model = Model()
            number = len(self.tried) + 1
            work = assign(self.fake.base_url, attempt=number, tried=self.tried, answers=self.answers)
            await Attempt(replace(work, agent=self.spec), desk.outbox).run(Builtin(self.spec, model).answer)
            await model.close()

        asyncio.run(scene())
        self.frames = [frame for frame in desk.frames if type(frame).__name__ != "Noted"]
        return self.frames

    def answer(self, text: str, result: str) -> None:
        """What the core makes of an answer to the question that ended the last attempt."""
        asked = self.frames[-1]
        assert isinstance(asked, Asked)
        ends = {frame.call: frame for frame in self.frames if isinstance(frame, ToolFinished)}
        tools = [
            ToolTrace(
                each.call,
                each.name,
                each.arguments,
                each.repeat,
                result if each.call == asked.call else ends[each.call].result,
                each.call != asked.call and ends[each.call].ok,
            )
            for each in self.frames
            if isinstance(each, ToolStarted)
        ]
        self.tried = (*self.tried, PastAttempt("", tuple(tools)))
        given = PastAnswer(asked.kind, asked.text, text, asked.call, len(self.tried))
        self.answers = (*self.answers, given)

    def results(self) -> list[str]:
        return [frame.result for frame in self.frames if isinstance(frame, ToolFinished)]

    def asked(self) -> Asked:
        asked = self.frames[-1]
        assert isinstance(asked, Asked)
        return asked


def test_a_denied_call_is_recorded_and_told_to_the_model_and_does_not_run(
    fake: FakeModel, tmp_path: Path
) -> None:
    turn = Turn(fake, deny=["shell(touch *)"])
    turn.attempt(shell(f"touch {tmp_path}/made"))
    assert [type(frame).__name__ for frame in turn.frames[:2]] == ["ToolStarted", "ToolFinished"]
    assert turn.results() == ["denied by a rule of [agents.default]; it was not run"]
    assert fake.requests()[-1].messages[-1]["content"] == turn.results()[0]
    assert isinstance(turn.frames[-1], Finished)
    assert not (tmp_path / "made").exists()


def test_what_endangers_the_host_is_denied_with_its_reason(fake: FakeModel) -> None:
    turn = Turn(fake, allow=["shell"])
    turn.attempt(shell("mkfs.ext4 /nowhere/image"))
    assert turn.results() == ["denied: it makes or erases a file system; it was not run"]


def test_a_call_that_needs_an_approval_ends_the_attempt_and_does_not_run(
    fake: FakeModel, tmp_path: Path
) -> None:
    turn = Turn(fake, otherwise="ask")
    turn.attempt(shell(f"touch {tmp_path}/made"))
    started, asked = turn.frames
    assert isinstance(started, ToolStarted)
    assert isinstance(asked, Asked)
    assert (asked.kind, asked.call, asked.choices) == ("approve", started.call, ("yes", "no", "always"))
    assert asked.text.startswith("Allow shell?")
    assert asked.text.endswith(f"\ntouch {tmp_path}/made")
    assert not (tmp_path / "made").exists()


def test_an_approved_call_runs_once_under_a_new_id_after_its_record(fake: FakeModel, tmp_path: Path) -> None:
    turn = Turn(fake, otherwise="ask")
    command = f"echo x >> {tmp_path}/made"
    turn.attempt(shell(command))
    first = turn.asked().call
    turn.answer("yes", APPROVED)
    turn.attempt(shell(command))
    started, finished, *_, end = turn.frames
    assert isinstance(started, ToolStarted)
    assert started.call != first
    assert isinstance(finished, ToolFinished)
    assert finished.call == started.call
    assert isinstance(end, Finished)
    assert (tmp_path / "made").read_text() == "x\n"
    # The model sees the call, its approval, and the call with its result.
    told = [each["content"] for each in fake.requests()[-1].messages if each["role"] == "tool"]
    assert told == [APPROVED, "[exit status 0]\n(no output)"]


def test_a_lost_attempt_after_the_approval_runs_the_call_if_it_recorded_none(
    fake: FakeModel, tmp_path: Path
) -> None:
    turn = Turn(fake, otherwise="ask")
    command = f"echo x >> {tmp_path}/made"
    turn.attempt(shell(command))
    turn.answer("yes", APPROVED)
    turn.tried = (*turn.tried, PastAttempt("", (), "lost"))
    turn.attempt(shell(command))
    assert (tmp_path / "made").read_text() == "x\n"


def test_an_approved_call_that_was_recorded_and_lost_is_not_made_again_by_the_host(
    fake: FakeModel, tmp_path: Path
) -> None:
    turn = Turn(fake, otherwise="ask")
    command = f"echo x >> {tmp_path}/made"
    turn.attempt(shell(command))
    turn.answer("yes", APPROVED)
    arguments = turn.tried[0].tools[0].arguments
    lost = ToolTrace("again", "shell", arguments, "unsafe")
    turn.tried = (*turn.tried, PastAttempt("", (lost,), "lost"))
    turn.attempt(shell(command))
    assert not (tmp_path / "made").exists()
    assert "outcome unknown" in fake.requests()[-1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("no", "denied by the user; it was not run"),
        ("use git", "denied by the user; it was not run: use git"),
    ],
)
def test_a_denial_reaches_the_model_and_holds_for_the_turn(
    fake: FakeModel, tmp_path: Path, answer: str, result: str
) -> None:
    turn = Turn(fake, otherwise="ask")
    command = f"touch {tmp_path}/made"
    turn.attempt(shell(command))
    turn.answer(answer, result)
    turn.attempt(shell(command))
    assert fake.requests()[-1].messages[-1]["content"] == result
    turn.tried = (PastAttempt("", (), "lost"),)  # a model that has forgotten calls once more
    turn.attempt(shell(command))
    assert turn.results() == [result]
    assert not (tmp_path / "made").exists()


def test_yes_holds_for_the_same_call_and_always_for_the_tool(fake: FakeModel, tmp_path: Path) -> None:
    turn = Turn(fake, otherwise="ask")
    turn.attempt(shell("true"))
    question = turn.asked().text
    for answer, is_asked in (("yes", True), ("always", False)):
        turn.tried = (PastAttempt("", (), "lost"),)
        turn.answers = (PastAnswer("approve", question, answer),)
        turn.attempt(shell("true"), shell(f"touch {tmp_path}/{answer}"))
        assert isinstance(turn.frames[-1], Asked) == is_asked
        assert (tmp_path / answer).exists() != is_asked
        turn.attempt({"name": "write", "arguments": {"path": f"{tmp_path}/w", "content": "x"}})
        assert turn.asked().text.startswith("Allow write?")


def test_always_is_no_consent_to_a_tool_whose_name_the_other_begins_with() -> None:
    """Names of tools are those of their servers, and often begin alike."""

    def verdict(tool: str, *answers: PastAnswer) -> Verdict:
        attempt = Attempt(assign("", answers=answers), Desk().outbox)
        return Approvals(AgentSpec("default", "builtin", {"otherwise": "ask"}), attempt).verdict(tool, "{}")

    for given, other in (("notes_read_all", "notes_read"), ("notes_read", "notes_read_all")):
        always = PastAnswer("approve", verdict(given).text, "always")
        assert verdict(given, always).decision == "allow"
        assert verdict(other, always) == verdict(other)
        assert verdict(other).decision == "ask"


def test_a_call_is_asked_about_as_long_as_it_can_be_shown_and_its_answer_is_found() -> None:
    """Also of a command with half of a surrogate pair, which no frame can carry."""

    def verdict(command: str, *answers: PastAnswer) -> Verdict:
        attempt = Attempt(assign("", answers=answers), Desk().outbox)
        approvals = Approvals(AgentSpec("default", "builtin", {"otherwise": "ask"}), attempt)
        return approvals.verdict_of("execute", {"command": command})

    room = SENTENCE_CHARACTERS_MAX - len(verdict("").text)
    assert [verdict("x" * length).decision for length in (room, room + 1)] == ["ask", "deny"]
    asked = verdict("echo \ud83d").text
    assert asked.endswith("echo ?")
    assert verdict("echo \ud83d", PastAnswer("approve", asked, "yes")).decision == "allow"


def test_a_consent_does_not_cover_another_content(fake: FakeModel, tmp_path: Path) -> None:
    def write(content: str) -> dict[str, Any]:
        return {"name": "write", "arguments": {"path": f"{tmp_path}/x", "content": content}}

    texts = set()
    for content in ("one", "two", "a" * 5000, "b" * 5000):
        turn = Turn(fake, otherwise="ask")
        turn.attempt(write(content))
        assert f"\n{tmp_path}/x\nwith " in turn.asked().text
        texts.add(turn.asked().text)
    assert len(texts) == 4


def test_a_call_that_is_too_long_to_show_is_denied(fake: FakeModel) -> None:
    turn = Turn(fake, otherwise="ask")
    turn.attempt(shell("echo " + "x" * 4000))
    (result,) = turn.results()
    assert "too long to be shown whole" in result
    assert isinstance(turn.frames[-1], Finished)


def test_allowed_calls_run_first_and_the_others_are_asked_one_after_the_other(
    fake: FakeModel, tmp_path: Path
) -> None:
    turn = Turn(fake, allow=["shell(echo *)"], otherwise="ask")
    calls = [shell(f"touch {tmp_path}/a"), shell("echo hello"), shell(f"touch {tmp_path}/b")]
    turn.attempt(*calls)
    assert sorted(turn.results()) == sorted(["[exit status 0]\nhello\n", WAITING])
    assert turn.asked().text.endswith("/a")
    turn.answer("yes", APPROVED)
    turn.attempt()
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert turn.asked().text.endswith("/b")
    turn.answer("yes", APPROVED)
    turn.attempt()
    assert (tmp_path / "b").exists()
    assert isinstance(turn.frames[-1], Finished)


def test_after_a_denial_the_calls_that_waited_are_left_to_the_model(fake: FakeModel, tmp_path: Path) -> None:
    turn = Turn(fake, otherwise="ask")
    turn.attempt(shell(f"touch {tmp_path}/a"), shell(f"touch {tmp_path}/b"))
    turn.answer("no", "denied by the user; it was not run")
    turn.attempt()
    assert isinstance(turn.frames[-1], Finished)
    assert not list(tmp_path.iterdir())


def test_a_question_of_the_model_needs_no_approval_and_can_be_denied(fake: FakeModel) -> None:
    ask = {"name": "ask", "arguments": {"question": "Which colour?"}}
    turn = Turn(fake, otherwise="ask")
    turn.attempt(ask)
    assert (turn.asked().kind, turn.asked().text) == ("clarify", "Which colour?")
    turn = Turn(fake, deny=["ask"])
    turn.attempt(ask)
    assert turn.results() == ["denied by a rule of [agents.default]; it was not run"]


def test_arguments_that_no_tool_can_run_are_told_to_the_model(fake: FakeModel) -> None:
    turn = Turn(fake, otherwise="ask")
    turn.attempt({"name": "shell", "arguments": "not json"})
    assert turn.results() == ["error: the arguments are not valid JSON"]


def test_an_approval_is_no_answer_to_the_question_of_a_server() -> None:
    """A tool of an MCP server was approved, then its server asked: only the second answer is for it."""
    gated = ToolTrace("1", "s__book", '{"to": "Rome"}', "unsafe", APPROVED)
    asked = ToolTrace("2", "s__book", '{"to": "Rome"}', "unsafe", "window", True)
    tried = (PastAttempt("", (gated,)), PastAttempt("", (asked,)))
    answers = (
        PastAnswer("approve", "Allow?", "yes", "1", 1),
        PastAnswer("clarify", "Seat?", "window", "2", 2),
    )
    work = assign("", attempt=3, tried=tried, answers=answers)
    assert clarified_calls(work) == {2: asked}
    assert approved_calls(work) == ()
    denied = assign("", attempt=2, tried=tried[:1], answers=(PastAnswer("approve", "Allow?", "no", "1", 1),))
    assert clarified_calls(denied) == {}
    assert approved_calls(denied) == ()
