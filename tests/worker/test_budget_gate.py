"""The gate of a budget: the model is asked only after a person has said yes."""

import asyncio

import pytest
from msgspec.structs import replace

from ipc.messages import Asked, BudgetLimit, Failed, Finished, FromWorker, PastAnswer
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.builtin import BuiltinKind
from worker.attempt import Attempt

REACHED = BudgetLimit("session", "tokens", most=100, used=250)


def answered(fake: FakeModel, limit: BudgetLimit, *answers: PastAnswer) -> FromWorker:
    """The last frame of an attempt under this limit."""

    async def scene() -> FromWorker:
        desk = Desk()
        work = replace(assign(fake.base_url, answers=answers), limits=(limit,))
        kind = BuiltinKind()
        await Attempt(work, desk.outbox).run(kind.agent(work.agent).answer)
        await kind._model.close()
        return desk.last()

    return asyncio.run(scene())


def test_the_model_is_not_asked_beyond_a_budget(fake: FakeModel) -> None:
    end = answered(fake, REACHED)
    assert isinstance(end, Asked)
    assert (end.kind, end.text) == ("approve", REACHED.question(2))
    assert fake.requests() == []


def test_a_no_ends_the_turn_before_the_model_is_asked(fake: FakeModel) -> None:
    end = answered(fake, REACHED, PastAnswer("approve", REACHED.question(2), "no", "", 1))
    assert isinstance(end, Failed)
    assert "it reached 200 tokens, and the answer was not to go on" in end.error
    assert fake.requests() == []


@pytest.mark.parametrize("limit", [replace(REACHED, used=99), replace(REACHED, allowed=2)])
def test_within_a_budget_or_what_was_allowed_of_it_no_person_is_asked(
    fake: FakeModel, limit: BudgetLimit
) -> None:
    assert isinstance(answered(fake, limit), Finished)
    assert len(fake.requests()) == 1


def test_a_yes_lets_the_turn_go_on(fake: FakeModel) -> None:
    given = PastAnswer("approve", REACHED.question(2), "yes", "", 1)
    assert isinstance(answered(fake, REACHED, given), Finished)
