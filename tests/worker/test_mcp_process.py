"""The process of an MCP server: lines that are no messages are skipped, and too many of them end it."""

import asyncio
import os

from worker.mcp_servers.server_process import ServerProcess


def test_a_server_that_never_stops_printing_other_lines_is_ended() -> None:
    async def act() -> None:
        process = ServerProcess(["yes", "noise"], dict(os.environ))
        async with process.streams() as (received, _):
            await asyncio.wait_for(process.ended.wait(), 60)
            async with asyncio.timeout(60):
                assert [message async for message in received] == []

    asyncio.run(act())
