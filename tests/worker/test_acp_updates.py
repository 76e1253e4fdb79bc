"""What an ACP agent reports of its calls: in pieces, twice, or under an id that the turn has seen before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from acp import schema

from ipc.messages import AgentSpec, PastAttempt, ToolFinished, ToolStarted, ToolTrace
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.acp import _usage
from worker.agents.acp_connection import PermissionAsked
from worker.agents.acp_permission import answer
from worker.agents.acp_updates import Updates
from worker.approvals import Approvals
from worker.attempt import Attempt


def play(act: Callable[[Attempt, Updates], Awaitable[None]], tried: tuple[PastAttempt, ...] = ()) -> Desk:
    async def scene() -> Desk:
        desk = Desk()
        attempt = Attempt(assign("", attempt=len(tried) + 1, tried=tried), desk.outbox)
        async with asyncio.timeout(30):
            await act(attempt, Updates(attempt))
        return desk

    return asyncio.run(scene())


def began(call: str = "c", **more: Any) -> schema.ToolCallStart:
    given = {"title": "touch x", "kind": "execute"} | more
    return schema.ToolCallStart(session_update="tool_call", tool_call_id=call, **given)


def went_on(call: str = "c", **more: Any) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=call, **more)


def test_a_permission_is_decided_by_what_was_announced_before() -> None:
    """An agent need not repeat what it has said of the call."""

    async def act(attempt: Attempt, updates: Updates) -> None:
        await updates.take(began(raw_input={"command": "rm -rf x"}))
        asked = schema.ToolCallUpdate(tool_call_id="c")
        options: list[Any] = [schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        permission = PermissionAsked(asked, options, asyncio.get_running_loop().create_future())
        rules = {"deny": ["execute(rm *)"], "otherwise": "allow"}
        await answer(attempt, Approvals(AgentSpec("a", "acp", rules), attempt), updates, permission)
        assert permission.answer.result() is None

    assert play(act).kinds() == ["ToolStarted", "Noted", "ToolFinished"]


def test_what_is_reported_of_an_ended_call_changes_nothing() -> None:
    async def act(_: Attempt, updates: Updates) -> None:
        await updates.take(began(raw_input={"command": "touch x"}))
        await updates.take(went_on(status="completed", raw_output="done"))
        output: Any = {"type": "content", "content": {"type": "text", "text": "late"}}
        await updates.take(
            schema.ToolCallProgress.model_validate(went_on().model_dump() | {"content": [output]})
        )
        await updates.take(went_on(status="failed"))
        await updates.close()

    desk = play(act)
    assert desk.kinds() == ["ToolStarted", "ToolFinished"]
    finished = desk.last()
    assert isinstance(finished, ToolFinished)
    assert (finished.ok, finished.result) == (True, "done")


def test_a_call_of_which_nothing_followed_is_not_recorded() -> None:
    async def act(_: Attempt, updates: Updates) -> None:
        await updates.take(began(status="pending"))
        await updates.close()

    assert play(act).kinds() == []


def test_an_id_that_an_earlier_attempt_has_used_is_replaced() -> None:
    """The process that counts the calls is another one, and begins again."""

    async def act(_: Attempt, updates: Updates) -> None:
        for call in ("call_1", "x" * 10_000):
            await updates.take(began(call, raw_input={"command": f"touch {len(call)}"}))
            await updates.take(went_on(call, status="completed"))

    desk = play(act, (PastAttempt("", (ToolTrace("call_1", "execute", "{}", "unsafe", "done", True),)),))
    started = [frame.call for frame in desk.frames if isinstance(frame, ToolStarted)]
    assert started == ["acp_2_1", "acp_2_2"]
    assert [frame.call for frame in desk.frames if isinstance(frame, ToolFinished)] == started


def test_tokens_of_the_cache_and_of_thoughts_count() -> None:
    told = schema.Usage(
        total_tokens=31,
        input_tokens=1,
        cached_read_tokens=2,
        cached_write_tokens=4,
        output_tokens=8,
        thought_tokens=16,
    )
    used = _usage(assign(""), told)
    assert (used.input_tokens, used.output_tokens) == (7, 24)
