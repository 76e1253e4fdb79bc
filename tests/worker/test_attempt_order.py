"""The order of an attempt's frames, and how many steers it keeps."""

import pytest

from ipc.messages import Delta, Steer, ToolStarted
from tests.worker.test_attempt import Desk, Lamp, answered, run
from worker.attempt import Attempt


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
