"""The tools of MCP servers as tools of an agent: NAME__tool, with the class that the server's hints suggest.

A server that is not up in time is left out; a tool whose name no model accepts, or that clashes with another,
is left out. Each is said once, in a note of the next turn.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents, Tool

from ipc.messages import Setup, ToolClass, ToolServer
from worker.mcp_servers.elicitation import Unanswerable
from worker.mcp_servers.mcp_server import McpServer, ServerFault
from worker.tools import Note, Report
from worker.tools.excerpt import cut

# As model servers require it.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# A call without an answer for this long fails; a note at intervals says that it runs.
_CALL_SECONDS_MAX = 300.0
_SIGN_SECONDS = 20.0
# More would leave the model no room for a conversation.
_TOOLS_MAX = 256
_DESCRIPTION_CHARACTERS_MAX = 4_000


class ServerTool:
    """A tool of a server, for one turn. `answers` are a person's answers to its questions, in order."""

    def __init__(self, server: McpServer, tool: Tool, name: str, repeat: ToolClass) -> None:
        self.name = name
        self.description = (tool.description or tool.title or tool.name)[:_DESCRIPTION_CHARACTERS_MAX]
        self.schema: Mapping[str, Any] = tool.input_schema
        self.repeat: ToolClass = repeat
        self.answers: tuple[str, ...] = ()
        self._server = server
        self._tool = tool.name

    async def run(self, arguments: dict[str, Any], note: Note) -> Report:
        key = json.dumps([self._tool, arguments], sort_keys=True)
        answers, self.answers = self.answers, ()
        calling = asyncio.create_task(self._server.call(self._tool, arguments, key, answers))
        try:
            report = await self._watched(calling, note)
            return replace(report, text=cut(report.text))
        finally:
            calling.cancel()

    async def _watched(self, calling: "asyncio.Task[CallToolResult]", note: Note) -> Report:
        waited = 0.0
        while not (await asyncio.wait({calling}, timeout=_SIGN_SECONDS))[0]:
            waited += _SIGN_SECONDS
            if waited >= _CALL_SECONDS_MAX:
                return Report(f"error: no answer within {_CALL_SECONDS_MAX:g} s", ok=False)
            note(f"still running after {waited:g} s")
        try:
            result = calling.result()
        except (ServerFault, Unanswerable) as fault:
            return Report(f"error: the MCP server {self._server.spec.name}: {fault}", ok=False)
        except MCPError as error:
            return Report(f"error: {error.error.message}", ok=False)
        return Report(text_of(result), ok=not result.is_error)

    def close(self) -> None:
        """The server outlives the turn."""


class ServerTools:
    """All servers of an agent."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[McpServer, Tool, ToolClass]] = {}
        self._notes: list[str] = []

    async def set_up(self, setup: Setup, taken: Iterable[str]) -> None:
        """Starts all servers side by side. `taken` are the names of the agent's other tools."""
        servers = [McpServer(spec, setup.secrets) for spec in setup.servers]
        found = await asyncio.gather(*(server.start() for server in servers), return_exceptions=True)
        names = set(taken)
        for server, tools in zip(servers, found, strict=True):
            name = server.spec.name
            if isinstance(tools, BaseException):
                why = str(tools) if isinstance(tools, ServerFault) else f"it failed ({type(tools).__name__})"
                self._notes.append(f"the MCP server {name} is left out: {why}")
                continue
            for tool in tools:
                self._add(server, tool, names)

    def _add(self, server: McpServer, tool: Tool, names: set[str]) -> None:
        name = f"{server.spec.name}__{tool.name}"
        if not _NAME.fullmatch(name):
            self._notes.append(
                f"a tool of the MCP server {server.spec.name} is left out: its name is not valid"
            )
        elif name in names:
            self._notes.append(f"the tool {name} is left out: there is another one of that name")
        elif len(self._made) >= _TOOLS_MAX:
            self._notes.append(f"the tool {name} is left out: there are {_TOOLS_MAX} already")
        else:
            names.add(name)
            self._made[name] = (server, tool, _class(server.spec, tool))

    def take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    def give_answers(self, tool: object, answers: tuple[str, ...]) -> None:
        """The next call of this tool of `make` has these answers of a person."""
        if isinstance(tool, ServerTool):
            tool.answers = answers

    def make(self) -> dict[str, ServerTool]:
        """Returns the tools for one turn."""
        return {
            name: ServerTool(server, tool, name, repeat)
            for name, (server, tool, repeat) in self._made.items()
        }


def _class(spec: ToolServer, tool: Tool) -> ToolClass:
    if tool.name in spec.classes:
        return spec.classes[tool.name]
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return "pure"
    return "idempotent" if hints is not None and hints.idempotent_hint else "unsafe"


def text_of(result: CallToolResult) -> str:
    """Text as it is; of other content its kind, because the model reads text."""
    parts = []
    for each in result.content:
        if isinstance(each, TextContent):
            parts.append(each.text)
        elif isinstance(each, EmbeddedResource) and isinstance(each.resource, TextResourceContents):
            parts.append(each.resource.text)
        else:
            parts.append(f"[{each.type}]")
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content)
    return "\n".join(parts) or "(no content)"
