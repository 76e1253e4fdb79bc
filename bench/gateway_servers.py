"""The raw servers that the gateway is measured beside: `python -m bench.gateway_servers KIND`.

`bare` is an asyncio protocol that writes the same bytes to every client, `asgi` a raw ASGI application on
uvicorn. Both send an event ten times a second and print their port.
"""

import asyncio
import contextlib
import socket
import sys
from typing import Any, ClassVar, cast

import uvicorn
import uvloop

EVENTS_PER_SECOND = 10
# As long as a delta of the gateway.
_DELTA = b'{"type":"delta","session":"stream","turn":"stream/1","attempt":1,"offset":1000,"text":" word"}'
_EVENT = b"data: %s\n\n" % _DELTA
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class _Bare(asyncio.Protocol):
    clients: ClassVar[set[asyncio.Transport]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by their class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(_HEAD)
        self.clients.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.clients.discard(self._transport)


async def bare(listener: socket.socket) -> None:
    await asyncio.get_running_loop().create_server(_Bare, sock=listener)
    chunk = b"%x\r\n%s\r\n" % (len(_EVENT), _EVENT)
    while True:
        await asyncio.sleep(1 / EVENTS_PER_SECOND)
        for client in _Bare.clients:
            client.write(chunk)


class _Raw:
    """Every client is a task that waits for the next event, as in the gateway."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
            await send({"type": "http.response.body", "body": _EVENT, "more_body": True})

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(1 / EVENTS_PER_SECOND)
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                future.set_result(None)


async def asgi(listener: socket.socket) -> None:
    application = _Raw()
    ticking = asyncio.ensure_future(application.tick())
    config = uvicorn.Config(
        application, loop="none", http="httptools", lifespan="off", log_config=None, access_log=False
    )
    with contextlib.suppress(asyncio.CancelledError):
        await uvicorn.Server(config).serve(sockets=[listener])
    ticking.cancel()


def main(kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    uvloop.run({"bare": bare, "asgi": asgi}[kind](listener))


if __name__ == "__main__":
    main(sys.argv[1])
