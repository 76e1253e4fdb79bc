"""Calls that a model wrote as text are calls; everything else is streamed as it comes."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from ipc.messages import AgentSpec, Finished, ToolFinished
from tests.fake_model import FakeModel
from tests.worker.peer import Peer, assign, worker
from worker.agents.written_calls import HeldText, written_calls
from worker.model import ToolCall

TOOLS = ("shell", "read")
LS = ToolCall("", "shell", '{"command": "ls"}')
CALL = '{"name": "shell", "arguments": {"command": "ls"}}'

CALLS = [
    CALL,
    f"\n  {CALL}\n",
    '{"name": "shell", "parameters": {"command": "ls"}}',
    '{"arguments": {"command": "ls"}, "name": "shell"}',
    '{"type": "function", "function": {"name": "shell", "arguments": {"command": "ls"}}}',
    '{"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}',
    f"```json\n{CALL}\n```",
    f"```\n{CALL}\n```",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"[{CALL}]",
]
TEXTS = [
    "",
    "Paris.",
    f"I would run {CALL}",
    f"{CALL} and then we see",
    '{"name": "Ada", "born": 1815}',
    '{"name": "no_such_tool", "arguments": {}}',
    '{"name": "shell", "arguments": [1]}',
    '{"city": "Paris"}',
    f'{CALL}\n{{"name": "other", "arguments": {{}}}}',
    '{"name": "shell", "arguments": {"command": "ls"',
    "[" * 50_000,
    "```python\nprint(1)\n```",
    '{"name": 7, "arguments": {}}',
]


@pytest.mark.parametrize("text", CALLS)
def test_a_reply_that_is_nothing_but_a_call_is_one(text: str) -> None:
    (found,) = written_calls(text, TOOLS)
    assert (found.name, json.loads(found.arguments)) == (LS.name, json.loads(LS.arguments))
    held = HeldText()
    assert "".join(map(held.take, text)) == ""
    assert held.release() == text


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:30])
def test_any_other_reply_is_text_and_nothing_of_it_is_lost(text: str) -> None:
    assert written_calls(text, TOOLS) == ()
    held = HeldText()
    streamed = "".join(map(held.take, text))
    assert streamed + held.release() == text


@pytest.mark.parametrize("text", ["Paris is", '{"city": "Pa', "```python\n", "[1, 2", "<b>bold"])
def test_text_that_cannot_be_a_call_is_not_held_back(text: str) -> None:
    held = HeldText()
    assert "".join(map(held.take, text)) == text


def test_several_calls_are_taken_in_order() -> None:
    other = '{"name": "read", "arguments": {"path": "x"}}'
    for text in (
        f"{CALL}\n{other}",
        f"[{CALL}, {other}]",
        f"<tool_call>{CALL}</tool_call><tool_call>{other}</tool_call>",
    ):
        assert [call.name for call in written_calls(text, TOOLS)] == ["shell", "read"]


def test_what_goes_on_for_ever_is_let_go() -> None:
    held = HeldText()
    begin = '{"name": "shell", "arguments": {"command": "'
    assert held.take(begin) == ""
    assert held.take("x" * 300_000).startswith(begin)
    assert held.take("y") == "y"


def answered(folder: Path, fake: FakeModel, text: str) -> tuple[Finished, Peer]:
    """The end of a turn of a worker with the shell tool, and all that it sent."""
    agent = AgentSpec("default", "builtin", {"tools": ["shell"]})
    asked = msgspec.structs.replace(assign(fake.base_url, text), agent=agent)

    async def scene() -> tuple[Finished, Peer]:
        async with worker(folder) as peer:
            end = await peer.run(asked)
            assert isinstance(end, Finished)
            return end, peer

    return asyncio.run(scene())


def test_a_written_call_is_run_and_not_shown(tmp_path: Path, fake: FakeModel) -> None:
    written = '{"name": "shell", "arguments": {"command": "echo found"}}'
    end, peer = answered(tmp_path, fake, f"[[normal text='{written}' times=1]] go")
    # The fake model repeats the question; the call itself is nowhere in front of it.
    assert end.text.startswith("You said: ")
    (ran,) = peer.of(ToolFinished)
    assert isinstance(ran, ToolFinished)
    assert ran.result == "[exit status 0]\nfound\n"
    back = fake.requests()[-1].messages
    assert [message["role"] for message in back[-2:]] == ["assistant", "tool"]
    assert back[-2]["tool_calls"][0]["function"]["name"] == "shell"


def test_json_that_is_no_call_is_the_answer(tmp_path: Path, fake: FakeModel) -> None:
    answer = '{"name": "Ada", "born": 1815}'
    end, peer = answered(tmp_path, fake, f"[[normal text='{answer}']] who?")
    assert end.text == answer == peer.spoken("s/1")
