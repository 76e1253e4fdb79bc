"""What the frames of an attempt hold of texts, names and times that no frame can carry as they are."""

import asyncio
import json
from typing import Any

import pytest

from ipc.bounds import NAME_CHARACTERS_MAX
from ipc.messages import Answered, Asked, Beat, Finished, Noted, ToolFinished, Usage
from tests.worker.test_attempt import Desk, Lamp, answered, run
from worker.attempt import Attempt
from worker.outbox import UNACKNOWLEDGED_FRAMES_MAX
from worker.tools import Note, Report

HALF = "a\ud83db"


def test_a_note_is_cut_and_has_no_half_of_a_surrogate_pair() -> None:
    async def answer(attempt: Attempt) -> str:
        attempt.note(HALF)
        attempt.note("x" * 501)
        return "stop"

    notes = [frame.text for frame in answered(answer).frames if isinstance(frame, Noted)]
    assert notes == ["a?b", "x" * 500]


class Telling(Lamp):
    async def run(self, arguments: dict[str, Any], note: Note) -> str:
        note("it warms up")
        return "it shines"


def test_a_note_of_a_tool_names_its_call() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            await attempt.tool(Telling(desk), "c_7", "{}")
            return "stop"

        await attempt.run(answer)

    (note,) = [frame for frame in run(Desk, act).frames if isinstance(frame, Noted)]
    assert (note.call, note.text) == ("c_7", "it warms up")


def test_the_name_of_a_model_is_recorded_as_far_as_a_name_goes() -> None:
    async def answer(attempt: Attempt) -> str:
        attempt.spend(Usage(1, 2), "m" * (NAME_CHARACTERS_MAX + 1))
        return "stop"

    end = answered(answer).last()
    assert isinstance(end, Finished), end
    assert (end.model, end.usage) == ("m" * NAME_CHARACTERS_MAX, Usage(1, 2))


def test_the_reason_of_a_call_that_is_not_run_is_cut_like_any_result() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            await attempt.refuse(Lamp(desk), "c_1", "{}", "x" * 70_000 + HALF)
            return "stop"

        await attempt.run(answer)

    (finished,) = [frame for frame in run(Desk, act).frames if isinstance(frame, ToolFinished)]
    assert not finished.ok
    assert "\n[… 6003 characters left out …]\n" in finished.result
    assert finished.result.endswith("xa?b")


def test_the_time_of_a_call_is_recorded_in_milliseconds() -> None:
    async def answer(attempt: Attempt) -> str:
        await attempt.begin_tool("lamp", "pure", "c_1", "{}")
        await attempt.end_tool("c_1", Report("it shines"), 1.25)
        return "stop"

    (finished,) = [frame for frame in answered(answer).frames if isinstance(frame, ToolFinished)]
    assert finished.ms == 1250


@pytest.mark.parametrize("is_about_a_call", [True, False])
def test_a_question_and_its_choices_have_no_half_of_a_surrogate_pair(is_about_a_call: bool) -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(attempt: Attempt) -> str:
            if is_about_a_call:
                await attempt.ask(Lamp(desk), "c_1", json.dumps({"on": HALF}), HALF, (HALF, "no"))
            return await attempt.question("clarify", HALF, (HALF, "no"))

        await attempt.run(answer)

    asked = run(Desk, act).last()
    assert isinstance(asked, Asked), asked
    assert (asked.text, asked.choices) == ("a?b", ("a?b", "no"))


def full() -> Desk:
    """Nothing is acknowledged, and no frame has room any more."""
    desk = Desk(lambda _: False)
    for _ in range(UNACKNOWLEDGED_FRAMES_MAX):
        desk.outbox.post(Beat())
    return desk


def test_text_that_waited_for_room_until_the_attempt_had_ended_is_not_sent() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        async def answer(_: Attempt) -> str:
            return "stop"

        late = asyncio.create_task(attempt.stream("late"))
        await asyncio.sleep(0)
        running = asyncio.create_task(attempt.run(answer))
        await asyncio.sleep(0)
        desk.outbox.acknowledge(len(desk.frames))
        await running
        with pytest.raises(RuntimeError, match="over"):
            await late

    end = run(full, act).last()
    assert isinstance(end, Finished), end
    assert end.text == ""


def test_a_question_waits_for_room_like_any_other_frame() -> None:
    async def act(desk: Desk, attempt: Attempt) -> None:
        asking = asyncio.create_task(attempt.question("clarify", "Which one?", holds=True))
        for _ in range(10):
            await asyncio.sleep(0)
        assert "Asked" not in desk.kinds()
        desk.outbox.acknowledge(len(desk.frames))
        await desk.until(lambda: "Asked" in desk.kinds())
        attempt.answered(Answered("s/1", 1, "q", 1, "the first"))
        assert await asking == "the first"

    run(full, act)
