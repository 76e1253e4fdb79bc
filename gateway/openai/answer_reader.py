"""Reads the answer to a message from the feed of its session, for as long as its client is there."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from time import monotonic

from uvicorn.protocols.utils import ClientDisconnected

from gateway.errors import HttpError, Unavailable
from gateway.exchange import Exchange
from gateway.open_streams import OpenStream
from gateway.openai.answer_steps import AnswerSteps, Asked, End, Lost, Step
from gateway.openai.open_requests import OpenRequest
from gateway.openai.session_choice import Placed
from gateway.parts import Parts
from gateway.session_feed import Reader
from ipc.messages import Noted, Show, Table

_GONE = "the client has gone"
# Between two looks for a feed that cannot be had.
_AGAIN_SECONDS = 0.5


class Silence:
    """Nothing happened for a while: time for a sign of life."""


SILENCE = Silence()
AnyStep = Step | Silence


@asynccontextmanager
async def attended(
    parts: Parts, exchange: Exchange, request: OpenRequest | None = None
) -> AsyncIterator[OpenStream]:
    """The stream of an answer, which ends with its client. The turn of `request` may end with it, too."""
    assert exchange.token is not None
    stream = OpenStream(exchange.token)
    leaving = asyncio.ensure_future(_end_with_client(exchange, stream))
    parts.streams.add(stream)
    try:
        yield stream
    finally:
        parts.streams.remove(stream)
        leaving.cancel()
        if request is not None:
            parts.requests.leave(request, is_gone=stream.ended == _GONE)


def one_stream(parts: Parts, exchange: Exchange) -> AbstractContextManager[None]:
    """Counts the request as an open stream of its token, or refuses it: before its message is sent."""
    assert exchange.token is not None
    return parts.limiter.streams.one(exchange.token.id)


async def _end_with_client(exchange: Exchange, stream: OpenStream) -> None:
    while (await exchange.receive())["type"] != "http.disconnect":
        pass
    stream.end(_GONE)


async def read_answer(
    parts: Parts, placed: Placed, stream: OpenStream, request: OpenRequest | None = None
) -> AsyncGenerator[AnyStep, None]:
    """Yields the steps of the answer, the last one an Asked or an End.

    Raises ClientDisconnected when the client has gone, and HttpError when the stream is ended otherwise.
    """
    steps = AnswerSteps(placed.message)
    reader = await _open(parts, placed.session, placed.seq - 1, stream)
    try:
        while True:
            _check(stream)
            batch = reader.take()
            for item in batch.items if batch is not None else ():
                if isinstance(item.message, Noted):
                    continue
                found = steps.take(item.message)
                if request is not None:
                    request.turn = steps.turn
                for step in found:
                    if isinstance(step, Asked | Lost) and steps.lacks(step):
                        for missing in steps.fill(await _text_of(parts, steps.turn), step.offset):
                            yield missing
                    if request is not None and isinstance(step, Asked | End):
                        request.is_ended = True
                    yield step
                    if isinstance(step, Asked | End):
                        return
            if batch is not None:
                continue
            if reader.cut_reason:
                reader.close()
                reader = await _open(parts, placed.session, reader.seq, stream)
            elif stream.is_silent:
                stream.sent_at = monotonic()
                yield SILENCE
            else:
                await stream.wait()
    finally:
        reader.close()


def _check(stream: OpenStream) -> None:
    if stream.ended == _GONE:
        raise ClientDisconnected()
    if stream.ended:
        raise Unavailable(f"{stream.ended}, and the turn goes on")


async def _open(parts: Parts, session: str, after: int, stream: OpenStream) -> Reader:
    """A reader behind that event, or before it if the feed is not there yet."""
    while True:
        try:
            reader = await parts.feeds.open(session, None, stream.wake)
            if reader.seq <= after:
                return reader
            reader.close()
            return await parts.feeds.open(session, after, stream.wake)
        except Unavailable:
            _check(stream)
            await asyncio.sleep(_AGAIN_SECONDS)


async def _text_of(parts: Parts, turn: str | None) -> str:
    page = await parts.supervisor.ask(Show("turn", id=turn or ""), Table)
    if not page.rows:
        raise HttpError(404, f"turn {turn} is no longer in the journal", "send the message again")
    return str(page.rows[0]["text"])
