"""The order of an attempt's frames and of its end, and how many steers it keeps."""

import asyncio

import pytest
from msgspec.structs import replace

from ipc.bounds import TEXT_CHARACTERS_MAX
from ipc.messages import AgentFault, Answered, Delta, Failed, Steer, ToolStarted
from tests.worker.test_attempt import Desk, Lamp, answered, run
from worker.attempt import Attempt
from worker.errors import AgentError, HumanNeeded


def test_text_goes_before_the_tool_call_that_follows_it() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            await attempt.stream("I switch it on. ")
            await attempt.tool(Lamp(desk), "c_1", '{"on": true}')
            await attempt.stream("Done.")
            return "stop"

        await attempt.run(answer)

    desk = run(Desk, act)
    assert desk.kinds() == ["Delta", "ToolStarted", "ToolFinished", "Delta", "Finished"]
    said, started = desk.frames[:2]
    assert isinstance(said, Delta)
    assert isinstance(started, ToolStarted)
    assert (said.text, started.offset) == ("I switch it on. ", len("I switch it on. "))


def test_a_later_attempt_continues_where_the_earlier_ones_have_arrived() -> None:
    """Deltas count from the beginning of the turn, tool calls from that of the attempt."""

    async def act(desk: Desk, attempt: Attempt) -> None:
        later = Attempt(replace(attempt.assign, attempt=2, offset=100), desk.outbox)

        async def answer(attempt: Attempt) -> str:
            await attempt.stream("abc")
            await attempt.tool(Lamp(desk), "c_1", '{"on": true}')
            await attempt.stream("def")
            with pytest.raises(AgentError, match="the answer grew past"):
                await attempt.stream("x" * (TEXT_CHARACTERS_MAX - 105))
            return "stop"

        await later.run(answer)

    desk = run(Desk, act)
    assert [frame.offset for frame in desk.frames if isinstance(frame, Delta | ToolStarted)] == [100, 3, 103]


def test_an_attempt_keeps_so_many_steers_and_none_after_its_end() -> None:
    taken: list[list[str]] = []

    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            for number in range(40):
                attempt.steer(Steer("s/1", 1, f"m_{number}", str(number)))
            taken.append(await attempt.take_steers())
            taken.append(await attempt.take_steers())
            return "stop"

        await attempt.run(answer)
        attempt.steer(Steer("s/1", 1, "m_late", "too late"))
        with pytest.raises(RuntimeError, match="the attempt is over"):
            await attempt.take_steers()

    desk = run(Desk, act)
    assert taken == [[str(number) for number in range(32)], []]
    assert desk.kinds() == ["Steered"] * 32 + ["Finished"]


def test_a_steer_makes_room_for_another_when_it_is_taken() -> None:
    async def answer(attempt: Attempt) -> str:
        for number in range(100):
            attempt.steer(Steer("s/1", 1, f"m_{number}", str(number)))
            assert await attempt.take_steers() == [str(number)]
        return "stop"

    assert answered(answer).kinds() == ["Steered"] * 100 + ["Finished"]


def test_a_summary_is_cut_where_it_is_longer_than_its_line() -> None:
    def summary(length: int) -> str:
        start = '{"on": true, "x": "'
        arguments = start + "y" * (length - len(start) - 2) + '"}'

        async def act(desk: Desk, attempt: Attempt) -> None:
            await attempt.tool(Lamp(desk), "c_1", arguments)

        started = run(Desk, act).frames[0]
        assert isinstance(started, ToolStarted)
        assert started.arguments == arguments
        return started.summary

    assert [len(summary(length)) for length in (119, 120, 121)] == [119, 120, 120]
    assert summary(120).endswith('y"}')
    assert summary(121).endswith("y…")


@pytest.mark.parametrize("ending", ["answers", "asks", "breaks"])
@pytest.mark.parametrize("are_ended", [True, False])
def test_the_processes_of_an_agent_end_before_its_attempt_does(ending: str, are_ended: bool) -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        ended: list[list[str]] = []

        async def answer(attempt: Attempt) -> str:
            if ending == "asks":
                raise HumanNeeded("clarify", "which one?", (), "")
            if ending == "breaks":
                raise ValueError
            return "stop"

        async def end_processes() -> bool:
            ended.append(desk.kinds())
            return are_ended

        await attempt.run(answer, end_processes)
        assert ended == [[]]
        assert attempt.has_left_processes is not are_ended

    desk = run(Desk, act)
    [end] = desk.frames
    if are_ended:
        assert type(end).__name__ == {"answers": "Finished", "asks": "Asked", "breaks": "Failed"}[ending]
    else:
        assert isinstance(end, Failed)
        assert (end.error, end.again) == ("it left processes that could not be ended", True)


def test_an_agent_is_told_once_that_its_turn_was_interrupted() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        told: list[bool] = []
        attempt.on_cancel = lambda: told.append(attempt.is_cancelled)
        attempt.cancel()
        attempt.cancel()
        assert told == [True]

    run(Desk, act)


def test_text_goes_before_the_question_that_follows_it() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            await attempt.stream("There are two. ")
            await attempt.question("clarify", "Which one?", holds=True)
            return "stop"

        running = asyncio.create_task(attempt.run(answer))
        await desk.until(lambda: "Asked" in desk.kinds())
        attempt.answered(Answered("s/1", 1, "q", 1, "the first"))
        await running

    assert run(Desk, act).kinds() == ["Delta", "Asked", "Finished"]


def test_an_agent_that_cannot_be_started_is_told_before_its_turn_fails() -> None:
    async def answer(attempt: Attempt) -> str:
        error = AgentError("there is no such program", "install it")
        error.cannot_start = True
        raise error

    desk = answered(answer)
    assert desk.kinds() == ["AgentFault", "Failed"]
    assert desk.frames[0] == AgentFault("there is no such program", "install it")
