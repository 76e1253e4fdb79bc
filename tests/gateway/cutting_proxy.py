"""A TCP proxy before the gateway that cuts connections on demand, as networks and other proxies do."""

import asyncio
import threading
from contextlib import suppress
from types import TracebackType


class CuttingProxy:
    """`connections` counts those of clients. While `is_deaf`, nothing goes back to them."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition("://")[2].rpartition(":")
        self._upstream = (host, int(port))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._started = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.is_deaf = False
        self.address = ""

    def __enter__(self) -> "CuttingProxy":
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Ends all connections; what was not delivered is lost."""
        done = threading.Event()

        def abort() -> None:
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            done.set()

        self._loop.call_soon_threadsafe(abort)
        done.wait()

    def _run(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            behind, upstream = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, upstream}
        await asyncio.gather(self._copy(reader, upstream, False), self._copy(behind, writer, True))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, is_back: bool) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await source.read(65536):
                if not (is_back and self.is_deaf):
                    target.write(data)
                    await target.drain()
            if not (is_back and self.is_deaf):
                target.write_eof()
