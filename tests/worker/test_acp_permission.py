"""Permissions of an ACP agent: a rule decides, or a person while the attempt holds."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from ipc.messages import AgentSpec, Answered, Asked, PastAnswer, ToolFinished, ToolStarted
from tests.worker.acp_host import Host, play
from tests.worker.acp_host import home as home
from tests.worker.acp_host import no_process_is_left as no_process_is_left
from tests.worker.test_attempt import Desk, run
from worker.agents.acp_connection import PermissionAsked
from worker.agents.acp_permission import answer
from worker.agents.acp_updates import Updates
from worker.approvals import Approvals
from worker.attempt import Attempt


def with_rules(**rules: Any) -> Callable[[], Host]:
    return lambda: Host(**rules)


@pytest.mark.parametrize(
    ("rules", "said", "is_done"),
    [
        ({"allow": ["execute(touch *)"], "otherwise": "deny"}, "selected yes", True),
        ({"deny": ["execute(touch *)"]}, "selected no", False),
        ({"otherwise": "deny"}, "selected no", False),
    ],
)
def test_a_rule_answers_a_permission_without_a_question(
    home: Path, rules: dict[str, Any], said: str, is_done: bool
) -> None:
    async def scene(host: Host) -> None:
        frames = await host.turn("permit touch done")
        (finished,) = (frame for frame in frames if isinstance(frame, ToolFinished))
        assert finished.ok == is_done
        assert host.attempt.text.strip() == said
        assert (home / "done").exists() == is_done
        assert "Asked" not in host.desk.kinds()

    play(scene, with_rules(**rules))


@pytest.mark.parametrize(
    ("answer", "said", "is_done"),
    [
        ("yes", "selected yes", True),
        ("always", "selected yes", True),
        ("no", "selected no", False),
        ("use git", "selected no", False),
    ],
)
def test_a_person_decides_while_the_attempt_holds_and_the_decision_holds_for_the_turn(
    home: Path, answer: str, said: str, is_done: bool
) -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("twice touch done"))
        await host.desk.until(lambda: "Asked" in host.desk.kinds())
        started, asked = host.desk.frames[-2:]
        assert isinstance(started, ToolStarted)
        assert isinstance(asked, Asked)
        assert (asked.kind, asked.call, asked.hold) == ("approve", started.call, 1)
        assert asked.text.endswith("\ntouch done")
        assert not (home / "done").exists()
        host.attempt.answered(Answered("s/1", 1, "s/1#1", 1, answer))
        frames = await turn
        assert host.desk.kinds().count("Asked") == 1
        finished = [frame for frame in frames if isinstance(frame, ToolFinished)]
        assert [frame.ok for frame in finished] == [is_done, is_done]
        assert ("use git" in finished[0].result) == (answer == "use git")
        assert host.attempt.text.split("\n\n") == [said, said]
        assert (home / "done").exists() == is_done

    play(scene, with_rules(otherwise="ask"))


def test_an_answer_after_the_hold_is_given_to_the_next_attempt(home: Path) -> None:
    async def scene(host: Host) -> None:
        turn = asyncio.create_task(host.turn("permit touch done"))
        await host.desk.until(lambda: "Asked" in host.desk.kinds())
        asked = host.desk.last()
        assert isinstance(asked, Asked)
        turn.cancel()  # as the kill of its worker does
        await asyncio.wait({turn})
        host.new_worker()
        host.turns = 0
        given = (PastAnswer("approve", asked.text, "yes", asked.call, 1),)
        assert await host.said("permit touch done", answers=given) == "selected yes"
        assert host.desk.kinds().count("Asked") == 1
        assert (home / "done").exists()

    play(scene, with_rules(otherwise="ask"))


def options(*kinds: Any) -> list[schema.PermissionOption]:
    return [schema.PermissionOption(option_id=f"the {kind}", name=kind, kind=kind) for kind in kinds]


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_the_narrowest_option_is_chosen_and_one_that_is_missing_is_no_grant(decision: str) -> None:
    """Whatever the order in which the agent offers them."""
    call = schema.ToolCallUpdate(
        tool_call_id="c", title="touch", kind="execute", raw_input={"command": "touch x"}
    )

    async def asked(attempt: Attempt, *kinds: str) -> str | None:
        permission = PermissionAsked(call, options(*kinds), asyncio.get_running_loop().create_future())
        approvals = Approvals(AgentSpec("a", "acp", {"otherwise": decision}), attempt)
        await answer(attempt, approvals, Updates(attempt), permission)
        return permission.answer.result()

    async def act(desk: Desk, attempt: Attempt) -> None:
        word = {"allow": "allow", "deny": "reject"}[decision]
        every = ("reject_always", "allow_always", "reject_once", "allow_once")
        assert await asked(attempt, *every) == f"the {word}_once"
        assert await asked(attempt, *every[:2]) == f"the {word}_always"
        other = {"allow": "reject", "deny": "allow"}[decision]
        assert await asked(attempt, f"{other}_once") is None
        assert isinstance(desk.last(), ToolFinished)
        assert not desk.last().ok  # type: ignore[union-attr]

    run(Desk, act)


def test_an_agent_that_has_given_up_its_question_is_not_answered() -> None:
    call = schema.ToolCallUpdate(tool_call_id="c", title="touch", kind="execute")

    async def act(desk: Desk, attempt: Attempt) -> None:
        given_up: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        given_up.cancel()
        asked = PermissionAsked(call, options("allow_once"), given_up)
        approvals = Approvals(AgentSpec("a", "acp", {"otherwise": "allow"}), attempt)
        await answer(attempt, approvals, Updates(attempt), asked)

    run(Desk, act)
