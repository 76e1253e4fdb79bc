"""The language model over the openai SDK; retries are bounded and reported, and no text is streamed twice.

A short fault (a reset connection, one 503) is retried within the attempt. One that lasts is an outage: the
attempt ends, so that its seat is free, and the supervisor decides when the server is tried again.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import openai
from openai.types.chat import ChatCompletionChunk

from ipc.messages import ModelEndpoint
from worker import model_faults as faults
from worker.model_answer import Assembly, Reply, ToolCall
from worker.model_complaint import read_complaint
from worker.model_faults import Fault, Misbehaviour
from worker.model_progress import Noted, Progress
from worker.model_transport import client_options, refuse_cookies

__all__ = ["Limits", "Model", "Reply", "ToolCall"]

# OPENAI_LOG=debug would print requests, and requests hold messages.
for _name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)

ChatMessage = dict[str, Any]
OnText = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Limits of time, tries and size. Comments give the reasons."""

    # A large prompt on a small machine is read for a minute before the first token.
    stall_seconds: float = 120
    connect_seconds: float = 10
    # Two retries in about two seconds: a longer fault is an outage.
    tries_max: int = 3
    back_off_seconds: float = 0.5
    # The longest wait between two tries, for the attempt holds a seat meanwhile: a longer one is an outage.
    wait_seconds_max: float = 2
    # Four bytes each still fit into one frame with room to spare.
    characters_max: int = 1_000_000
    # An event spends some 300 bytes on a token of four characters.
    bytes_max: int = 128 * 1024 * 1024


