"""An MCP server as a process of the cell: JSON-RPC, one message a line, over its standard input and output.

It is started as tools are (tools/spawn.py), so it has their view, limits and seccomp filter, and it is a
resident: it outlives attempts and ends with the cell. The SDK's own transport starts processes otherwise, and
logs the lines that it cannot read. Here such a line is skipped, because servers print banners; a server that
prints too many of them is ended. Its standard error goes to /dev/null.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from worker import descendants, residents
from worker.tools import spawn

# A longer line is no answer that a model could use; its server is ended.
_LINE_BYTES_MAX = 8 * 1024 * 1024
_UNREADABLE_LINES_MAX = 10_000
# What an ended server has written is in the pipe; its children may hold the pipe open.
_DRAIN_SECONDS = 0.2


class ServerProcess:
    """Runs from its construction on."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = spawn.start_piped(line, environment=environment)
        pid = self._process.pid
        residents.add(pid)
        descendants.claim(pid)
        self.ended = asyncio.Event()
        self._pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._exited)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The transport of the SDK's client; leaving it kills the process."""
        received: MemoryObjectSendStream[SessionMessage | Exception]
        to_client: MemoryObjectReceiveStream[SessionMessage | Exception]
        received, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        from_client, sending = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(received)),
            asyncio.create_task(self._write(sending)),
        ]
        try:
            yield to_client, from_client
        finally:
            self.kill()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for stream in (received, to_client, from_client, sending):
                stream.close()

    def kill(self) -> None:
        """Without effect on an ended one. Until it is reaped, its pid names this group and no other."""
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _read(self, received: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_LINE_BYTES_MAX)
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout
        )
        closing = asyncio.create_task(self._close_when_ended(pipe))
        unreadable = 0
        try:
            with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await reader.readline():  # ValueError: the line is too long
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        unreadable += 1
                        if unreadable > _UNREADABLE_LINES_MAX:
                            break
                        continue
                    await received.send(SessionMessage(message))
        finally:
            closing.cancel()
            pipe.close()
            self.kill()
            received.close()

    async def _close_when_ended(self, pipe: asyncio.ReadTransport) -> None:
        await self.ended.wait()
        asyncio.get_running_loop().call_later(_DRAIN_SECONDS, pipe.close)

    async def _write(self, sending: MemoryObjectReceiveStream[SessionMessage]) -> None:
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._process.stdin)
        try:
            async for each in sending:
                content = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                pipe.write(content.encode() + b"\n")
        finally:
            pipe.abort()

    def _exited(self) -> None:
        self._process.poll()
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        residents.remove(self._process.pid)
        descendants.let_go(self._process.pid)
        self.ended.set()
