"""The connection to an MCP server: made again after its end, once, and given up with its process."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    CallToolResult,
    JSONRPCNotification,
    ListToolsResult,
    Tool,
)

from ipc.message_parts import ToolServer
from ipc.messages import AgentSpec, Setup
from tests.waiting import nothing_follows, soon
from tests.worker.mcp_scene import SERVER
from worker import residents
from worker.mcp_servers import mcp_server, server_tools
from worker.mcp_servers.mcp_server import McpServer, ServerFault
from worker.mcp_servers.server_process import ServerProcess
from worker.mcp_servers.server_tools import ServerTool, ServerTools

DONE = CallToolResult(content=[])
HELLO = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="hello"))


class Client:
    """The SDK's client; a call does what `effect` does."""

    def __init__(self, effect: Callable[[], Awaitable[CallToolResult]]) -> None:
        self.session = self
        self._effect = effect

    async def call_tool(self, tool: str, arguments: dict[str, Any], **further: Any) -> CallToolResult:
        return await self._effect()

    async def list_tools(self, cursor: str | None) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="t", input_schema={})])


class Server(McpServer):
    """Its connections are made in the test's process, in one turn of the loop each."""

    def __init__(self, effect: Callable[[], Awaitable[CallToolResult]], name: str = "s") -> None:
        super().__init__(ToolServer(name, ("nowhere",)), {})
        self._effect = effect
        self.connections = 0

    async def _connected(self) -> Any:
        self.connections += 1
        await asyncio.sleep(0)
        client: Any = Client(self._effect)
        self._client = client
        return client

    def tool(self) -> ServerTool:
        return ServerTool(self, Tool(name="t", input_schema={}), "s__t", "unsafe")


async def done() -> CallToolResult:
    return DONE


async def call(server: McpServer) -> CallToolResult:
    return await server.call("t", {}, "key", ())


def test_calls_side_by_side_after_its_end_share_one_connection() -> None:
    async def act() -> None:
        server = Server(done)
        assert await asyncio.gather(*(call(server) for _ in range(5))) == [DONE] * 5
        assert server.connections == 1

    asyncio.run(act())


@pytest.mark.parametrize(
    ("error", "raised", "connections"),
    [
        (MCPError(INVALID_PARAMS, "no such seat"), MCPError, 1),
        (MCPError(CONNECTION_CLOSED, "closed"), ServerFault, 2),
        (httpx2.ConnectError("refused"), ServerFault, 2),
    ],
    ids=["refuses", "ends", "is gone"],
)
def test_after_a_failed_call_it_is_connected_again_only_if_it_has_ended(
    error: Exception, raised: type[Exception], connections: int
) -> None:
    async def act() -> None:
        errors = [error]

        async def effect() -> CallToolResult:
            if errors:
                raise errors.pop()
            return DONE

        server = Server(effect)
        with pytest.raises(raised):
            await call(server)
        assert await call(server) == DONE
        assert server.connections == connections

    asyncio.run(act())


def quiet(*line: str) -> McpServer:
    return McpServer(ToolServer("s", line), {})


@pytest.mark.parametrize("begins", [McpServer.start, call], ids=["at its set-up", "with a call"])
def test_a_server_that_is_not_up_in_time_is_ended(
    begins: Callable[[McpServer], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "START_SECONDS_MAX", 0.02)
    monkeypatch.setattr(mcp_server, "_BUSY_SECONDS_MAX", 0.02)

    async def act() -> None:
        with pytest.raises(ServerFault, match=r"it was not up within 0\.02 s"):
            await begins(quiet("sleep", "1000"))
        await soon(lambda: not residents.pids())

    asyncio.run(act())


def test_a_server_that_cannot_be_started_is_not_waited_for() -> None:
    async def act() -> None:
        with pytest.raises(ServerFault, match="there is no program '/no/such/program' in its cell"):
            await quiet("/no/such/program").start()

    asyncio.run(act())


def test_a_server_that_has_ended_between_two_calls_is_there_for_the_next() -> None:
    async def act() -> None:
        server = quiet(sys.executable, "-E", "-s", SERVER, "good")
        await server.start()
        (pid,) = residents.pids()
        os.kill(pid, signal.SIGKILL)
        await soon(lambda: server._client is None)
        found = await server.call("add", {"a": 1, "b": 2}, "key", ())
        assert server_tools.text_of(found) == "3"
        server._drop()
        await soon(lambda: not residents.pids())

    asyncio.run(act())


def test_a_server_that_has_ended_leaves_no_descriptor() -> None:
    async def act() -> None:
        before = len(os.listdir("/proc/self/fd"))
        process = ServerProcess(["cat"], dict(os.environ))
        async with process.streams() as (received, sending):
            await sending.send(HELLO)
            assert await received.receive() == HELLO
        await process.ended.wait()
        await soon(lambda: len(os.listdir("/proc/self/fd")) == before)

    asyncio.run(act())


def test_a_call_ends_when_its_time_is_over_or_its_tool_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_tools, "_SIGN_SECONDS", 0.01)

    async def act() -> None:
        ended: list[str] = []

        async def effect() -> CallToolResult:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("a call")
            return DONE

        notes: list[str] = []
        server = Server(effect)
        running = asyncio.create_task(server.tool().run({}, notes.append))
        await soon(lambda: notes)
        running.cancel()
        await asyncio.wait({running})
        await soon(lambda: ended)
        monkeypatch.setattr(server_tools, "_CALL_SECONDS_MAX", 0.02)
        report = await asyncio.wait_for(server.tool().run({}, notes.append), 30)
        assert (report.ok, report.text) == (False, "error: no answer within 0.02 s")
        await nothing_follows()
        assert len(ended) == 2

    asyncio.run(act())


def test_a_tool_of_the_agent_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_tools, "McpServer", lambda spec, secrets: Server(done, spec.name))

    async def act() -> None:
        tools = ServerTools()
        both = ToolServer("s", ("nowhere",)), ToolServer("other", ("nowhere",))
        await tools.set_up(Setup(AgentSpec("default", "builtin"), both, {}), ["s__t"])
        assert list(tools.make()) == ["other__t"]
        assert tools.take_notes() == ["the tool s__t is left out: there is another one of that name"]

    asyncio.run(act())
