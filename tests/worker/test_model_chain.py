"""The next model of an agent answers when the one before it cannot; each server is a real one."""

import asyncio
import socket

import pytest
from msgspec.structs import replace

from ipc.messages import AgentSpec, Failed, Finished, FromWorker, ModelAway, ModelEndpoint, Noted
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.model import Limits, Model

QUICK = Limits(stall_seconds=0.5, back_off_seconds=0.01)
FIRST, SECOND = "the first", "the second"


@pytest.fixture
def second(second_model: FakeModel) -> FakeModel:
    return second_model


def nowhere() -> str:
    """An address at which nothing listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}/v1"


def answer(first: str, *others: str, text: str = "hello", is_probe: bool = False) -> list[FromWorker]:
    """All frames of an attempt whose agent has these models."""

    async def scene() -> Desk:
        desk, model = Desk(), Model(QUICK)
        names = (FIRST, SECOND)
        fallback = tuple(ModelEndpoint(url, names[1], "key-2", id=names[1], price_out=7.0) for url in others)
        model_first = ModelEndpoint(first, names[0], "key-1", is_probe, id=names[0], price_out=1.0)
        assigned = replace(assign(first, text), model=model_first, fallback=fallback)
        await Attempt(assigned, desk.outbox).run(Builtin(AgentSpec("default", "builtin"), model).answer)
        await model.close()
        return desk

    return asyncio.run(scene()).frames


def notes(frames: list[FromWorker]) -> list[str]:
    return [frame.text for frame in frames if isinstance(frame, Noted)]


@pytest.mark.parametrize(
    ("mode", "options", "requests", "is_outage"),
    [
        ("429", {}, 2, True),
        ("429", {"retry_after": 30}, 1, True),
        ("429", {"code": "insufficient_quota"}, 1, False),
        ("500", {}, 2, True),
        ("500", {"status": 503}, 2, True),
        ("drop", {"tokens": 0}, 3, True),
        ("silent", {}, 1, False),
        ("401", {}, 1, False),
        ("401", {"status": 403}, 1, False),
        ("404", {"kind": "model"}, 1, False),
        ("normal", {"context": 1}, 1, False),
    ],
)
def test_the_next_model_answers_by_the_class_of_the_failure(
    fake: FakeModel, second: FakeModel, mode: str, options: dict[str, object], requests: int, is_outage: bool
) -> None:
    fake.set_mode(mode, **options)
    frames = answer(fake.base_url, second.base_url)
    end = frames[-1]
    assert isinstance(end, Finished)
    assert (end.text, end.model) == ("You said: hello", SECOND)
    assert end.usage.cost == 7 * end.usage.output_tokens > 0, "at the price of the model that answered"
    assert len(fake.requests()) == requests
    assert [request.key for request in second.requests()] == ["key-2"]
    away = [frame for frame in frames if isinstance(frame, ModelAway)]
    assert [each.endpoint for each in away] == ([FIRST] if is_outage else [])
    assert notes(frames)[-1].endswith("; the second answers now")
    assert "key-1" not in "".join(notes(frames))


def test_a_server_that_is_not_there_is_passed_over_after_all_retries(second: FakeModel) -> None:
    frames = answer(nowhere(), second.base_url)
    assert isinstance(frames[-1], Finished)
    assert [note for note in notes(frames) if "trying again" in note and "of 3" in note]
    assert any(isinstance(frame, ModelAway) for frame in frames)


def test_a_request_that_is_at_fault_itself_is_not_sent_to_another(fake: FakeModel, second: FakeModel) -> None:
    fake.set_mode("400")
    assert isinstance(answer(fake.base_url, second.base_url)[-1], Failed)
    assert second.requests() == []


def test_text_that_was_streamed_is_not_begun_again_by_another(fake: FakeModel, second: FakeModel) -> None:
    fake.set_mode("drop", tokens=3)
    end = answer(fake.base_url, second.base_url)[-1]
    assert isinstance(end, Failed)
    assert end.again
    assert second.requests() == []


def test_the_probe_reports_before_anything_else_that_its_endpoint_is_still_away(
    fake: FakeModel, second: FakeModel
) -> None:
    fake.set_mode("500")
    frames = answer(fake.base_url, second.base_url, is_probe=True)
    assert isinstance(frames[0], ModelAway)
    assert len(fake.requests()) == 1
    assert isinstance(frames[-1], Finished)


def test_without_an_answer_of_any_the_last_one_is_the_outage(fake: FakeModel, second: FakeModel) -> None:
    fake.set_mode("500")
    second.set_mode("429", retry_after=7)
    frames = answer(fake.base_url, second.base_url)
    end = frames[-1]
    assert isinstance(end, Failed)
    assert (end.outage, end.endpoint, end.wait_seconds) == (True, SECOND, 7)


def test_the_answer_names_its_model(fake: FakeModel) -> None:
    end = answer(fake.base_url)[-1]
    assert isinstance(end, Finished)
    assert end.model == FIRST
