"""One attempt, in the test's own loop: what an agent says and does, as the frames a supervisor would get."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.bounds import TEXT_CHARACTERS_MAX
from ipc.codec import Decoder
from ipc.messages import (
    AgentSpec,
    Delta,
    Failed,
    Finished,
    FromWorker,
    Noted,
    PastTurn,
    Steer,
    Steered,
    ToolClass,
    ToolFinished,
    ToolStarted,
    Usage,
)
from ipc.zmtp import Sent
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from worker.agents.builtin import Builtin
from worker.attempt import Answer, Attempt
from worker.errors import AgentError
from worker.model import Model
from worker.outbox import UNACKNOWLEDGED_FRAMES_MAX, Outbox
from worker.tools import Note


class Desk:
    """The far end of an outbox: keeps the frames, and acknowledges those that `safe` says yes to."""

    def __init__(self, safe: Callable[[FromWorker], bool] = lambda _: True) -> None:
        self.frames: list[FromWorker] = []
        self.outbox = Outbox(self._take, failed=lambda sent: pytest.fail(str(sent)))
        self._safe = safe
        self._decoder: Decoder[FromWorker] = Decoder(FromWorker)
        self._arrived = asyncio.Event()

    async def until(self, found: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not found():
                self._arrived.clear()
                await self._arrived.wait()

    def _take(self, parts: list[bytes]) -> Sent:
        number, content = parts
        assert int.from_bytes(number, "big") == len(self.frames) + 1
        frame = self._decoder.decode(content)
        self.frames.append(frame)
        self._arrived.set()
        if self._safe(frame):
            asyncio.get_running_loop().call_soon(self.outbox.acknowledge, len(self.frames))
        return Sent.SENT

    def kinds(self) -> list[str]:
        return [type(frame).__name__ for frame in self.frames]

    def last(self) -> FromWorker:
        return self.frames[-1]


class Lamp:
    """A tool that remembers what it was asked, and what had been announced by then."""

    name = "lamp"
    description = "switches a lamp"
    schema: dict[str, Any] = {"type": "object", "properties": {"on": {"type": "boolean"}}}  # noqa: RUF012
    repeat: ToolClass = "idempotent"

    def __init__(self, desk: Desk, result: str = "it shines") -> None:
        self._desk = desk
        self._result = result
        self.asked: list[dict[str, Any]] = []
        self.announced: list[list[str]] = []

    async def run(self, arguments: dict[str, Any], note: Note) -> str:
        self.asked.append(arguments)
        self.announced.append(self._desk.kinds())
        if arguments.get("on") is None:
            raise LookupError("which way?")
        return self._result

    def close(self) -> None: ...


def run(desk_of: Callable[[], Desk], act: Callable[[Desk, Attempt], Awaitable[None]]) -> Desk:
    async def scene() -> Desk:
        desk = desk_of()
        await act(desk, Attempt(assign("http://127.0.0.1:1/v1"), desk.outbox))
        return desk

    return asyncio.run(scene())


def answered(answer: Answer) -> Desk:
    async def act(_: Desk, attempt: Attempt) -> None:
        await attempt.run(answer)

    return run(Desk, act)


def test_what_is_said_in_one_tick_is_one_delta() -> None:
    async def answer(attempt: Attempt) -> str:
        await attempt.stream("one ")
        await attempt.stream("two ")
        await asyncio.sleep(0)
        await attempt.stream("")
        await attempt.stream("three")
        attempt.spend(Usage(1, 0))
        attempt.spend(Usage(0, 2))
        return "length"

    assert answered(answer).frames == [
        Delta("s", "s/1", 1, 0, "one two "),
        Delta("s", "s/1", 1, 8, "three"),
        Finished("s/1", 1, "one two three", Usage(1, 2), "length"),
    ]


def test_a_long_speech_is_cut_into_deltas_without_a_gap() -> None:
    text = "".join(chr(0x1F600 + number % 50) for number in range(200_000))

    async def answer(attempt: Attempt) -> str:
        await attempt.stream("so: ")
        await attempt.stream(text)
        return "stop"

    *deltas, end = answered(answer).frames
    assert len(deltas) > 5
    spoken = ""
    for delta in deltas:
        assert isinstance(delta, Delta)
        assert delta.offset == len(spoken)
        spoken += delta.text
    assert isinstance(end, Finished)
    assert end.text == spoken == "so: " + text


def test_an_answer_has_a_bound() -> None:
    async def answer(attempt: Attempt) -> str:
        while True:
            await attempt.stream("x" * 100_000)
            await asyncio.sleep(0)

    end = answered(answer).last()
    assert isinstance(end, Failed)
    assert str(TEXT_CHARACTERS_MAX) in end.error


def test_half_a_surrogate_pair_does_not_break_the_wire() -> None:
    async def answer(attempt: Attempt) -> str:
        await attempt.stream("a\ud83db")
        return "stop"

    assert answered(answer).last() == Finished("s/1", 1, "a?b")


def test_a_broken_agent_fails_without_its_words(capfd: pytest.CaptureFixture[str]) -> None:
    async def answer(attempt: Attempt) -> str:
        await attempt.stream("so far")
        raise KeyError("a person's secret")

    desk = answered(answer)
    assert desk.frames == [
        Delta("s", "s/1", 1, 0, "so far"),
        Failed("s/1", 1, "the agent broke (KeyError)", "the worker's log says where: hermesctl logs"),
    ]
    log = capfd.readouterr().err
    assert "test_attempt.py" in log
    assert "a person's secret" not in log.replace('raise KeyError("a person\'s secret")', "")


def test_an_agent_that_cancels_itself_still_ends() -> None:
    async def answer(attempt: Attempt) -> str:
        raise asyncio.CancelledError

    end = answered(answer).last()
    assert isinstance(end, Failed)
    assert end.again is True


def test_nothing_is_said_after_the_end() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(_: Attempt) -> str:
            return "stop"

        await attempt.run(answer)
        with pytest.raises(RuntimeError, match="over"):
            await attempt.stream("late")
        with pytest.raises(RuntimeError, match="over"):
            attempt.note("late")

    assert run(Desk, act).kinds() == ["Finished"]


def test_an_agent_waits_when_nothing_is_acknowledged() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        said = 0

        async def answer(attempt: Attempt) -> str:
            nonlocal said
            for _ in range(3 * UNACKNOWLEDGED_FRAMES_MAX):
                await attempt.stream("word ")
                said += 1
                await asyncio.sleep(0)
            return "stop"

        task = asyncio.create_task(attempt.run(answer))
        await desk.until(lambda: len(desk.frames) == UNACKNOWLEDGED_FRAMES_MAX)
        # The agent's tick and the flush's tick have come round many times over, and nothing moved.
        for _ in range(100):
            await asyncio.sleep(0)
        assert said == len(desk.frames) == UNACKNOWLEDGED_FRAMES_MAX
        attempt.note("left out, since nobody reads")
        assert len(desk.frames) == UNACKNOWLEDGED_FRAMES_MAX
        desk.outbox.acknowledge(10)
        await desk.until(lambda: len(desk.frames) == UNACKNOWLEDGED_FRAMES_MAX + 10)
        while not task.done():
            desk.outbox.acknowledge(len(desk.frames))
            await asyncio.sleep(0)
        await task
        assert "Noted" not in desk.kinds()

    end = run(lambda: Desk(lambda _: False), act).last()
    assert isinstance(end, Finished)
    assert end.text == "word " * (3 * UNACKNOWLEDGED_FRAMES_MAX)


def converse(
    fake: FakeModel,
    tool_of: Callable[[Desk], Lamp],
    meanwhile: Callable[[Desk, Attempt], None] = lambda desk, attempt: None,
    history: tuple[PastTurn, ...] = (),
    context_tokens: int = 0,
) -> tuple[Desk, Lamp]:
    """A whole turn of the built-in agent with one tool."""

    async def scene() -> tuple[Desk, Lamp]:
        desk, model = Desk(), Model()
        lamp = tool_of(desk)
        agent = Builtin(AgentSpec("default", "builtin", {"tools": ["lamp"]}), model, {"lamp": lambda: lamp})
        work = assign(fake.base_url, "light, please", history=history)
        model_of_it = replace(work.model, context_tokens=context_tokens)
        attempt = Attempt(replace(work, model=model_of_it), desk.outbox)
        meanwhile(desk, attempt)
        await attempt.run(agent.answer)
        await model.close()
        return desk, lamp

    return asyncio.run(scene())


def test_a_tool_runs_after_its_start_is_written_down_and_its_result_goes_back(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[{"name": "lamp", "arguments": {"on": True}}], text="There is light.")
    desk, lamp = converse(fake, Lamp)
    assert lamp.asked == [{"on": True}]
    assert lamp.announced == [["ToolStarted"]]
    started, finished, *_, end = desk.frames
    assert isinstance(started, ToolStarted)
    assert (started.name, started.arguments, started.repeat) == ("lamp", '{"on": true}', "idempotent")
    assert isinstance(finished, ToolFinished)
    assert (finished.call, finished.ok, finished.result) == (started.call, True, "it shines")
    assert isinstance(end, Finished)
    assert end.text == "There is light."
    assert end.usage.output_tokens == 3
    second = fake.requests()[1].messages
    assert [message["role"] for message in second] == ["system", "user", "assistant", "tool"]
    assert second[3]["content"] == "it shines"
    assert second[2]["tool_calls"][0]["id"] == second[3]["tool_call_id"] == started.call


def test_a_tool_does_not_run_until_the_supervisor_has_acknowledged(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[{"name": "lamp", "arguments": {"on": True}}])

    async def scene() -> None:
        desk, model = Desk(lambda _: False), Model()
        lamp = Lamp(desk)
        agent = Builtin(AgentSpec("default", "builtin", {"tools": ["lamp"]}), model, {"lamp": lambda: lamp})
        task = asyncio.create_task(Attempt(assign(fake.base_url), desk.outbox).run(agent.answer))
        await desk.until(lambda: desk.kinds() == ["ToolStarted"])
        for _ in range(100):
            await asyncio.sleep(0)
        assert lamp.asked == []
        desk.outbox.acknowledge(1)
        await task
        assert lamp.asked == [{"on": True}]
        await model.close()

    asyncio.run(scene())


def test_what_goes_wrong_with_a_tool_is_told_to_the_model(fake: FakeModel) -> None:
    calls = [
        [{"name": "lamp", "arguments": "not json"}],
        [{"name": "lamp", "arguments": [1]}],
        [{"name": "lamp", "arguments": {}}],
        [{"name": "kettle", "arguments": {}}],
    ]
    fake.set_mode("tools", calls=calls, text="I give up.")
    desk, lamp = converse(fake, Lamp)
    end = desk.last()
    assert isinstance(end, Finished)
    assert end.text == "I give up."
    assert lamp.asked == [{}]
    told = [message["content"] for message in fake.requests()[-1].messages if message["role"] == "tool"]
    assert told[:3] == [
        "error: the arguments are not valid JSON",
        "error: the arguments are not a JSON object",
        "error: LookupError: which way?",
    ]
    assert "there are: lamp" in told[3]
    assert desk.kinds().count("ToolStarted") == desk.kinds().count("ToolFinished") == 3


def test_a_long_result_is_cut_before_it_travels(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[{"name": "lamp", "arguments": {"on": True}}])
    desk, _ = converse(fake, lambda desk: Lamp(desk, "z" * 10_000_000))
    finished = desk.frames[1]
    assert isinstance(finished, ToolFinished)
    assert len(finished.result) < 70_000
    assert "characters left out" in finished.result


def test_a_steer_is_taken_in_between_tool_calls_and_said_so(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=[{"name": "lamp", "arguments": {"on": True}}])

    def meanwhile(_: Desk, attempt: Attempt) -> None:
        attempt.steer(Steer("s/1", 1, "m_2", "a dim one"))

    desk, _ = converse(fake, Lamp, meanwhile)
    assert desk.frames[2] == Steered("s/1", 1, "m_2")
    assert fake.requests()[1].messages[-1] == {"role": "user", "content": "a dim one"}


def test_a_steer_that_comes_too_late_is_not_claimed(fake: FakeModel) -> None:
    def meanwhile(_: Desk, attempt: Attempt) -> None:
        attempt.steer(Steer("s/1", 1, "m_2", "wait"))

    desk, _ = converse(fake, Lamp, meanwhile)
    assert "Steered" not in desk.kinds()
    assert desk.kinds()[-1] == "Finished"


def test_a_model_that_only_calls_tools_is_stopped(fake: FakeModel) -> None:
    calls = [[{"name": "lamp", "arguments": {"on": number % 2 == 0}}] for number in range(200)]
    fake.set_mode("tools", calls=calls)
    desk, lamp = converse(fake, Lamp)
    end = desk.last()
    assert isinstance(end, Failed)
    assert "without coming to an answer" in end.error
    assert len(lamp.asked) == 50


def test_calls_of_the_same_id_are_told_apart(fake: FakeModel) -> None:
    light = {"name": "lamp", "arguments": {"on": True}}
    dark = {"name": "lamp", "arguments": {"on": False}}
    fake.set_mode("tools", calls=[[light, light], [dark]], id="call")
    desk, _ = converse(fake, Lamp)
    started = [frame.call for frame in desk.frames if isinstance(frame, ToolStarted)]
    assert len(set(started)) == 3
    results = [
        message["tool_call_id"] for message in fake.requests()[-1].messages if message["role"] == "tool"
    ]
    assert results == started


def test_an_unknown_tool_in_the_settings_is_named() -> None:
    with pytest.raises(AgentError, match="no tool named 'spoon'"):
        Builtin(AgentSpec("default", "builtin", {"tools": ["spoon"]}), Model())


def test_a_setting_of_the_wrong_kind_is_named() -> None:
    with pytest.raises(AgentError, match="system of the agent 'default' is not a text"):
        Builtin(AgentSpec("default", "builtin", {"system": 7}), Model())


def test_a_note_is_fleeting() -> None:
    async def answer(attempt: Attempt) -> str:
        attempt.note("waiting")
        return "stop"

    assert answered(answer).frames == [Noted("s/1", 1, "waiting"), Finished("s/1", 1, "")]
