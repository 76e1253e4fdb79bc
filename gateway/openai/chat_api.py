"""`POST /v1/chat/completions`: a message to a session, answered whole or as a stream of chunks.

A stream consists of chunks and comments alone: clients of the OpenAI API fail at events that they do not
know. A lost attempt is told in words, a question is text, and a turn that fails is a chunk with an error.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from time import monotonic, time
from typing import Any

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.open_streams import OpenStream
from gateway.openai import client_tasks, openai_requests
from gateway.openai.answer_reader import AnyStep, Silence, attended, one_stream, read_answer
from gateway.openai.answer_steps import Asked, End, Lost, Piece, fault_of
from gateway.openai.conversation_rule import LOST_WORDS, Asking
from gateway.openai.models_api import check_model
from gateway.openai.open_requests import OpenRequest
from gateway.openai.openai_errors import TurnError, error_body
from gateway.openai.openai_requests import ChatRequest
from gateway.openai.openai_stream import BEAT, STREAM_HEADERS, event_bytes
from gateway.parts import Parts

_FINISHES = {"length": "length", "content_filter": "content_filter", "refusal": "content_filter"}
_DONE = b"data: [DONE]\n\n"


async def post_chat(parts: Parts, exchange: Exchange) -> None:
    exchange.query()
    body = await exchange.json(ChatRequest, openai_requests.BODY_BYTES_MAX)
    asking = openai_requests.chat_asking(body)
    await check_model(parts, body.model)
    if task := exchange.header(b"x-task"):
        text = client_tasks.answer(task, "\n\n".join(asking.conversation.new))
        await _answer_task(exchange, _Completion("task", body), text, bool(body.stream))
        return
    with one_stream(parts, exchange):
        await _answer_message(parts, exchange, body, asking)


async def _answer_message(parts: Parts, exchange: Exchange, body: ChatRequest, asking: Asking) -> None:
    is_detached = openai_requests.is_detached(exchange)
    wish = openai_requests.wish(exchange, asking, body)
    request, placed = await parts.requests.enter(wish, lambda: parts.sessions.place(wish))
    request.is_detached |= is_detached
    completion = _Completion(placed.message.removeprefix("m_"), body)
    async with (
        attended(parts, exchange, request) as stream,
        aclosing(read_answer(parts, placed, stream, request)) as steps,
    ):
        if body.stream:
            await _Chunks(exchange, stream, request, completion).send(steps)
        else:
            await exchange.answer(200, await _whole(completion, steps))


class _Completion:
    """The objects of one answer."""

    def __init__(self, id: str, request: ChatRequest) -> None:
        self._common = {
            "id": f"chatcmpl-{id}",
            "created": int(time()),
            "model": request.model,
            "system_fingerprint": None,
        }
        options = request.stream_options
        self.has_usage_chunk = options is not None and options.include_usage

    def whole(self, text: str, end: End | None) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(end)}
        return self._common | {"object": "chat.completion", "choices": [choice], "usage": _usage(end)}

    def text_chunk(self, text: str) -> bytes:
        return self._chunk([_choice({"content": text})])

    def first_chunk(self) -> bytes:
        return self._chunk([_choice({"role": "assistant", "content": ""})])

    def last_chunks(self, end: End | None) -> bytes:
        last = self._chunk([_choice({}, _finish(end))])
        return last + (self._chunk([], _usage(end)) if self.has_usage_chunk else b"")

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
        body = self._common | {"object": "chat.completion.chunk", "choices": choices}
        return event_bytes(body | {"usage": usage} if self.has_usage_chunk else body)


async def _whole(completion: _Completion, steps: AsyncIterator[AnyStep]) -> dict[str, Any]:
    """The text is what the journal has in the end: a lost attempt leaves nothing that is to be told."""
    text, begin = "", 0
    async for step in steps:
        match step:
            case Piece():
                begin = begin if text else step.offset
                text += step.text
            case Lost():
                text = text[: step.offset - begin]
            case Asked():
                return completion.whole(_before(text) + step.text, None)
            case End(outcome="done"):
                return completion.whole(text, step)
            case End():
                raise TurnError(*fault_of(step))
    raise AssertionError("an answer has an end")


class _Chunks:
    """The stream of one answer."""

    def __init__(
        self, exchange: Exchange, stream: OpenStream, request: OpenRequest, completion: _Completion
    ) -> None:
        self._exchange = exchange
        self._stream = stream
        self._request = request
        self._completion = completion
        self._has_text = False

    async def send(self, steps: AsyncIterator[AnyStep]) -> None:
        await self._exchange.begin(200, STREAM_HEADERS)
        await self._send(self._completion.first_chunk())
        try:
            async for step in steps:
                await self._send_step(step)
        except HttpError as error:
            # The answer has begun: its status cannot be changed any more.
            await self._send(event_bytes(error_body(error, self._exchange.namespace)))
        await self._exchange.send_part(_DONE, more=False)

    async def _send_step(self, step: AnyStep) -> None:
        match step:
            case Piece():
                await self._send_text(step.text)
            case Lost() if self._has_text:
                await self._send_text(f"\n\n{LOST_WORDS}\n\n")
            case Asked():
                await self._send_text(("\n\n" if self._has_text else "") + step.text)
                await self._send(self._completion.last_chunks(None))
            case End(outcome="done"):
                await self._send(self._completion.last_chunks(step))
            case End():
                raise TurnError(*fault_of(step))
            case Silence():
                await self._send(BEAT)

    async def _send_text(self, text: str) -> None:
        self._has_text = self._request.has_sent = True
        await self._send(self._completion.text_chunk(text))

    async def _send(self, data: bytes) -> None:
        self._stream.sent_at = monotonic()
        await self._exchange.send_part(data)


async def _answer_task(exchange: Exchange, completion: _Completion, text: str, is_streamed: bool) -> None:
    if not is_streamed:
        await exchange.answer(200, completion.whole(text, None))
        return
    await exchange.begin(200, STREAM_HEADERS)
    chunks = completion.first_chunk() + completion.text_chunk(text) + completion.last_chunks(None)
    await exchange.send_part(chunks + _DONE, more=False)


def _before(text: str) -> str:
    """The text in front of a question."""
    return f"{text}\n\n" if text else ""


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish(end: End | None) -> str:
    return _FINISHES.get(str(end.fields.get("finish")), "stop") if end is not None else "stop"


def _usage(end: End | None) -> dict[str, int]:
    """The tokens of the whole turn; none are known while it waits for an answer."""
    found = (end.fields.get("usage") or {}) if end is not None else {}
    given, written = int(found.get("input_tokens") or 0), int(found.get("output_tokens") or 0)
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
