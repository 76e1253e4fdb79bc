"""Server-sent events: the events of one session as text/event-stream.

The id of an event is its seq, so a client that was cut off says in `Last-Event-ID` where it was. Deltas and
notes have no id. A comment keeps a silent connection alive. `X-Accel-Buffering` and `no-transform` keep
proxies from holding events back to compress them.
"""

import asyncio
from time import monotonic

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.open_streams import OpenStream
from gateway.parts import Parts
from gateway.session_feed import Reader

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
    (b"cache-control", b"no-store, no-transform"),
)
# Clients wait this long before they connect again.
_BEGIN = b"retry: 1000\n\n"
_BEAT = b":\n\n"
# Written at once: a fraction of what the server buffers before it waits for the client.
_PART_BYTES = 64 * 1024


async def get_events(parts: Parts, exchange: Exchange) -> None:
    """The events of a session, from now or from a seq on, as server-sent events."""
    assert exchange.token is not None
    after = _place(exchange)
    session = exchange.namespace.inward(exchange.parameters["session"])
    stream = OpenStream(exchange.token)
    with parts.limiter.streams.one(exchange.token.id):
        reader = await parts.feeds.open(session, after, stream.wake)
        gone = asyncio.ensure_future(_end_with_client(exchange, stream))
        parts.streams.add(stream)
        try:
            await exchange.begin(200, _HEADERS)
            await exchange.send_part(_BEGIN)
            await _pass_on(parts, exchange, stream, reader)
            await exchange.send_part(b"", more=False)
        finally:
            parts.streams.remove(stream)
            reader.close()
            gone.cancel()


async def _pass_on(parts: Parts, exchange: Exchange, stream: OpenStream, reader: Reader) -> None:
    namespace = exchange.namespace
    while not stream.ended:
        if items := reader.take(_PART_BYTES):
            stream.sent_at = monotonic()
            await exchange.send_part(b"".join([item.sse(namespace) for item in items]))
        elif reader.cut_reason:
            parts.traffic.cut()
            await exchange.send_part(b": cut\n\n")
            return
        elif stream.is_silent:
            stream.sent_at = monotonic()
            await exchange.send_part(_BEAT)
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
