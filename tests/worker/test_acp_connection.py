"""The connection to an ACP agent: what comes late, out of turn or too fast, and an agent that ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from acp import schema

from tests.waiting import soon
from worker.agents import acp_connection
from worker.agents.acp_connection import Connection, PermissionAsked, PromptEnded
from worker.agents.acp_process import AgentProcess
from worker.errors import AgentError

_Json = dict[str, Any]
CANCELLED = {"outcome": {"outcome": "cancelled"}}


class Program:
    """An agent that a test plays line by line, in place of a process."""

    program = "agent"
    stray_lines = 0
    has_spoken = True

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.sent: list[_Json] = []
        self._lines: asyncio.Queue[_Json | None] = asyncio.Queue()
        self._reads = asyncio.Event()
        self.pause(is_full=False)

    async def send(self, message: _Json) -> None:
        self.sent.append(message)

    async def receive(self) -> _Json | None:
        await asyncio.sleep(0)  # as a pipe does between two lines
        await self._reads.wait()
        return await self._lines.get()

    def pause(self, is_full: bool) -> None:
        self._reads.clear() if is_full else self._reads.set()

    def kill(self) -> None:
        self.ended.set()

    async def close(self) -> None:
        self.kill()

    def outcome(self) -> str:
        return "was ended"

    # --- what the test has it do ---------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        return self._reads.is_set()

    def says(self, **message: Any) -> None:
        self._lines.put_nowait({"jsonrpc": "2.0", **message})

    def ends(self) -> None:
        self._lines.put_nowait(None)
        self.kill()

    def updates(self, text: str, session: str = "mine") -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self.says(method="session/update", params={"sessionId": session, "update": update})

    def asks(self, number: int, session: str = "mine") -> None:
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        asked = {"sessionId": session, "toolCall": {"toolCallId": "c"}, "options": options}
        self.says(id=number, method="session/request_permission", params=asked)

    async def answered(self, number: int) -> Any:
        """The answer to what it asked."""
        answers = await soon(lambda: [each for each in self.sent if each.get("id") == number])
        return answers[-1].get("result")

    async def replies(self, method: str, **reply: Any) -> None:
        """Answers the next request of this method, once it has come."""
        (request, *_) = await soon(lambda: [each for each in self.sent if each.get("method") == method])
        self.sent.remove(request)
        self.says(id=request["id"], **reply)


def play(scene: Callable[[Connection, Program], Awaitable[None]]) -> None:
    async def run() -> None:
        program = Program()
        connection = Connection(cast("AgentProcess", program))
        await scene(connection, program)
        program.ends()
        await connection._acp.close()

    asyncio.run(run())


def test_a_permission_that_is_asked_for_after_the_cancel_is_answered() -> None:
    """Else the agent would wait for its answer, and the cancel for the agent."""

    async def scene(connection: Connection, program: Program) -> None:
        connection.prompt("mine", "go")
        cancelling = asyncio.create_task(connection.cancel("mine"))
        await soon(lambda: [each for each in program.sent if each["method"] == "session/cancel"])
        program.asks(70)
        assert await program.answered(70) == CANCELLED
        await program.replies("session/prompt", result={"stopReason": "cancelled"})
        await cancelling

    play(scene)


def test_a_cancelled_prompt_ends_behind_a_long_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_connection, "_QUEUE_MAX", 3)

    async def scene(connection: Connection, program: Program) -> None:
        connection.prompt("mine", "go")
        for number in range(20):
            program.updates(str(number))
        await soon(lambda: not program.is_read)
        cancelling = asyncio.create_task(connection.cancel("mine"))
        await program.replies("session/prompt", result={"stopReason": "cancelled"})
        await asyncio.wait_for(cancelling, 30)

    play(scene)


def test_an_agent_is_read_as_fast_as_its_updates_are_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_connection, "_QUEUE_MAX", 3)

    async def scene(connection: Connection, program: Program) -> None:
        items = connection.prompt("mine", "go")
        for number in range(20):
            program.updates(str(number))
        await soon(lambda: not program.is_read)
        assert items.qsize() < 20
        for number in range(20):
            assert (await items.get()).content.text == str(number)
            connection.taken()
        assert program.is_read

    play(scene)


def test_what_comes_after_the_end_of_its_prompt_or_of_another_session_is_no_item() -> None:
    """A permission is answered all the same: the agent may wait for it."""

    async def scene(connection: Connection, program: Program) -> None:
        items = connection.prompt("mine", "go")
        program.updates("of another", session="other")
        program.asks(70, session="other")
        assert await program.answered(70) == CANCELLED
        await program.replies("session/prompt", result={"stopReason": "end_turn"})
        assert isinstance(await items.get(), PromptEnded)
        program.updates("late")
        program.asks(71)
        assert await program.answered(71) == CANCELLED
        assert items.empty()

    play(scene)


def test_a_permission_that_was_asked_for_before_the_cancel_is_answered() -> None:
    async def scene(connection: Connection, program: Program) -> None:
        items = connection.prompt("mine", "go")
        program.asks(70)
        assert isinstance(await items.get(), PermissionAsked)
        cancelling = asyncio.create_task(connection.cancel("mine"))
        assert await program.answered(70) == CANCELLED
        await program.replies("session/prompt", result={"stopReason": "cancelled"})
        await cancelling

    play(scene)


REFUSED = {"code": -32603, "message": "no"}


def offers_both(connection: Connection) -> None:
    sessions = schema.SessionCapabilities(resume=schema.SessionResumeCapabilities())
    connection.capabilities = schema.AgentCapabilities(load_session=True, session_capabilities=sessions)


def test_a_session_that_cannot_be_resumed_is_loaded() -> None:
    async def scene(connection: Connection, program: Program) -> None:
        offers_both(connection)
        restoring = asyncio.create_task(connection.restore_session("theirs", "/"))
        await program.replies("session/resume", error=REFUSED)
        await program.replies("session/load", result={})
        assert await restoring

    play(scene)


def test_an_agent_that_ends_while_it_restores_a_session_is_started_again_by_the_next_attempt() -> None:
    async def scene(connection: Connection, program: Program) -> None:
        offers_both(connection)
        restoring = asyncio.create_task(connection.restore_session("theirs", "/"))
        await soon(lambda: program.sent)
        program.ends()
        assert not await restoring
        with pytest.raises(AgentError) as fault:
            await connection.new_session("/")
        assert fault.value.again

    play(scene)


def test_an_agent_that_begins_no_session_in_time_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_connection, "SESSION_SECONDS_MAX", 0.0)

    async def scene(connection: Connection, program: Program) -> None:
        offers_both(connection)
        assert not await connection.restore_session("theirs", "/")
        with pytest.raises(AgentError, match="did not answer `session/new`") as fault:
            await connection.new_session("/")
        assert fault.value.again

    play(scene)


@pytest.mark.parametrize(
    ("reply", "words", "cannot_start"),
    [
        ({"error": {"code": -32000, "message": "who?"}}, "the agent needs a sign-in", True),
        ({"error": REFUSED}, "the agent reported an error: no", False),
        ({"result": {"id": 1}}, "the agent answered with something else than the protocol says", False),
    ],
    ids=["a sign-in", "an error", "another answer"],
)
def test_what_is_no_session_is_told_in_a_sentence(reply: _Json, words: str, cannot_start: bool) -> None:
    async def scene(connection: Connection, program: Program) -> None:
        beginning = asyncio.create_task(connection.new_session("/"))
        await program.replies("session/new", **reply)
        with pytest.raises(AgentError, match=words) as fault:
            await beginning
        assert (fault.value.cannot_start, fault.value.again) == (cannot_start, False)

    play(scene)
