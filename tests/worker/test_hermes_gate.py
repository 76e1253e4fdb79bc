"""The gates of the kind `hermes`: rules, budgets and repeated calls, and which model answered."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.messages import (
    AgentSpec,
    Answered,
    Asked,
    Assign,
    BudgetLimit,
    Failed,
    Finished,
    ModelEndpoint,
    ToolFinished,
    ToolStarted,
)
from tests.fake_model import FakeModel
from tests.worker.hermes_scene import NOBODY, turn
from tests.worker.hermes_scene import play as play
from tests.worker.peer import Peer


def ruled(text: str, rules: Mapping[str, Any]) -> Assign:
    return replace(turn(text), agent=AgentSpec("mine", "hermes", dict(rules)))


async def answered(peer: Peer, answer: str, number: int = 1) -> Asked:
    await peer.until(lambda: len(peer.of(Asked)) == number)
    asked = peer.of(Asked)[-1]
    assert isinstance(asked, Asked)
    peer.send(Answered("s/1", 1, f"s/1#{number}", asked.hold, answer))
    return asked


@pytest.mark.parametrize("rules", [{"deny": ["touch"]}, {"deny": ["t*(*mark*)"]}, {"otherwise": "deny"}])
def test_a_call_that_a_rule_denies_does_not_run_and_the_model_gets_the_reason(
    play: Callable[..., str], tmp_path: Path, rules: Mapping[str, Any]
) -> None:
    mark = tmp_path / "mark"

    async def act(peer: Peer) -> None:
        end = await peer.run(ruled(f"touch {mark}", rules))
        assert isinstance(end, Finished), end
        assert "Blocked: denied by a rule of [agents.mine]; it was not run" in end.text
        (started,), (finished,) = peer.of(ToolStarted), peer.of(ToolFinished)
        assert isinstance(started, ToolStarted)
        assert isinstance(finished, ToolFinished)
        assert (started.name, finished.ok) == ("touch", False)

    play(act)
    assert not mark.exists()


@pytest.mark.parametrize(("answer", "runs"), [("yes", True), ("no", False), ("not now", False)])
def test_a_call_that_a_rule_asks_about_waits_for_the_answer(
    play: Callable[..., str], tmp_path: Path, answer: str, runs: bool
) -> None:
    mark = tmp_path / "mark"

    async def act(peer: Peer) -> None:
        peer.send(ruled(f"touch {mark}", {"ask": ["touch"]}))
        asked = await answered(peer, answer)
        assert asked.text.startswith("Allow touch?")
        assert str(mark) in asked.text
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished), end
        assert ("denied by the user" in end.text) is not runs

    play(act)
    assert mark.exists() is runs


def test_a_rule_about_no_tool_of_hermes_agent_fails_the_turn(play: Callable[..., str]) -> None:
    async def act(peer: Peer) -> None:
        failed = await peer.run(ruled("touch mark", {"deny": ["touhc"]}))
        assert isinstance(failed, Failed)
        assert failed.error.startswith('a rule of [agents.mine] names "touhc", which is no tool')
        assert failed.hint == "use one of clarify, remove, touch"

    play(act)


def test_no_tool_runs_without_its_gate(play: Callable[..., str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def act(peer: Peer) -> None:
        failed = await peer.run(ruled(f"reload {mark}", {"deny": ["touch"]}))
        assert isinstance(failed, Failed), failed

    play(act)
    assert not mark.exists()


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_budget_that_is_reached_asks_before_the_next_request(
    play: Callable[..., str], fake: FakeModel, answer: str
) -> None:
    limit = BudgetLimit("session", "tokens", 100, 100)

    async def act(peer: Peer) -> None:
        peer.send(replace(turn("some words", base_url=fake.base_url), limits=(limit,)))
        await peer.until(lambda: peer.of(Asked))
        assert fake.requests() == []
        asked = await answered(peer, answer)
        assert "[budgets.session] tokens_max allows 100 tokens" in asked.text
        (end,) = await peer.until(lambda: peer.of(Finished, Failed))
        assert isinstance(end, Finished if answer == "yes" else Failed), end

    play(act)
    assert len(fake.requests()) == (answer == "yes")


def test_a_fallback_answers_with_its_name_and_its_price(play: Callable[..., str], fake: FakeModel) -> None:
    second = ModelEndpoint(fake.base_url, "substitute", price_in=1.0, price_out=5.0)

    async def act(peer: Peer) -> None:
        end = await peer.run(replace(turn("some words", base_url=NOBODY), fallback=(second,)))
        assert isinstance(end, Finished), end
        assert (end.text, end.model) == ("You said: some words", "substitute")
        assert (end.usage.input_tokens, end.usage.output_tokens, end.usage.cost) == (10, 1, 15)

    play(act)
