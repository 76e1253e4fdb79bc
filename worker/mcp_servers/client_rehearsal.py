"""The rehearsal of the MCP client: its connection, list of tools and a call, against a peer in memory.

The SDK's models are built at their first use, so a zygote that has only imported them would leave that to
every fork.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, jsonrpc_message_adapter

from worker.event_loop import new_event_loop
from worker.mcp_servers.server_tools import text_of

# Long for a few messages in memory even on a machine that is swapping; longer is a failed start.
_SECONDS_MAX = 30
_WORDS = "All is well."
_VERSION = "2026-07-28"
_CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": _CACHED | {"supportedVersions": [_VERSION], "capabilities": {"tools": {}}},
    "tools/list": _CACHED | {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]},
    "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": _WORDS}]},
}


class ClientRehearsalFailed(Exception):
    """The call gave another result; the calls of a worker would fail the same way."""


def rehearse() -> None:
    """Leaves no socket, thread or loop; raises ClientRehearsalFailed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_call())


async def _call() -> None:
    async with asyncio.timeout(_SECONDS_MAX), Client(_peer(), cache=None) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.session.call_tool(tool.name, {}, allow_input_required=True)
    if not isinstance(result, CallToolResult) or text_of(result) != _WORDS:
        raise ClientRehearsalFailed(f"the rehearsal of the MCP client ended in a {type(result).__name__}")


@asynccontextmanager
async def _peer() -> AsyncIterator[TransportStreams]:
    """A server as the SDK's client sees one."""
    received, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, sent = anyio.create_memory_object_stream[SessionMessage](0)

    async def answer() -> None:
        async for each in sent:
            request = json.loads(each.message.model_dump_json(by_alias=True, exclude_unset=True))
            if "id" in request:
                reply = {"jsonrpc": "2.0", "id": request["id"], "result": _RESULTS[request["method"]]}
                read = jsonrpc_message_adapter.validate_json(json.dumps(reply), by_name=False)
                await received.send(SessionMessage(read))

    answering = asyncio.create_task(answer())
    try:
        yield to_client, from_client
    finally:
        answering.cancel()
        await asyncio.wait({answering})
        for stream in (received, to_client, from_client, sent):
            stream.close()
