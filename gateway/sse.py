"""Server-sent events: the events of one session as text/event-stream.

The id of an event is its seq, so a client that was cut off says in `Last-Event-ID` where it was. Deltas and
notes have no id. A comment keeps a silent connection alive. `X-Accel-Buffering` and `no-transform` keep
proxies from holding events back to compress them.
"""

import asyncio
from collections.abc import Awaitable
from time import monotonic

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.feed_item import Batch
from gateway.first_step import Rest, start
from gateway.open_streams import OpenStream
from gateway.parts import Parts

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
    (b"cache-control", b"no-store, no-transform"),
)
# Clients wait this long before they connect again.
_BEGIN = b"retry: 1000\n\n"
_BEAT = b":\n\n"


async def get_events(parts: Parts, exchange: Exchange) -> None:
    """The events of a session, from now or from a seq on, as server-sent events."""
    assert exchange.token is not None
    after = _place(exchange)
    session = exchange.namespace.inward(exchange.parameters["session"])
    with parts.limiter.streams.one(exchange.token.id):
        await _EventStream(parts, exchange, OpenStream(exchange.token)).run(session, after)


class _EventStream:
    """One connection. While its task waits, the feed has a batch written at once, without waking the task."""

    def __init__(self, parts: Parts, exchange: Exchange, stream: OpenStream) -> None:
        self._parts = parts
        self._exchange = exchange
        self._stream = stream
        self._namespace = exchange.namespace
        # Begun by the feed, to be completed by the task.
        self._begun: Rest | None = None

    async def run(self, session: str, after: int | None) -> None:
        self._reader = await self._parts.feeds.open(session, after, self._woken)
        gone = asyncio.ensure_future(_end_with_client(self._exchange, self._stream))
        self._parts.streams.add(self._stream)
        try:
            await self._exchange.begin(200, _HEADERS)
            await self._exchange.send_part(_BEGIN)
            await self._pass_on()
            await self._exchange.send_part(b"", more=False)
        finally:
            self._parts.streams.remove(self._stream)
            self._reader.close()
            gone.cancel()

    def _woken(self) -> None:
        if self._stream.is_waiting and (batch := self._reader.take()) is not None:
            self._begun = start(self._send(batch))
            if self._begun is None and not self._reader.is_behind:
                return
        self._stream.wake()

    def _send(self, batch: Batch) -> Awaitable[None]:
        self._stream.sent_at = monotonic()
        return self._exchange.send_part(batch.sse(self._namespace))

    async def _pass_on(self) -> None:
        stream, reader = self._stream, self._reader
        while not stream.ended:
            if self._begun is not None:
                begun, self._begun = self._begun, None
                await begun
            elif (batch := reader.take()) is not None:
                await self._send(batch)
            elif reader.cut_reason:
                self._parts.traffic.cut()
                await self._exchange.send_part(b": cut\n\n")
                return
            elif stream.is_silent:
                stream.sent_at = monotonic()
                await self._exchange.send_part(_BEAT)
            else:
                await stream.wait()


async def _end_with_client(exchange: Exchange, stream: OpenStream) -> None:
    while (await exchange.receive())["type"] != "http.disconnect":
        pass
    stream.end("the client has gone")


def _place(exchange: Exchange) -> int | None:
    """After which event the stream begins; None for from now on."""
    after = exchange.number("after")
    last = exchange.header(b"last-event-id")
    if not last:
        return after
    if not (last.isascii() and last.isdigit() and len(last) <= 18):
        raise HttpError(400, f"Last-Event-ID is not a seq: {last[:40]!r}", "send the id of the last event")
    return int(last)
