"""What a model thinks, and writes into a tool call, is progress: told as a count, bounded, never history."""

import asyncio
import base64
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from ipc.messages import AgentSpec, Finished, Noted
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk, Lamp
from tests.worker.test_model import QUICK, WORDS, fault, say
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.model import Model

LIGHT = [{"name": "lamp", "arguments": {"on": True}}]
# Longer in all than may pass without a sign of the server.
THINKING = {"thoughts": 12, "interval": 0.1}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking", "parts"])
def test_thinking_is_no_stall_and_is_told_as_a_count(fake: FakeModel, field: str) -> None:
    fake.set_mode("reasoning", **THINKING, field=field)
    heard = say(fake.base_url)
    assert heard.text == f"You said: {WORDS}"
    assert heard.reply is not None
    assert heard.reply.thought == len("".join(f"thought{n} " for n in range(12)))
    assert heard.counts
    assert all(count.startswith("thinking… ") for count in heard.counts)


def test_writing_a_tool_call_is_told_as_a_count(fake: FakeModel) -> None:
    long = [{"name": "lamp", "arguments": {"on": "x" * 5000}}]
    fake.set_mode("tools", calls=long, pieces=12, interval=0.1)
    heard = say(fake.base_url)
    assert heard.reply is not None
    assert len(heard.reply.calls[0].arguments) > 5000
    assert heard.counts
    assert all(count.startswith("writing a tool call… ") for count in heard.counts)


def test_a_fast_thinker_is_told_a_few_times_a_second_at_most(fake: FakeModel) -> None:
    fake.set_mode("reasoning", thoughts=3000)
    began = time.monotonic()
    heard = say(fake.base_url, limits=replace(QUICK, stall_seconds=30))
    took = time.monotonic() - began
    assert heard.reply is not None
    assert len(heard.counts) <= took / 0.5


def test_h15_thoughts_without_end_are_cut_off(fake: FakeModel) -> None:
    fake.set_mode("reasoning", thoughts=1_000_000)
    assert "more than one answer may hold" in fault(say(fake.base_url)).error
    fake.wait(lambda requests: requests[0].disconnected)


@pytest.mark.parametrize("how", ["drop", "content"])
def test_a_stream_that_breaks_off_in_a_thought_is_tried_again(fake: FakeModel, how: str) -> None:
    """The connection is cut, or the stream ends in order and without a word about its end."""
    thought = {"choices": [{"index": 0, "delta": {"reasoning": "so"}, "finish_reason": None}]}
    events = base64.b64encode(json.dumps([thought]).encode()).decode()
    fake.set_mode(how, tokens=0, thoughts=3, events=events, times=1)
    heard = say(fake.base_url)
    assert heard.text == f"You said: {WORDS}"
    assert len(fake.requests()) == 2


def converse(fake: FakeModel) -> Desk:
    async def scene() -> Desk:
        desk, model = Desk(), Model()
        lamp = Lamp(desk)
        agent = Builtin(AgentSpec("default", "builtin", {"tools": ["lamp"]}), model, {"lamp": lambda: lamp})
        await Attempt(assign(fake.base_url, "light"), desk.outbox).run(agent.answer)
        await model.close()
        return desk

    return asyncio.run(scene())


def test_a_thought_is_noted_and_never_said(fake: FakeModel) -> None:
    fake.set_mode("reasoning", **THINKING)
    desk = converse(fake)
    last = desk.last()
    assert isinstance(last, Finished)
    assert last.text == "You said: light"
    notes = [frame for frame in desk.frames if isinstance(frame, Noted)]
    assert notes
    assert all(note.replaces for note in notes)
    assert not any("thought0" in str(frame) for frame in desk.frames)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_thought_goes_back_with_the_calls_it_came_with(fake: FakeModel, field: str) -> None:
    fake.set_mode("tools", calls=[LIGHT, LIGHT], thoughts=2, field=field)
    converse(fake)
    calling: list[dict[str, Any]] = [each for each in fake.requests()[2].messages if each.get("tool_calls")]
    assert [each[field] for each in calling] == ["thought0 thought1 "] * 2


@pytest.mark.parametrize("field", ["thinking", "parts"])
def test_a_thought_of_another_name_does_not_go_back(fake: FakeModel, field: str) -> None:
    fake.set_mode("tools", calls=LIGHT, thoughts=2, field=field)
    converse(fake)
    assert "thought0" not in str(fake.requests()[1].messages)
