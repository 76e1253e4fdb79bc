"""Questions of an attempt: they end it or are held, and an answer holds for the whole turn."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from ipc.messages import Answered, Asked, Failed, Finished, PastAnswer, Usage
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.attempt import Attempt

Scene = Callable[[Attempt], Awaitable[str]]


def answer(hold: int, text: str, turn: str = "s/1", attempt: int = 1) -> Answered:
    return Answered(turn, attempt, f"{turn}#{hold}", hold, text)


async def play(desk: Desk, agent: Scene, *answers: PastAnswer) -> "tuple[Attempt, asyncio.Task[None]]":
    attempt = Attempt(replace(assign("http://127.0.0.1:9/v1"), answers=answers), desk.outbox)
    return attempt, asyncio.create_task(attempt.run(agent))


def test_a_question_without_a_call_ends_the_attempt_with_its_cost() -> None:
    async def agent(attempt: Attempt) -> str:
        attempt.spend(Usage(7, 3))
        return await attempt.question("approve", "Go on?", ("yes", "no"))

    async def scene() -> None:
        desk = Desk()
        _, task = await play(desk, agent)
        await task
        assert desk.last() == Asked("s/1", 1, "", "approve", "Go on?", ("yes", "no"), usage=Usage(7, 3))

    asyncio.run(scene())


@pytest.mark.parametrize("holds", [True, False])
def test_the_same_question_is_answered_from_the_turn(holds: bool) -> None:
    async def agent(attempt: Attempt) -> str:
        await attempt.stream(await attempt.question("clarify", "Which colour?", holds=holds))
        return "stop"

    async def scene() -> None:
        desk = Desk()
        _, task = await play(desk, agent, PastAnswer("clarify", "Which colour?", "red"))
        await task
        assert desk.kinds() == ["Delta", "Finished"]
        assert desk.last() == Finished("s/1", 1, "red")

    asyncio.run(scene())


@pytest.mark.parametrize(
    "past", [PastAnswer("approve", "Which colour?", "red"), PastAnswer("clarify", "Which brush?", "red")]
)
def test_an_answer_to_another_question_is_none(past: PastAnswer) -> None:
    async def agent(attempt: Attempt) -> str:
        return await attempt.question("clarify", "Which colour?")

    async def scene() -> None:
        desk = Desk()
        _, task = await play(desk, agent, past)
        await task
        assert desk.kinds() == ["Asked"]

    asyncio.run(scene())


def test_a_held_question_waits_for_its_own_answer_and_keeps_it() -> None:
    async def agent(attempt: Attempt) -> str:
        first = await attempt.question("clarify", "Which colour?", ("red", "blue"), holds=True)
        again = await attempt.question("clarify", "Which colour?", ("red", "blue"), holds=True)
        second = await attempt.question("clarify", "Which brush?", holds=True)
        await attempt.stream(f"{first} {again} {second}")
        return "stop"

    async def scene() -> None:
        desk = Desk()
        attempt, task = await play(desk, agent)
        await desk.until(lambda: desk.kinds() == ["Asked"])
        assert desk.last() == Asked("s/1", 1, "", "clarify", "Which colour?", ("red", "blue"), 1)
        attempt.answered(answer(2, "early"))
        attempt.answered(answer(1, "red"))
        await desk.until(lambda: desk.kinds() == ["Asked", "Asked"])
        attempt.answered(answer(1, "late"))
        await asyncio.sleep(0)
        attempt.answered(answer(2, "small"))
        await task
        assert desk.last() == Finished("s/1", 1, "red red small")
        attempt.answered(answer(2, "later still"))

    asyncio.run(scene())


def test_questions_of_several_tasks_are_asked_one_after_the_other() -> None:
    async def agent(attempt: Attempt) -> str:
        asked = [attempt.question("clarify", text, holds=True) for text in ("one", "two", "one")]
        await attempt.stream(" ".join(await asyncio.gather(*asked)))
        return "stop"

    async def scene() -> None:
        desk = Desk()
        attempt, task = await play(desk, agent)
        await desk.until(lambda: len(desk.frames) == 1)
        attempt.answered(answer(1, "1"))
        await desk.until(lambda: len(desk.frames) == 2)
        attempt.answered(answer(2, "2"))
        await task
        assert desk.kinds() == ["Asked", "Asked", "Delta", "Finished"]
        assert desk.last() == Finished("s/1", 1, "1 2 1")

    asyncio.run(scene())


def test_a_question_that_its_agent_gave_up_stays_open_until_it_is_answered() -> None:
    async def agent(attempt: Attempt) -> str:
        waiting = asyncio.ensure_future(attempt.question("clarify", "one", holds=True))
        await asyncio.sleep(0)
        waiting.cancel()
        await attempt.stream(await attempt.question("clarify", "two", holds=True))
        return "stop"

    async def scene() -> None:
        desk = Desk()
        attempt, task = await play(desk, agent)
        await desk.until(lambda: len(desk.frames) == 1)
        attempt.answered(answer(1, "1"))
        await desk.until(lambda: len(desk.frames) == 2)
        attempt.answered(answer(2, "2"))
        await task
        assert desk.last() == Finished("s/1", 1, "2")

    asyncio.run(scene())


def test_a_question_that_no_frame_can_carry_fails_the_attempt() -> None:
    async def agent(attempt: Attempt) -> str:
        return await attempt.question("clarify", "x" * 5_000, holds=True)

    async def scene() -> None:
        desk = Desk()
        _, task = await play(desk, agent)
        await task
        assert isinstance(desk.last(), Failed)

    asyncio.run(scene())
