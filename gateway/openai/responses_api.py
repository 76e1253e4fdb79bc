"""`/v1/responses`: made, streamed, read again and cancelled. The id of a response is that of its message.

Nothing is stored here: a response is read from the journal, so it outlives the gateway and is there as long
as its turn. Its stream can be resumed behind any event (response_events.py).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from time import monotonic, time

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.open_streams import OpenStream
from gateway.openai import openai_requests, stored_response
from gateway.openai.answer_reader import AnyStep, Silence, attended, one_stream, read_answer
from gateway.openai.answer_steps import Piece
from gateway.openai.conversation_rule import Asking
from gateway.openai.models_api import check_model
from gateway.openai.open_requests import OpenRequest, stop_message
from gateway.openai.openai_errors import error_body
from gateway.openai.openai_requests import ResponseRequest
from gateway.openai.openai_stream import BEAT, STREAM_HEADERS, event_bytes
from gateway.openai.response_events import ResponseEvent, ResponseStream
from gateway.openai.session_choice import Placed, Wish
from gateway.openai.stored_response import Stored
from gateway.parts import Parts

# A kill takes milliseconds; ten seconds without its proof is a fault worth reporting.
_PROOF_SECONDS = 10.0


async def post_response(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    body = await exchange.json(ResponseRequest, openai_requests.BODY_BYTES_MAX)
    asking = openai_requests.response_asking(body)
    await check_model(parts, body.model)
    with one_stream(parts, exchange):
        await _answer_message(parts, exchange, body, asking)


async def _answer_message(parts: Parts, exchange: Exchange, body: ResponseRequest, asking: Asking) -> None:
    is_detached = openai_requests.is_detached(exchange) or bool(body.background)
    wish = openai_requests.wish(exchange, asking, body, openai_requests.conversation_name(body))
    request, placed = await parts.requests.enter(wish, lambda: _place(parts, exchange, wish, body))
    request.is_detached |= is_detached
    response = stored_response.new(exchange.namespace, placed, time(), body)
    if body.background and not body.stream:
        parts.requests.leave(request, is_gone=False)
        await exchange.answer(200, response.response() | {"status": "queued"})
        return
    async with (
        attended(parts, exchange, request) as stream,
        aclosing(read_answer(parts, placed, stream, request)) as steps,
    ):
        if body.stream:
            await _Events(exchange, stream, response, request).send(steps)
        else:
            await _take_all(response, steps)
            await exchange.answer(200, response.response())


async def _place(parts: Parts, exchange: Exchange, wish: Wish, body: ResponseRequest) -> Placed:
    if wish.name or body.previous_response_id is None:
        return await parts.sessions.place(wish)
    before = await stored_response.find(parts, exchange, body.previous_response_id)
    if not before.turn or (before.is_open and not before.is_asking):
        hint = "wait for its end, or cancel it"
        raise HttpError(409, f"the response {body.previous_response_id} has not ended", hint)
    return await parts.sessions.continue_after(wish, before.placed.session, before.turn)


async def get_response(parts: Parts, exchange: Exchange) -> None:
    known = ("stream", "starting_after", "include", "include[]", "include_obfuscation")
    is_streamed = exchange.query(*known).get("stream", "false").lower() in ("true", "1")
    after = exchange.number("starting_after", *known)
    if after is not None and not is_streamed:
        raise HttpError(400, "starting_after is for streams", "send stream=true with it")
    stored = await stored_response.find(parts, exchange, exchange.parameters["response"])
    if not is_streamed:
        await exchange.answer(200, await stored.so_far(parts))
        return
    with one_stream(parts, exchange):
        await _resume(parts, exchange, stored, -1 if after is None else after)


async def _resume(parts: Parts, exchange: Exchange, stored: Stored, after: int) -> None:
    async with (
        attended(parts, exchange) as stream,
        aclosing(read_answer(parts, stored.placed, stream)) as steps,
    ):
        await _Events(exchange, stream, stored.empty(after), None, after).send(steps)


async def post_cancel(parts: Parts, exchange: Exchange) -> None:
    """Answers when every process of the turn is proved gone, with the proof in `killed`."""
    exchange.query()
    stored = await stored_response.find(parts, exchange, exchange.parameters["response"])
    if stored.is_open:
        stopped = await stop_message(parts.supervisor, stored.placed, stored.turn or None, exchange.by)
        if stopped is not None and stopped.unwritten:
            await exchange.answer(200, stored.stopped(stopped))
            return
    response = stored.empty()
    async with (
        attended(parts, exchange) as stream,
        aclosing(read_answer(parts, stored.placed, stream)) as steps,
    ):
        try:
            async with asyncio.timeout(_PROOF_SECONDS):
                await _take_all(response, steps)
        except TimeoutError:
            fault = f"there is no proof within {_PROOF_SECONDS:g} s that the turn has ended"
            raise HttpError(503, fault, "GET /api/workers shows what still runs") from None
    await exchange.answer(200, response.response())


async def _take_all(response: ResponseStream, steps: AsyncIterator[AnyStep]) -> None:
    async for step in steps:
        if not isinstance(step, Silence):
            response.take(step)


class _Events:
    """The stream of a response, behind the event number `after`."""

    def __init__(
        self,
        exchange: Exchange,
        stream: OpenStream,
        response: ResponseStream,
        request: OpenRequest | None,
        after: int = -1,
    ) -> None:
        self._exchange = exchange
        self._stream = stream
        self._response = response
        self._request = request
        self._after = after

    async def send(self, steps: AsyncIterator[AnyStep]) -> None:
        await self._exchange.begin(200, STREAM_HEADERS)
        await self._send_events(self._response.begin())
        try:
            async for step in steps:
                if isinstance(step, Silence):
                    await self._send(BEAT)
                    continue
                if self._request is not None and isinstance(step, Piece):
                    self._request.has_sent = True
                await self._send_events(self._response.take(step))
        except HttpError as error:
            # The answer has begun: its status cannot be changed any more.
            shown = error_body(error, self._exchange.namespace)["error"]
            await self._send(event_bytes({"type": "error", **shown}, "error"))
        await self._exchange.send_part(b"", more=False)

    async def _send_events(self, events: list[ResponseEvent]) -> None:
        wanted = [left for event in events if (left := event.after(self._after)) is not None]
        if data := b"".join([event_bytes(event.body, event.type) for event in wanted]):
            await self._send(data)

    async def _send(self, data: bytes) -> None:
        self._stream.sent_at = monotonic()
        await self._exchange.send_part(data)
