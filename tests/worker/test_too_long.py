"""A conversation that is longer than the model can read is cut, and what remains is a valid request."""

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipc.messages import Failed, Finished, Noted, PastAttempt, PastTurn, ToolTrace
from tests.fake_model import FakeModel, Record
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk, Lamp, converse
from worker.agents.context_window import Window

LIGHT = {"name": "lamp", "arguments": {"on": True}}
DARK = {"name": "lamp", "arguments": {"on": False}}
TURNS = tuple(PastTurn((f"question {n}",), (PastAttempt("x" * 10_000),)) for n in range(15))


def check(messages: list[dict[str, Any]], asked: str = "light, please") -> None:
    """No result without its call, no call without its result, and what is asked now is there."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert open_calls == []
    assert messages[0]["role"] == "system"
    assert {"role": "user", "content": asked} in messages


def results(request: Record) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def notes(desk: Desk) -> list[str]:
    return [frame.text for frame in desk.frames if isinstance(frame, Noted) and not frame.replaces]


@pytest.mark.parametrize("kind", ["openai", "llama.cpp", "vllm", "413", "stream"])
def test_old_turns_are_left_out_and_that_is_told_once(fake: FakeModel, kind: str) -> None:
    fake.set_mode("normal", context=20_000, overflow=kind)
    desk, _ = converse(fake, Lamp, history=TURNS)
    end = desk.last()
    assert isinstance(end, Finished)
    assert (end.text, end.finish) == ("You said: light, please", "stop")
    assert notes(desk) == ["the conversation is too long for the model; its oldest parts are left out"]
    *refused, answered = fake.requests()
    assert len(refused) == 3
    check(answered.messages)
    assert "question 14" in str(answered.messages)
    assert "older turns of this conversation were left out" in answered.messages[0]["content"]


def test_a_short_history_is_cut_by_its_own_size(fake: FakeModel) -> None:
    """Not by halves of a limit that it is far below: each request is shorter than the one before."""
    fake.set_mode("normal", context=2_000)
    history = tuple(PastTurn((f"question {n}",), (PastAttempt("y" * 400),)) for n in range(10))
    converse(fake, Lamp, history=history)
    sizes = [sum(len(str(message["content"])) for message in each.messages) for each in fake.requests()]
    assert len(sizes) > 1
    assert all(after < before for before, after in itertools.pairwise(sizes))


def test_between_tool_calls_older_results_become_a_line_and_the_newest_is_whole(
    fake: FakeModel, outputs: Path
) -> None:
    fake.set_mode("tools", calls=[[LIGHT], [DARK]] * 2, context=30_000, text="All lit.")
    desk, _ = converse(fake, lambda desk: Lamp(desk, "<" + "z" * 9_000 + ">"), history=TURNS[:1])
    end = desk.last()
    assert isinstance(end, Finished)
    assert end.text == "All lit."
    assert len(notes(desk)) == 1
    last = fake.requests()[-1]
    check(last.messages)
    assert len(results(last)) == 4
    assert len(results(last)[-1]) == 9_002
    file = outputs / "1.txt"
    note = f"[left out for lack of room: 9002 characters] [cut: all of it is in {file}; read it there]"
    assert results(last)[0] == note
    assert file.read_text() == "<" + "z" * 9_000 + ">"


def test_the_newest_result_is_halved_when_nothing_else_is_left(fake: FakeModel, outputs: Path) -> None:
    fake.set_mode("tools", calls=[[LIGHT, LIGHT]], context=6_000)
    desk, _ = converse(fake, lambda desk: Lamp(desk, "z" * 60_000))
    assert isinstance(desk.last(), Finished)
    last = fake.requests()[-1]
    check(last.messages)
    assert [1_000 < len(result) < 3_000 for result in results(last)] == [True, True]
    # One file a result, however often it is cut.
    assert sorted(each.name for each in outputs.iterdir()) == ["1.txt", "2.txt"]
    assert f"all of it is in {outputs}/2.txt" in results(last)[1]


@pytest.mark.parametrize("kind", ["openai", "stream"])
def test_outputs_of_half_a_window_each_are_never_refused(fake: FakeModel, outputs: Path, kind: str) -> None:
    """One call a round, then several at once: 10,000 tokens are 40,000 characters here."""
    rounds = [[LIGHT], [DARK], [LIGHT, DARK], [DARK], [LIGHT, DARK, LIGHT], [DARK]]
    fake.set_mode("tools", calls=rounds, context=40_000, overflow=kind, text="All lit.")
    tool_of = lambda desk: Lamp(desk, "<" + "z" * 20_000 + ">")  # noqa: E731
    desk, _ = converse(fake, tool_of, history=TURNS, context_tokens=10_000)
    end = desk.last()
    assert isinstance(end, Finished)
    assert end.text == "All lit."
    requests = fake.requests()
    assert len(requests) == len(rounds) + 1
    for request in requests:
        check(request.messages)
    assert len(notes(desk)) == 1
    *older, newest = results(requests[-1])
    assert len(newest) == 20_002
    assert len(older) == 8
    for line in older:
        path = line.partition("all of it is in ")[2].removesuffix("; read it there]")
        assert len(Path(path).read_text()) == 20_002


def test_a_refusal_holds_for_the_rest_of_the_attempt(fake: FakeModel) -> None:
    """A context that the settings overstate costs one refusal, not one a round."""
    rounds = [[LIGHT], [DARK]] * 6
    fake.set_mode("tools", calls=rounds, context=30_000, text="All lit.")
    desk, _ = converse(fake, lambda desk: Lamp(desk, "z" * 6_000), context_tokens=1_000_000)
    assert isinstance(desk.last(), Finished)
    assert len(fake.requests()) == len(rounds) + 2


def test_the_servers_count_corrects_the_estimate() -> None:
    """Text of many tokens, such as digits: the server counts twice what four bytes a token make."""
    window = Window(assign("http://127.0.0.1:1/v1", "go"), "system", 200_000)
    for number in range(8):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        window.add({"role": "assistant", "content": None, "tool_calls": [call]})
        window.add({"role": "tool", "tool_call_id": f"c{number}", "content": "7" * 4_000})
    sent = len(json.dumps(window.messages))
    window.fit(sent // 3 + 10)  # three quarters of it are as many as it has
    assert len(json.dumps(window.messages)) == sent
    window.counted(sent // 2)
    window.fit(sent // 3 + 10)
    assert len(json.dumps(window.messages)) < 0.6 * sent
    check(window.messages, "go")


@given(
    st.lists(st.lists(st.integers(0, 12_000), min_size=1, max_size=4), min_size=1, max_size=8),
    st.integers(2_000, 20_000),
    st.sampled_from(["z", "ü", "語", '"']),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_tools_give_back_the_request_is_valid_and_fits(
    rounds: list[list[int]], context_tokens: int, letter: str
) -> None:
    window = Window(assign("http://127.0.0.1:1/v1", "go", history=TURNS[:3]), "system", 200_000)
    for number, lengths in enumerate(rounds):
        ids = [f"c{number}_{place}" for place in range(len(lengths))]
        function = {"name": "read", "arguments": "{}"}
        calls = [{"id": each, "type": "function", "function": function} for each in ids]
        window.add({"role": "assistant", "content": None, "tool_calls": calls})
        for each, length in zip(ids, lengths, strict=True):
            window.add({"role": "tool", "tool_call_id": each, "content": letter * length})
        window.fit(context_tokens)
        check(window.messages, "go")
        assert len([message for message in window.messages if message["role"] == "tool"]) == sum(
            map(len, rounds[: number + 1])
        )
    # What stays of every call: 200 characters at most, a line and two ids. Beyond that it fits.
    least = 1_000 * (1 + sum(map(len, rounds)))
    sent = len(json.dumps(window.messages, ensure_ascii=False).encode())
    assert sent <= max(4 * context_tokens, least)


def test_a_question_too_long_for_the_model_fails_at_once(fake: FakeModel) -> None:
    fake.set_mode("400", code="context_length_exceeded")
    end = converse(fake, Lamp)[0].last()
    assert isinstance(end, Failed)
    assert "longer than the model can read" in end.error
    assert "“fake context_length_exceeded”" in end.error
    assert len(fake.requests()) == 1


def test_a_server_that_finds_everything_too_long_is_not_asked_for_ever(fake: FakeModel) -> None:
    fake.set_mode("400", code="context_length_exceeded")
    end = converse(fake, Lamp, history=TURNS)[0].last()
    assert isinstance(end, Failed)
    assert len(fake.requests()) < 12


def test_words_that_were_said_before_the_refusal_are_not_said_twice(fake: FakeModel) -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
    refusal = {"error": {"code": 400, "message": "the request exceeds the available context size"}}
    events = base64.b64encode(json.dumps([said, refusal]).encode()).decode()
    fake.set_mode("content", events=events)
    end = converse(fake, Lamp, history=TURNS)[0].last()
    assert isinstance(end, Failed)
    assert end.again
    assert len(fake.requests()) == 1


def test_an_answer_that_ends_at_the_context_is_an_answer(fake: FakeModel) -> None:
    fake.set_mode("normal", finish="length")
    end = converse(fake, Lamp)[0].last()
    assert isinstance(end, Finished)
    assert end.finish == "length"


def test_long_arguments_stay_json_and_reasoning_is_shortened() -> None:
    window = Window(assign("http://127.0.0.1:1/v1", "go"), "system", 200_000)
    for number in range(3):
        function = {"name": "write", "arguments": '{"text": "' + "a" * 5_000 + '"}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        thought = {"reasoning_content": "r" * 5_000}
        window.add({"role": "assistant", "content": None, **thought, "tool_calls": [call]})
        window.add({"role": "tool", "tool_call_id": f"c{number}", "content": "ok"})
    window.add({"role": "user", "content": "s" * 3_000})
    assert window.cut()
    check(window.messages, "go")
    calling = [message for message in window.messages if message.get("tool_calls")]
    first, *_, newest = calling
    assert first["tool_calls"][0]["function"]["arguments"].startswith('{"cut": "{')
    assert len(first["reasoning_content"]) < 300
    assert len(newest["reasoning_content"]) == 5_000
    assert window.messages[-1]["content"] == "s" * 3_000


def test_what_earlier_attempts_at_the_turn_did_is_shortened_too() -> None:
    tools = tuple(ToolTrace(f"c{n}", "read", "{}", "pure", "z" * 8_000, True) for n in range(10))
    tried = (PastAttempt("So far.", tools),)
    window = Window(assign("http://127.0.0.1:1/v1", "go", attempt=2, tried=tried), "system", 200_000)
    cuts = 0
    while window.cut():
        cuts += 1
        check(window.messages, "go")
    assert 4 < cuts < 15
    assert sum(len(str(message)) for message in window.messages) < 10_000


@pytest.mark.parametrize(
    ("counted", "schema_bytes", "context_tokens", "is_cut"),
    [
        # A request of some 2,300 bytes; three quarters of the context are for it.
        (0, 0, 1000, False),
        (0, 0, 500, True),
        # A server that counts fewer tokens than are estimated is not believed.
        (1, 0, 500, True),
        (0, 4000, 1500, True),
        # As many as estimated, with the schemas: nothing is corrected.
        (1575, 4000, 2500, False),
        # One that counts absurdly many is believed up to twice the estimate.
        (1_000_000, 0, 2000, False),
        (1_000_000, 0, 1000, True),
    ],
)
def test_the_estimate_of_a_request_is_corrected_within_bounds(
    counted: int, schema_bytes: int, context_tokens: int, is_cut: bool
) -> None:
    history = (PastTurn(("a" * 1000,), (PastAttempt("b" * 1000),)),)
    schemas = [{"x": "y" * schema_bytes}] if schema_bytes else []
    window = Window(assign("", history=history), "", 1_000_000, schemas)
    window.counted(counted)
    window.fit(context_tokens)
    assert window.is_cut is is_cut
