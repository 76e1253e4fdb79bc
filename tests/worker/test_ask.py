"""The ask tool: the attempt ends with the question, and the next one goes on from the answer."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.messages import (
    AgentSpec,
    Asked,
    Finished,
    FromWorker,
    PastAttempt,
    ToolFinished,
    ToolStarted,
    ToolTrace,
)
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.model import Model
from worker.tools.ask import Ask
from worker.tools.shell import Shell

COLOUR = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}
BRUSH = {"name": "ask", "arguments": {"question": "Which brush?"}}
ECHO = {"name": "shell", "arguments": {"command": "echo done"}}


def answer(fake: FakeModel, desk: Desk, tried: tuple[PastAttempt, ...] = ()) -> list[FromWorker]:
    async def scene() -> None:
        model = Model()
        spec = AgentSpec("default", "builtin", {"tools": ["shell", "ask"]})
        agent = Builtin(spec, model, {"shell": Shell, "ask": Ask})
        number = len(tried) + 1
        attempt = Attempt(assign(fake.base_url, "paint it", attempt=number, tried=tried), desk.outbox)
        await attempt.run(agent.answer)
        with pytest.raises(RuntimeError, match="over"):
            await attempt.stream("late")
        await model.close()

    asyncio.run(scene())
    return [frame for frame in desk.frames if type(frame).__name__ != "Noted"]


def play(fake: FakeModel, *calls: dict[str, Any], tried: tuple[PastAttempt, ...] = ()) -> list[FromWorker]:
    fake.set_mode("tools", calls=list(calls), text="Painted.")
    return answer(fake, Desk(), tried)


def test_the_tool_is_offered(fake: FakeModel) -> None:
    play(fake, COLOUR)
    assert fake.requests()[0].tools == ["shell", "ask"]


def test_a_question_ends_the_attempt_once_its_call_is_written_down(fake: FakeModel) -> None:
    started, asked = play(fake, COLOUR)
    assert isinstance(started, ToolStarted)
    assert (started.name, started.repeat) == ("ask", "pure")
    assert isinstance(asked, Asked)
    choices = ("red", "blue")
    question = Asked("s/1", 1, started.call, "clarify", "Which colour?", choices, usage=asked.usage)
    assert asked == replace(question, model="fake")
    assert len(fake.requests()) == 1


def test_nothing_is_asked_before_the_call_is_safe(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[COLOUR])

    async def scene() -> None:
        desk, model = Desk(lambda _: False), Model()
        agent = Builtin(AgentSpec("default", "builtin", {"tools": ["ask"]}), model)
        task = asyncio.create_task(Attempt(assign(fake.base_url), desk.outbox).run(agent.answer))
        await desk.until(lambda: desk.kinds() == ["ToolStarted"])
        for _ in range(100):
            await asyncio.sleep(0)
        assert desk.kinds() == ["ToolStarted"]
        desk.outbox.acknowledge(1)
        await task
        assert desk.kinds() == ["ToolStarted", "Asked"]
        await model.close()

    asyncio.run(scene())


def test_the_other_calls_of_the_reply_are_made_first(fake: FakeModel) -> None:
    frames = play(fake, COLOUR, ECHO, BRUSH)
    results = [frame for frame in frames if isinstance(frame, ToolFinished)]
    told = sorted(result.result for result in results)
    assert told[0] == "[exit status 0]\ndone\n"
    assert told[1].startswith("not asked: another question was asked first")
    assert isinstance(frames[-1], Asked)
    assert frames[-1].text == "Which colour?"
    assert max(map(frames.index, results)) < len(frames) - 2


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"question": " "},
        {"question": "Which?", "choices": "red"},
        {"question": "x" * 5000},
        {"question": "Which?", "choices": ["c"] * 21},
        {"question": "Which?", "choices": ["c" * 201]},
        "not json",
    ],
)
def test_a_call_that_is_no_question_is_told_to_the_model(fake: FakeModel, arguments: Any) -> None:
    frames = play(fake, {"name": "ask", "arguments": arguments})
    assert isinstance(frames[1], ToolFinished)
    assert frames[1].result.startswith("error: ")
    assert isinstance(frames[-1], Finished)


def test_the_next_attempt_goes_on_from_the_answer(fake: FakeModel) -> None:
    asked = ToolTrace("q1", "ask", '{"question": "Which colour?"}', "pure", "blue", True)
    frames = play(fake, COLOUR, tried=(PastAttempt("", (asked,)),))
    assert isinstance(frames[-1], Finished)
    assert frames[-1].text == "Painted."
    assert fake.requests()[0].messages[-1] == {"role": "tool", "tool_call_id": "q1", "content": "blue"}
