"""A conversation that is longer than the model can read is cut, and what remains is a valid request."""

from ipc.messages import Failed, Finished, PastAttempt, PastTurn
from tests.fake_model import FakeModel
from tests.worker.test_attempt import Lamp, converse


def test_a_conversation_too_long_for_the_model_is_shortened(fake: FakeModel) -> None:
    fake.set_mode("400", code="context_length_exceeded", times=2)
    history = tuple(PastTurn((f"question {n}",), (PastAttempt("x" * 10_000),)) for n in range(15))
    desk, _ = converse(fake, Lamp, history=history)
    end = desk.last()
    assert isinstance(end, Finished)
    assert end.text == "You said: light, please"
    assert [len(request.messages) for request in fake.requests()] == [32, 20, 10]
    assert desk.kinds().count("Noted") == 2


def test_a_question_too_long_for_the_model_fails_at_once(fake: FakeModel) -> None:
    fake.set_mode("400", code="context_length_exceeded")
    end = converse(fake, Lamp)[0].last()
    assert isinstance(end, Failed)
    assert "longer than the model can read" in end.error
    assert len(fake.requests()) == 1
