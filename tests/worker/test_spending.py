"""Before a turn goes on beyond a budget a person is asked, once for each time that it is reached."""

import asyncio

import pytest
from msgspec.structs import replace

from ipc.messages import BudgetLimit, ModelEndpoint, PastAnswer, Usage
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker import spending
from worker.attempt import Attempt
from worker.errors import AgentError, HumanNeeded

TOKENS = BudgetLimit("session", "tokens", 100, used=40)
COST = BudgetLimit("turn", "cost", 500_000, used=0)
PRICED = ModelEndpoint("http://x", "m", price_in=1.0, price_out=10.0)


def question(
    *limits: BudgetLimit, spent: tuple[Usage, ...] = (), answers: tuple[PastAnswer, ...] = ()
) -> str:
    """The question that is asked after this use; "" when the turn may use more."""

    async def act() -> str:
        assigned = replace(assign("http://127.0.0.1:9/v1"), limits=limits, answers=answers)
        attempt = Attempt(assigned, Desk().outbox)
        for each in spent:
            attempt.spend(each)
        try:
            await spending.check(attempt)
        except HumanNeeded as needed:
            return needed.text if (needed.kind, needed.choices) == ("approve", ("yes", "no")) else "another"
        return ""

    return asyncio.run(act())


def test_a_person_is_asked_when_a_limit_is_reached_and_not_before() -> None:
    assert question() == ""
    assert question(TOKENS, spent=(Usage(20, 39),)) == ""
    assert question(TOKENS, spent=(Usage(20, 40),)) == TOKENS.question(1)
    assert question(TOKENS, spent=(Usage(20, 40), Usage(50, 50))) == TOKENS.question(2)


def test_what_was_allowed_before_is_not_asked_about() -> None:
    allowed = replace(TOKENS, allowed=1)
    assert question(allowed, spent=(Usage(20, 40),)) == ""
    assert question(allowed, spent=(Usage(20, 140),)) == TOKENS.question(2)


def test_costs_of_all_replies_count() -> None:
    assert Usage(200_000, 5_000).at(PRICED) == Usage(200_000, 5_000, 250_000)
    assert question(COST, spent=(Usage(200_000, 4_999).at(PRICED), Usage(200_000, 5_000).at(PRICED))) == ""
    asked = question(COST, spent=(Usage(200_000, 5_000).at(PRICED), Usage(200_000, 5_000).at(PRICED)))
    assert asked == COST.question(1)
    assert "a cost of 0.5" in asked


def test_a_yes_lets_the_turn_go_on_and_any_other_answer_ends_it() -> None:
    def answered(text: str) -> str:
        answer = PastAnswer("approve", TOKENS.question(1), text)
        return question(TOKENS, COST, spent=(Usage(60, 0),), answers=(answer,))

    assert answered("yes") == ""
    with pytest.raises(AgentError) as ended:
        answered("no")
    assert ended.value.error == "it reached 100 tokens, and the answer was not to go on"
    assert "[budgets.session] tokens_max" in ended.value.hint


def test_each_limit_is_asked_about_by_itself() -> None:
    answer = PastAnswer("approve", TOKENS.question(1), "yes")
    day = BudgetLimit("day", "tokens", 10, used=0, day="2026-01-01")
    assert question(TOKENS, day, spent=(Usage(60, 0),), answers=(answer,)) == day.question(6)
    assert day.question(6).startswith("The day 2026-01-01 (UTC) has reached 60 tokens; ")
