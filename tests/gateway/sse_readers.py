"""Readers of server-sent events that never give up: each resumes after the last id that it has."""

import asyncio
import json
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

# Between two attempts of a reader whose connection was refused or cut.
_AGAIN_SECONDS = 0.1


class SseReader:
    """One reader; `seqs` are the ids in the order in which they came, `connections` counts its attempts."""

    def __init__(self, address: str, secret: str, session: str, after: int = 0) -> None:
        host, _, self._port = address.partition("://")[2].rpartition(":")
        self._host = host
        self._secret = secret
        self._path = f"/api/sessions/{session}/events?after={after}"
        self.seqs: list[int] = []
        self.items: list[dict[str, Any]] = []
        self.connections = 0
        self.statuses: list[int] = []

    async def run(self) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._read_once()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _read_once(self) -> None:
        self.connections += 1
        reader, writer = await asyncio.open_connection(self._host, int(self._port), limit=16 * 1024 * 1024)
        try:
            last = f"Last-Event-ID: {self.seqs[-1]}\r\n" if self.seqs else ""
            head = f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._secret}\r\n"
            writer.write(f"{head}{last}\r\n".encode())
            if not (first := await reader.readline()):
                return
            self.statuses.append(int(first.split()[1]))
            while (await reader.readline()).strip():
                pass
            if self.statuses[-1] == 200:
                await self._take(reader)
        finally:
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        """Lines of the stream end with a line feed alone; the others are the framing of chunks."""
        id = 0
        while line := await reader.readline():
            if line.startswith(b"id: "):
                id = int(line[4:])
            elif line.startswith(b"data: "):
                item = json.loads(line[6:])
                self.items.append(item)
                if id:
                    assert item["seq"] == id
                    self.seqs.append(id)
                id = 0


class SseReaders:
    """Many readers in one thread with a loop of its own."""

    def __init__(self, readers: list[SseReader]) -> None:
        self.readers = readers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> list[SseReader]:
        self._thread.start()
        return self.readers

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        async def all() -> None:
            await asyncio.gather(*(reader.run() for reader in self.readers))

        self._task = self._loop.create_task(all())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        # The transports that were ended close their sockets.
        self._loop.run_until_complete(asyncio.sleep(0))
