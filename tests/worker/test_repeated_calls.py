"""The third equal call in a row is asked about, and the sixth; whatever attempt made the others."""

import asyncio

import pytest
from msgspec.structs import replace

from ipc.messages import PastAnswer, PastAttempt, ToolTrace
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.attempt import Attempt
from worker.errors import AgentError, HumanNeeded
from worker.repeated_calls import RepeatedCalls

LOOK = ("shell", '{"command": "ls"}')
QUESTION = 'shell is to run {} times in a row with the same arguments: {{"command": "ls"}}. Go on?'


def answer(times: int, text: str) -> PastAnswer:
    return PastAnswer("approve", QUESTION.format(times), text)


def lost(*calls: str) -> PastAttempt:
    return PastAttempt("", tuple(ToolTrace(call, *LOOK, "pure") for call in calls), "lost")


def calls(
    *made: tuple[str, str],
    answers: tuple[PastAnswer, ...] = (),
    tried: tuple[PastAttempt, ...] = (),
    number: int = 1,
) -> int:
    """Makes calls until a question comes; returns how many were made."""

    async def act() -> int:
        assigned = replace(assign("http://127.0.0.1:9/v1"), answers=answers, tried=tried, attempt=number)
        repeats = RepeatedCalls(Attempt(assigned, Desk().outbox))
        for count, call in enumerate(made):
            try:
                await repeats.check(*call)
            except HumanNeeded as needed:
                asked = needed.kind, needed.choices, needed.call
                return count if asked == ("approve", ("yes", "no"), "") else -1
        return len(made)

    return asyncio.run(act())


def test_the_third_equal_call_is_asked_about_and_others_are_not() -> None:
    other = ("shell", '{"command": "pwd"}')
    assert calls(LOOK, LOOK, LOOK) == 2
    assert calls(LOOK, LOOK, other, LOOK, LOOK, ("read", LOOK[1]), LOOK, LOOK) == 8


def test_after_a_yes_the_count_begins_again() -> None:
    assert calls(*[LOOK] * 9, answers=(answer(3, "yes"),)) == 5
    assert calls(*[LOOK] * 9, answers=(answer(3, "yes"), answer(6, "yes"))) == 8


def test_any_other_answer_ends_the_attempt_with_its_reason() -> None:
    with pytest.raises(AgentError, match="it called shell 3 times in a row with the same arguments"):
        calls(*[LOOK] * 3, answers=(answer(3, "no"),))


def test_calls_of_earlier_attempts_count() -> None:
    assert calls(LOOK, tried=(lost("c1"), lost("c2")), number=3) == 0
    assert calls(LOOK, LOOK, tried=(lost("c1"),), number=2) == 1


def test_a_call_that_a_person_was_asked_about_counts_when_it_is_made() -> None:
    asked = PastAnswer("approve", "Allow shell?", "yes", "c2", attempt=1)
    assert calls(LOOK, LOOK, tried=(lost("c1", "c2"),), answers=(asked,), number=2) == 1
    other_attempt = replace(asked, attempt=7)
    assert calls(LOOK, LOOK, tried=(lost("c1", "c2"),), answers=(other_attempt,), number=2) == 0


def question_about(arguments: str, *answered: str) -> str:
    """Of a third equal call; questions that were answered with a yes are not asked again."""
    answers = tuple(PastAnswer("approve", text, "yes") for text in answered)

    async def act() -> str:
        assigned = replace(assign("http://127.0.0.1:9/v1"), answers=answers)
        repeats = RepeatedCalls(Attempt(assigned, Desk().outbox))
        try:
            for _ in range(3):
                await repeats.check("write", arguments)
        except HumanNeeded as needed:
            return needed.text
        return ""

    return asyncio.run(act())


def test_long_arguments_are_shown_by_their_beginning_and_told_apart() -> None:
    asks = "write is to run 3 times in a row with the same arguments: "
    assert question_about("x" * 200) == f"{asks}{'x' * 200}. Go on?"
    first, second = (question_about("x" * 200 + end) for end in "ab")
    assert first.startswith(f"{asks}{'x' * 199}… (sha256 ")
    assert len(first) < len(asks) + 250
    assert question_about("x" * 200 + "a", first) == ""
    assert question_about("x" * 200 + "b", first) == second
