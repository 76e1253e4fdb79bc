"""An answer that ended says why; one without a word is a failure with a reason, and counts what it cost."""

import asyncio

import pytest

from ipc.messages import AgentSpec, Failed, Finished, FromWorker, PastAttempt, Usage
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk, Lamp
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.model import Model

LIGHT = [{"name": "lamp", "arguments": {"on": True}}]


def end(fake: FakeModel, tried: tuple[PastAttempt, ...] = ()) -> FromWorker:
    """The last frame of a turn of the built-in agent, which has a lamp."""

    async def scene() -> Desk:
        desk, model = Desk(), Model()
        lamp = Lamp(desk)
        agent = Builtin(AgentSpec("default", "builtin", {"tools": ["lamp"]}), model, {"lamp": lambda: lamp})
        attempt = Attempt(assign(fake.base_url, "light", attempt=len(tried) + 1, tried=tried), desk.outbox)
        await attempt.run(agent.answer)
        await model.close()
        return desk

    return asyncio.run(scene()).last()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("tool_calls", "stop"),
        ("Abort", "abort"),
        ("a sentence about nothing", "unknown"),
        ("x" * 100, "unknown"),
    ],
)
def test_an_answer_says_why_the_model_ended_it(fake: FakeModel, reason: str, finish: str) -> None:
    fake.set_mode("normal", finish=reason)
    last = end(fake)
    assert isinstance(last, Finished)
    assert (last.text, last.finish) == ("You said: light", finish)


def test_the_reason_is_that_of_the_last_reply(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=LIGHT)
    last = end(fake)
    assert isinstance(last, Finished)
    assert last.finish == "stop"


def test_a_refusal_is_said_and_named(fake: FakeModel) -> None:
    fake.set_mode("refusal")
    last = end(fake)
    assert isinstance(last, Finished)
    assert (last.text, last.finish) == ("I cannot help with that.", "refusal")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "an empty answer"),
        ({"finish": "length"}, "limit of length was reached before the first word"),
        ({"finish": "content_filter"}, "content filter withheld the whole answer"),
        ({"finish": "tool_calls"}, "an empty answer"),
        ({"thoughts": 3}, "thought (27 characters) and said nothing"),
        ({"thoughts": 3, "finish": "length"}, "limit of length was used up by thinking"),
        ({"thoughts": 3, "field": "reasoning"}, "said nothing"),
        ({"thoughts": 3, "field": "parts"}, "said nothing"),
    ],
)
def test_an_answer_without_a_word_is_a_failure_with_a_reason(
    fake: FakeModel, options: dict[str, object], told: str
) -> None:
    fake.set_mode("empty", **options)
    last = end(fake)
    assert isinstance(last, Failed)
    assert told in last.error
    assert last.hint
    assert not last.again
    assert last.usage.input_tokens > 0


def test_words_that_are_only_blanks_are_none(fake: FakeModel) -> None:
    fake.set_mode("normal", text=" \n ")
    assert isinstance(end(fake), Failed)


def test_a_model_that_spoke_before_its_tool_may_end_without_words(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=LIGHT, before="I switch it on.", text="")
    last = end(fake)
    assert isinstance(last, Finished)
    assert (last.text, last.finish) == ("I switch it on.", "stop")


def test_a_model_that_spoke_in_a_lost_attempt_may_end_without_words(fake: FakeModel) -> None:
    fake.set_mode("empty")
    assert isinstance(end(fake, (PastAttempt("All was said."),)), Finished)
    assert isinstance(end(fake, (PastAttempt(""),)), Failed)


def test_a_failure_counts_what_the_replies_before_it_cost(fake: FakeModel) -> None:
    fake.set_mode("tools", calls=LIGHT, before="So: ", text="")
    fine = end(fake)
    assert isinstance(fine, Finished)
    fake.set_mode("tools", calls=LIGHT, text="")
    failed = end(fake)
    assert isinstance(failed, Failed)
    first, second = fake.requests()[-2:]
    asked = sum(len(str(message["content"]).split()) for each in (first, second) for message in each.messages)
    assert failed.usage == Usage(asked, second.tokens)
