"""A call of an MCP tool that has asked a person goes on in the next attempt, with the answers it has had."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from mcp_types import CallToolResult, Tool
from msgspec.structs import replace

from ipc.message_parts import ToolServer
from ipc.messages import AgentSpec, Finished, PastAnswer, PastAttempt, ToolStarted, ToolTrace
from tests.fake_model import FakeModel
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker.agents.approved_calls import clarified_calls
from worker.agents.builtin import Builtin
from worker.attempt import Attempt
from worker.mcp_servers.mcp_server import McpServer
from worker.mcp_servers.server_tools import ServerTools
from worker.model import Model

ANSWERS = ("one", "two", "blue")


class Server(McpServer):
    """Keeps the arguments and answers of its calls, and asks nothing."""

    def __init__(self) -> None:
        super().__init__(ToolServer("s", ("nowhere",)), {})
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    async def call(
        self, tool: str, arguments: dict[str, Any], key: str, answers: Sequence[str]
    ) -> CallToolResult:
        self.calls.append((arguments["to"], tuple(answers)))
        return CallToolResult(content=[])


def booking(to: str, result: str | None) -> ToolTrace:
    return ToolTrace(
        f"{to} {result}", "s__book", json.dumps({"to": to}), "unsafe", result, result is not None
    )


def lost(*tools: ToolTrace) -> PastAttempt:
    return PastAttempt("", tools, "lost")


def asked(*tools: ToolTrace) -> PastAttempt:
    """An attempt that a call ended with a question; its result is the answer."""
    return PastAttempt("", tools)


def answered(fake: FakeModel, *tried: PastAttempt, tools: Sequence[str] = ()) -> tuple[Desk, Server]:
    desk, server = Desk(), Server()

    async def scene() -> None:
        model, spec = Model(), AgentSpec("default", "builtin", {"tools": list(tools)})
        agent = Builtin(spec, model)
        agent._servers = ServerTools()
        agent._servers._made["s__book"] = (server, Tool(name="book", input_schema={}), "unsafe")
        answers = tuple(
            PastAnswer("clarify", "?", call.result or "", call.call, number)
            for number, past in enumerate(tried, 1)
            for call in past.tools
            if call.result in ANSWERS
        )
        work = assign(fake.base_url, attempt=len(tried) + 1, tried=tried, answers=answers)
        work = replace(work, agent=spec)
        await Attempt(work, desk.outbox).run(agent.answer)
        await model.close()

    asyncio.run(scene())
    assert isinstance(desk.last(), Finished)
    return desk, server


@pytest.mark.parametrize(
    ("tried", "called"),
    [
        ([asked(booking("Rome", "one"))], [("Rome", ("one",))]),
        ([asked(booking("Rome", "one")), asked(booking("Rome", "two"))], [("Rome", ("one", "two"))]),
        (
            [asked(booking("Rome", "one")), asked(booking("Rome", "booked"), booking("Oslo", "two"))],
            [("Oslo", ("two",))],
        ),
        (
            [asked(booking("Rome", "one")), asked(booking("Rome", "booked"), booking("Rome", "two"))],
            [("Rome", ("two",))],
        ),
        (
            [asked(booking("Rome", "one")), lost(booking("Rome", None)), asked(booking("Rome", "two"))],
            [("Rome", ("two",))],
        ),
        ([asked(booking("Rome", "one"), booking("Oslo", "booked"))], [("Rome", ("one",))]),
        ([asked(booking("Rome", "one")), asked(booking("Oslo", "two"))], [("Oslo", ("two",))]),
        ([asked(booking("Rome", "one")), lost(booking("Rome", None))], []),
        ([asked(booking("Rome", "one")), lost()], []),
    ],
    ids=[
        "one question",
        "two questions",
        "another call",
        "the same call once more",
        "the same call after one that was lost",
        "another call beside it",
        "another call at once",
        "a call that was lost",
        "an attempt that was lost",
    ],
)
def test_a_call_goes_on_with_the_answers_to_its_own_questions(
    fake: FakeModel, tried: list[PastAttempt], called: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert answered(fake, *tried)[1].calls == called


def test_a_question_of_the_model_itself_is_no_call_to_be_made_again(fake: FakeModel) -> None:
    question = ToolTrace("q", "ask", '{"question": "Which?"}', "pure", "blue", True)
    desk, _ = answered(fake, asked(question), tools=["ask"])
    assert not any(isinstance(frame, ToolStarted) for frame in desk.frames)


def test_a_call_is_clarified_only_by_the_answer_to_its_own_question() -> None:
    """Not by one about something else, such as a budget, or about a call of another attempt."""
    made = booking("Rome", "window")

    def clarified(*answers: PastAnswer) -> dict[int, ToolTrace]:
        return clarified_calls(assign("", attempt=3, tried=(asked(made), lost()), answers=answers))

    about_it = PastAnswer("clarify", "Seat?", "window", made.call, 1)
    assert clarified(about_it) == {1: made}
    assert clarified() == {}
    assert clarified(PastAnswer("approve", "Go on?", "yes", "", 1)) == {}
    assert clarified(replace(about_it, kind="approve"), replace(about_it, attempt=2)) == {}
