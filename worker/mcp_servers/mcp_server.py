"""One MCP server: connected at the set-up of its agent, and again with the first call after its end.

The SDK's client must be entered and left by one task, so each connection has a task of its own, which holds
it open; calls are made by the tasks of the turns. A connection that ends is made again by the next call,
three times at most: a server that dies again and again answers nothing but errors, and harms only itself.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, InputRequiredResult, Tool

from ipc.messages import ToolServer
from worker.errors import InputNeeded
from worker.mcp_servers.elicitation import responses
from worker.mcp_servers.server_process import ServerProcess
from worker.patience import within
from worker.tools.command import environment

# A server that takes longer is left out; on a host without a free CPU it may take up to the second limit,
# which is less than the time for the whole set-up (worker/agent_setup.py).
START_SECONDS_MAX = 10.0
_BUSY_SECONDS_MAX = 18.0
_RESTARTS_MAX = 3
# Pages of a list of tools, and rounds of questions in one call; more means that the server never ends.
_PAGES_MAX = 20
_ROUNDS_MAX = 20
# Calls that wait for a person; an agent rarely has more than one.
_STATES_MAX = 32

# The SDK quotes what servers send; nothing of that belongs into the worker's log.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("mcp").propagate = False


class ServerFault(Exception):
    """The server cannot be used; a sentence about why."""


class McpServer:
    """Connected by `start`; a call connects it again."""

    def __init__(self, spec: ToolServer, secrets: Mapping[str, str]) -> None:
        self.spec = spec
        self._secrets = secrets
        self._client: Client | None = None
        self._holding: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._restarts = 0
        # Calls that wait for a person, by tool and arguments: the server's state and the answers it has had.
        self._waiting: dict[str, tuple[InputRequiredResult, int]] = {}

    async def start(self) -> list[Tool]:
        """Returns its tools; raises ServerFault when it is not up in time."""
        try:
            async with within(START_SECONDS_MAX, _BUSY_SECONDS_MAX):
                client = await self._connected()
                return await _tools(client)
        except TimeoutError:
            self._drop()
            raise ServerFault(f"it was not up within {START_SECONDS_MAX:g} s") from None
        except (MCPError, ValueError) as error:
            self._drop()
            raise ServerFault(f"it did not list its tools ({type(error).__name__})") from None

    async def call(
        self, tool: str, arguments: dict[str, Any], key: str, answers: Sequence[str]
    ) -> CallToolResult:
        """Calls a tool. `answers` are those of a person to the questions of this call, `key` names it.

        Raises InputNeeded at a question without an answer. The call with that answer continues where this one
        stopped; in another worker it begins again, and the server asks the same questions.
        """
        client = await self._alive()
        waiting = self._waiting.pop(key, None)
        pending, used = waiting if waiting is not None and answers else (None, 0)
        try:
            for _ in range(_ROUNDS_MAX):
                given = None
                if pending is not None:
                    left = list(answers[used:])
                    given = self._given(key, pending, left, used)
                    used = len(answers) - len(left)
                result = await client.session.call_tool(
                    tool,
                    arguments,
                    input_responses=given,
                    request_state=pending.request_state if pending is not None else None,
                    allow_input_required=True,
                )
                if isinstance(result, CallToolResult):
                    return result
                pending = result
        except MCPError as error:
            if error.error.code != CONNECTION_CLOSED:
                raise
            self._drop()
            raise ServerFault("it ended during the call") from None
        except (OSError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._drop()
            raise ServerFault(_why(error)) from None
        raise ServerFault(f"it asked more than {_ROUNDS_MAX} times for input")

    def _given(self, key: str, pending: InputRequiredResult, left: list[str], used: int) -> dict[str, Any]:
        try:
            return responses(pending, left)
        except InputNeeded:
            self._waiting[key] = (pending, used)
            if len(self._waiting) > _STATES_MAX:
                del self._waiting[next(iter(self._waiting))]
            raise

    async def _alive(self) -> Client:
        async with self._connecting:
            if self._client is not None:
                return self._client
            if self._restarts >= _RESTARTS_MAX:
                raise ServerFault(f"it has ended {_RESTARTS_MAX + 1} times and is not started again")
            self._restarts += 1
            try:
                async with within(START_SECONDS_MAX, _BUSY_SECONDS_MAX):
                    client = await self._connected()
                    await _tools(client)
                    return client
            except TimeoutError:
                self._drop()
                raise ServerFault(f"it was not up within {START_SECONDS_MAX:g} s") from None

    async def _connected(self) -> Client:
        leave = self._leave = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._holding = asyncio.create_task(self._hold(ready, leave))
        self._holding.add_done_callback(partial(self._ended, ready, leave))
        return await asyncio.shield(ready)

    async def _hold(self, ready: "asyncio.Future[Client]", leave: asyncio.Event) -> None:
        """Keeps a connection open until it ends or is dropped."""
        async with self._transport(leave) as transport, Client(transport, cache=None) as client:
            self._client = client
            ready.set_result(client)
            await leave.wait()

    def _ended(
        self, ready: "asyncio.Future[Client]", leave: asyncio.Event, holding: "asyncio.Task[None]"
    ) -> None:
        if self._leave is leave:
            self._client = None
        error = None if holding.cancelled() else holding.exception()
        if not ready.done():
            ready.set_exception(ServerFault(_why(error) if error else "it ended while it was started"))
            ready.exception()  # the one who waited for it may have given up

    @asynccontextmanager
    async def _transport(self, leave: asyncio.Event) -> AsyncIterator[Any]:
        spec = self.spec
        if spec.url:
            named = {header: self._secrets.get(name, "") for header, name in spec.headers_from.items()}
            async with create_mcp_http_client(headers={**spec.headers, **named}) as http:
                yield streamable_http_client(spec.url, http_client=http, terminate_on_close=False)
            return
        named = {name: self._secrets[name] for name in spec.environment_from if name in self._secrets}
        process = ServerProcess(spec.command, environment(os.environ) | spec.environment | named)

        async def watch() -> None:
            await process.ended.wait()
            leave.set()

        watching = asyncio.create_task(watch())
        try:
            yield process.streams()
        finally:
            watching.cancel()
            process.kill()

    def _drop(self) -> None:
        self._client = None
        self._leave.set()
        if self._holding is not None:
            self._holding.cancel()


async def _tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_PAGES_MAX):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _why(error: BaseException) -> str:
    """A sentence without what the server has said, which could be anything."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename!r} in its cell"
    if isinstance(error, OSError) and error.strerror:
        return f"it could not be started ({error.strerror})"
    return f"it could not be reached ({type(error).__name__})"
