"""The gates of hermes-agent in the test's own process: beside other hooks, and turn after turn."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.messages import AgentSpec, Answered, Assign, ModelEndpoint
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.context import Host
from worker.agents.hermes_gate import Gate
from worker.agents.hermes_turns import HermesTurns
from worker.attempt import Attempt

PRICED = ModelEndpoint("http://127.0.0.1:1/v1/", "m", price_in=3, price_out=15)


def gate(work: Assign, desk: Desk | None = None) -> tuple[Gate, Attempt]:
    attempt = Attempt(work, (desk or Desk()).outbox)
    return Gate(Host(attempt), lambda usage, **of: usage), attempt


def test_the_gate_of_a_turn_comes_before_the_hooks_of_others_and_in_place_of_an_earlier_one() -> None:
    async def act() -> None:
        def other(**call: object) -> None: ...

        plugins = SimpleNamespace(_hooks={"pre_tool_call": [other]}, _middleware={"llm_execution": [other]})
        gates = [gate(assign(""))[0] for _ in range(2)]
        for each in gates:
            each.install(plugins)
        assert plugins._hooks == {"pre_tool_call": [gates[1].judge, other]}
        assert plugins._middleware == {"llm_execution": [gates[1].ask_model, other]}

    asyncio.run(act())


def test_a_command_that_a_person_has_approved_by_a_rule_is_not_asked_about_again() -> None:
    async def act() -> None:
        spec = AgentSpec("mine", "hermes", {"ask": ["terminal"]})
        desk = Desk()
        made, attempt = gate(replace(assign(""), agent=spec), desk)
        judging = asyncio.to_thread(
            made.judge, tool_name="terminal", args={"command": "ls"}, tool_call_id="theirs"
        )
        running = asyncio.create_task(judging)
        await desk.until(lambda: desk.kinds() == ["Asked"])
        attempt.answered(Answered("s/1", 1, "s/1#1", 1, "yes"))
        assert await running is None
        assert made.has_passed("theirs")
        assert made.is_approved("ls")
        assert not made.is_approved("ls /")

    asyncio.run(act())


@pytest.mark.parametrize(("base_url", "cost"), [("http://127.0.0.1:1/v1", 45), ("http://127.0.0.1:2/v1", 0)])
def test_a_request_has_the_price_of_the_model_that_answered(base_url: str, cost: int) -> None:
    """With or without the slash that hermes-agent removes."""

    async def act() -> None:
        made, attempt = gate(replace(assign(""), model=PRICED))
        reply = SimpleNamespace(usage=SimpleNamespace(prompt_tokens=10, output_tokens=1))
        await asyncio.to_thread(
            made.ask_model, request={}, next_call=lambda _: reply, model="m", base_url=base_url
        )
        assert attempt.usage.cost == cost

    asyncio.run(act())


class Turns(HermesTurns):
    """Without hermes-agent: its answers are given by the test."""

    def __init__(self, agent: object) -> None:
        self._agent = agent
        self._context = None
        self._calls = {}
        self._said = ""
        self._has_said = False


def test_a_call_of_which_no_end_was_told_gets_one_with_its_turn() -> None:
    ended: list[tuple[str, str, bool]] = []

    def finish(call: str, result: str, ok: bool) -> None:
        ended.append((call, result, ok))

    def answer(text: str, conversation_history: object) -> dict[str, Any]:
        turns._calls["theirs"] = "ours"
        return {"final_response": "Done."}

    turns = Turns(SimpleNamespace(run_conversation=answer))
    turns._context = SimpleNamespace(tool_finished=finish, say=lambda text: None)  # type: ignore[assignment]
    turns.run("go", ())
    assert ended == [("ours", "no result", False)]
    assert turns._calls == {}


def test_a_model_is_asked_less_often_where_another_one_can_be_asked_instead() -> None:
    agent = SimpleNamespace(_api_max_retries=9)
    turns = Turns(agent)
    turns._fall_back_to(())
    assert (agent._fallback_chain, agent._api_max_retries) == ([], 9)
    turns._fall_back_to((PRICED,))
    assert [model["model"] for model in agent._fallback_chain] == ["m"]
    assert agent._api_max_retries == 2