class Model:
    """The models that a worker uses; keeps the connection to the last endpoint open from turn to turn."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._client: openai.AsyncOpenAI | None = None
        self._client_is_for = ("", "")

    async def answer(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[ChatMessage],
        tools: Sequence[ChatMessage],
        on_text: OnText,
        noted: Noted,
        has_fallback: bool = False,
    ) -> Reply:
        """Streams one answer: text goes to `on_text`, retries and progress to `noted`; raises ModelError.

        With `has_fallback` a fault that another model may not have is tried less often, and marked so.
        """
        faults.check(endpoint)
        client = await self._client_for(endpoint)
        tries_most = 1 if endpoint.away else self._limits.tries_max
        for number in range(1, tries_most + 1):
            assembly = Assembly(self._limits.characters_max)
            try:
                return await self._once(client, endpoint, messages, tools, assembly, on_text, noted)
            except (openai.OpenAIError, Misbehaviour, TimeoutError) as error:
                fault = self._fault(error, endpoint)
            falls_back = has_fallback and fault.fallback_tries > 0 and not assembly.text
            fault.error.falls_back, fault.error.endpoint = falls_back, endpoint.id
            tries_max = min(tries_most, fault.fallback_tries) if falls_back else tries_most
            if not fault.transient:
                raise fault.error
            if assembly.text:
                fault.error.again = True
                raise fault.error
            wait = self._wait_seconds(number, fault)
            if number >= tries_max or wait > self._limits.wait_seconds_max:
                fault.error.outage, fault.error.wait_seconds = True, math.ceil(fault.wait_seconds or 0)
                raise fault.error
            tries = f"{number + 1} of {tries_max}"
            noted(f"{fault.error.error}; trying again in {wait:.1f} s ({tries})")
            await asyncio.sleep(wait)
        raise AssertionError("a loop that returns or raises came to its end")

    async def close(self) -> None:
        client, self._client, self._client_is_for = self._client, None, ("", "")
        if client is not None:
            await client.close()

    async def _client_for(self, endpoint: ModelEndpoint) -> openai.AsyncOpenAI:
        wanted = (endpoint.base_url, endpoint.api_key)
        if self._client is None or self._client_is_for != wanted:
            await self.close()
            self._client, self._client_is_for = _make_client(endpoint, self._limits), wanted
        return self._client

    async def _once(
        self,
        client: openai.AsyncOpenAI,
        endpoint: ModelEndpoint,
        messages: Sequence[ChatMessage],
        tools: Sequence[ChatMessage],
        assembly: Assembly,
        on_text: OnText,
        noted: Noted,
    ) -> Reply:
        request: dict[str, Any] = {
            "model": endpoint.name,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            request["tools"] = list(tools)
        # Every part of an endless header arrives in time; all of them together must, too.
        async with asyncio.timeout(self._limits.connect_seconds + self._limits.stall_seconds):
            # Not `chat.completions.create`: it searches all messages and schemas for values to translate,
            # which took half of a request's CPU time with twenty tools. There are none.
            stream = await client.post(
                "/chat/completions",
                body=request,
                cast_to=ChatCompletionChunk,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
            )
        progress = Progress(noted)
        is_told = not endpoint.away
        async with stream:
            if stream.response.headers.get("content-type", "").startswith("text/html"):
                raise Misbehaviour(faults.web_page)
            while (chunk := await _next(stream)) is not None:
                if not is_told:
                    # The first frame of a probe releases the other turns; its first token may take a minute.
                    noted("the model server answers again")
                    is_told = True
                text = assembly.take(chunk)
                if text:
                    await on_text(text)
                progress.look(assembly)
        return assembly.reply()

    def _fault(self, error: Exception, endpoint: ModelEndpoint) -> Fault:
        match error:
            case openai.APIStatusError():
                return _status_fault(error, endpoint)
            case openai.APITimeoutError() if type(error.__cause__).__name__ != "ConnectTimeout":
                return faults.stalled(endpoint, self._limits.stall_seconds)
            case openai.APIConnectionError() if faults.breaks_protocol(error):
                return faults.not_http(endpoint)
            case openai.APIConnectionError() if type(error.__cause__).__name__ in _CUT_NAMES:
                return faults.cut(endpoint)
            case openai.APIConnectionError():
                return faults.of_connection(error, endpoint)
            case openai.APIError():
                # An error that the server sent as an event of a stream it had begun.
                complaint = read_complaint(error.body)
                if complaint.is_overflow(200):
                    return faults.too_long(endpoint, "in its stream", complaint)
                return faults.server_error(endpoint, "in its stream")
            case Misbehaviour():
                return error.fault(endpoint)
            case TimeoutError():
                return faults.stalled(endpoint, self._limits.stall_seconds)
        return faults.garbage(endpoint)

    def _wait_seconds(self, number: int, fault: Fault) -> float:
        """Doubles, with jitter so that many workers do not return at once.

        Not shorter than the server asks for.
        """
        own = self._limits.back_off_seconds * float(2 ** (number - 1)) * random.uniform(0.75, 1.25)
        return max(own, fault.wait_seconds or 0)


# Retry-After: the value of a date, and the largest value that is passed on.
_DATE_SECONDS = 30.0
_ASKED_SECONDS_MAX = 86400.0
# The HTTP client's names of a connection that was established and broke.
_CUT_NAMES = {"RemoteProtocolError", "ReadError", "WriteError", "CloseError", "EndOfStream"}


async def _next(stream: openai.AsyncStream[ChatCompletionChunk]) -> ChatCompletionChunk | None:
    """Returns the next chunk, None at the end; an exception of the SDK means garbage."""
    try:
        chunk = await anext(stream)
    except StopAsyncIteration:
        return None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise Misbehaviour(faults.garbage) from None
    if not isinstance(chunk, ChatCompletionChunk):
        raise Misbehaviour(faults.garbage)
    return chunk


def _status_fault(error: openai.APIStatusError, endpoint: ModelEndpoint) -> Fault:
    is_json = "json" in error.response.headers.get("content-type", "")
    complaint = read_complaint(error.body, is_json=is_json)
    fault = faults.of_status(error.status_code, complaint, endpoint)
    return replace(fault, wait_seconds=_asked_seconds(error.response.headers.get("retry-after", "0")))


def _asked_seconds(retry_after: str) -> float:
    """Returns the requested pause.

    A date instead of seconds depends on two clocks, so it counts as a constant.
    """
    try:
        asked = float(retry_after)
    except ValueError:
        return _DATE_SECONDS
    return min(asked, _ASKED_SECONDS_MAX) if asked > 0 and not math.isnan(asked) else 0.0


def _make_client(endpoint: ModelEndpoint, limits: Limits) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(**client_options(endpoint.base_url, limits.bytes_max))
    refuse_cookies(http)
    return openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        # The SDK refuses an empty key; servers without keys ignore this one.
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=openai.Timeout(limits.stall_seconds, connect=limits.connect_seconds),
        http_client=http,
    )
