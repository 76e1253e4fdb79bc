"""Many readers of one stream in one process: `python -m bench.gateway_readers PORT PATH SECRET COUNT`.

For each line on standard input it prints how many readers are connected, how many events all have received,
and the least that one has.
"""

import asyncio
import sys
from typing import cast

import uvloop

_AT_ONCE = 100


class _Reader(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self.is_connected = False
        self.events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by their class.
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self.is_connected = True
        self.events += data.count(b"data: ")


async def _connect(reader: _Reader, port: int) -> None:
    await asyncio.get_running_loop().create_connection(lambda: reader, "127.0.0.1", port)


async def main(port: int, path: str, secret: str, count: int) -> None:
    loop = asyncio.get_running_loop()
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
    readers = [_Reader(head) for _ in range(count)]
    for start in range(0, count, _AT_ONCE):
        some = readers[start : start + _AT_ONCE]
        await asyncio.gather(*(_connect(reader, port) for reader in some))
    while await loop.run_in_executor(None, sys.stdin.readline):
        counts = [reader.events for reader in readers]
        print(sum(reader.is_connected for reader in readers), sum(counts), min(counts), flush=True)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
