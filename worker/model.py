"""The language model over the openai SDK; retries are bounded and told, and nothing is spoken twice."""

import asyncio
import functools
import ipaddress
import logging
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from ipc.messages import ModelEndpoint, Usage
from worker import model_faults as faults
from worker.model_faults import Fault

# OPENAI_LOG=debug would print requests, and requests hold messages.
for _name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)

ChatMessage = dict[str, Any]
Heard = Callable[[str], Awaitable[None]]
Noted = Callable[[str], None]

# More than any model asks for in one breath; a server that goes on is broken.
_CALLS_MAX = 64
# One event holds one token or one call's arguments; a longer line is not a chat stream.
_LINE_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """How long, how often, how much. The reasons stand beside the numbers."""

    # A large prompt on a small machine is read for a minute before the first token.
    stall_seconds: float = 120
    connect_seconds: float = 10
    # One and three more: a restarting server is back by then; beyond it, another attempt or a person decides.
    tries_max: int = 4
    back_off_seconds: float = 0.5
    # What a server may make us wait at most; a turn shows no progress meanwhile.
    wait_seconds_max: float = 30
    # Four bytes each still fit into one frame with room to spare.
    characters_max: int = 1_000_000
    # An event spends some 300 bytes on a token of four characters.
    bytes_max: int = 128 * 1024 * 1024


@dataclass(frozen=True)
class ToolCall:
    """A tool the model wants run; `arguments` is the text it wrote, which may not be JSON."""

    call: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One complete answer of the model: words, or calls, or both."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage


class Model:
    """The models a worker talks to; keeps the connection to the last endpoint open from turn to turn."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._client: openai.AsyncOpenAI | None = None
        self._client_is_for = ("", "")

    async def answer(
        self,
        endpoint: ModelEndpoint,
        messages: Sequence[ChatMessage],
        tools: Sequence[ChatMessage],
        heard: Heard,
        noted: Noted,
    ) -> Reply:
        """Streams one answer: each piece of text goes to `heard`, each retry to `noted`; else ModelError."""
        faults.check(endpoint)
        client = await self._client_for(endpoint)
        for number in range(1, self._limits.tries_max + 1):
            assembly = _Assembly(self._limits.characters_max)
            try:
                return await self._once(client, endpoint, messages, tools, assembly, heard)
            except (openai.OpenAIError, _Garbage, _WebPage, _TooLarge, _Unfinished) as error:
                fault = self._fault(error, endpoint)
            if fault.transient and assembly.text:
                fault.error.again = True
            if not fault.transient or assembly.text or number == self._limits.tries_max:
                raise fault.error
            wait = self._wait_seconds(number, fault)
            tries = f"{number + 1} of {self._limits.tries_max}"
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
        assembly: "_Assembly",
        heard: Heard,
    ) -> Reply:
        request: dict[str, Any] = {"model": endpoint.name, "messages": list(messages)}
        if tools:
            request["tools"] = list(tools)
        stream: openai.AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(
            **request, stream=True, stream_options={"include_usage": True}
        )
        async with stream:
            if stream.response.headers.get("content-type", "").startswith("text/html"):
                raise _WebPage
            while (chunk := await _next(stream)) is not None:
                text = assembly.take(chunk)
                if text:
                    await heard(text)
        return assembly.reply()

    def _fault(self, error: Exception, endpoint: ModelEndpoint) -> Fault:
        match error:
            case openai.APIStatusError():
                return _status_fault(error, endpoint, self._limits)
            case openai.APITimeoutError() if type(error.__cause__).__name__ != "ConnectTimeout":
                return faults.stalled(endpoint, self._limits.stall_seconds)
            case openai.APIConnectionError() if type(error.__cause__).__name__ in _CUT_NAMES:
                return faults.cut(endpoint)
            case openai.APIConnectionError():
                return faults.of_connection(error, endpoint)
            case openai.APIError():
                # An error that the server sent as an event of a stream it had begun.
                return faults.server_error(endpoint, "in its stream")
            case _TooLarge():
                return faults.too_large(endpoint)
            case _WebPage():
                return faults.web_page(endpoint)
            case _Unfinished():
                return faults.cut(endpoint)
        return faults.garbage(endpoint)

    def _wait_seconds(self, number: int, fault: Fault) -> float:
        """Doubling, jittered so that many workers do not come back at once; not shorter than asked for."""
        own = self._limits.back_off_seconds * float(2 ** (number - 1)) * random.uniform(0.75, 1.25)
        return min(self._limits.wait_seconds_max, max(own, fault.wait_seconds or 0))


class _Garbage(Exception):
    """What arrived is not a chat stream."""


class _WebPage(Exception):
    """What arrived is for a browser."""


class _TooLarge(Exception):
    """More arrived than one answer may hold."""


class _Unfinished(Exception):
    """The stream ended in good order, but the answer did not."""


# What the HTTP client calls a connection that stood and broke.
_CUT_NAMES = {"RemoteProtocolError", "ReadError", "WriteError", "CloseError", "EndOfStream"}


@dataclass
class _Call:
    call: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Assembly:
    """Puts an answer together from its chunks, and trusts no server about their shape."""

    def __init__(self, characters_max: int) -> None:
        self._characters_left = characters_max
        self._texts: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._usage = Usage()
        self._finish = ""

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def take(self, chunk: ChatCompletionChunk) -> str:
        """Takes a chunk in and gives the text that came with it."""
        choices = getattr(chunk, "choices", None)
        if not isinstance(chunk, ChatCompletionChunk) or not isinstance(choices, list | None):
            raise _Garbage
        self._take_usage(getattr(chunk, "usage", None))
        if not choices:
            return ""
        self._finish = getattr(choices[0], "finish_reason", None) or self._finish
        delta = getattr(choices[0], "delta", None)
        for part in getattr(delta, "tool_calls", None) or ():
            self._take_call(part)
        text = getattr(delta, "content", None)
        if not isinstance(text, str | None):
            raise _Garbage
        if text:
            self._spend(text)
            self._texts.append(text)
        return text or ""

    def reply(self) -> Reply:
        calls = tuple(ToolCall(c.call, c.name, "".join(c.arguments)) for c in self._calls.values())
        if not self._finish:
            # Without a word about its end the answer may be half of one, and is not passed off as whole.
            raise _Unfinished if self._texts or calls else _Garbage
        if not all(call.name for call in calls):
            raise _Garbage
        return Reply(self.text, calls, self._usage)

    def _take_call(self, part: Any) -> None:
        call = getattr(part, "id", None) or ""
        function = getattr(part, "function", None)
        index = getattr(part, "index", None)
        if not isinstance(index, int):
            # Some servers leave the index out: a new id begins a call, none goes on with the last.
            index = len(self._calls) if call or not self._calls else len(self._calls) - 1
        name, arguments = getattr(function, "name", None) or "", getattr(function, "arguments", None) or ""
        if not (isinstance(call, str) and isinstance(name, str) and isinstance(arguments, str)):
            raise _Garbage
        if index not in self._calls and len(self._calls) == _CALLS_MAX:
            raise _TooLarge
        entry = self._calls.setdefault(index, _Call())
        entry.call = entry.call or call
        entry.name = entry.name or name
        self._spend(name + arguments)
        entry.arguments.append(arguments)

    def _take_usage(self, usage: Any) -> None:
        asked, spoken = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        if isinstance(asked, int) and isinstance(spoken, int):
            self._usage = Usage(asked, spoken)

    def _spend(self, text: str) -> None:
        self._characters_left -= len(text)
        if self._characters_left < 0:
            raise _TooLarge


async def _next(stream: openai.AsyncStream[ChatCompletionChunk]) -> ChatCompletionChunk | None:
    """The next chunk, None at the end; what the SDK stumbles over is garbage."""
    try:
        return await anext(stream)
    except StopAsyncIteration:
        return None
    except (ValueError, TypeError, AttributeError, KeyError):
        raise _Garbage from None


def _status_fault(error: openai.APIStatusError, endpoint: ModelEndpoint, limits: Limits) -> Fault:
    body = error.body if isinstance(error.body, dict) else {}
    about_model = "model" in str(body.get("code") or "") + str(body.get("message") or "").lower()
    code = body.get("code") if isinstance(body.get("code"), str) else body.get("type")
    fault = faults.of_status(error.status_code, code, about_model, endpoint)
    try:
        wait = float(error.response.headers.get("retry-after", "0"))
    except ValueError:
        # A date instead of seconds: nobody's clock is trusted that far, the longest wait does.
        wait = limits.wait_seconds_max
    return Fault(fault.error, fault.transient, wait)


def _make_client(endpoint: ModelEndpoint, limits: Limits) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(
        # A proxy for the world is no way to a server on this machine.
        trust_env=not _is_loopback(endpoint.base_url),
        verify=_tls(),
        event_hooks={"response": [_Bounded.around(limits.bytes_max)]},
    )
    return openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        # The SDK refuses an empty key; servers without keys ignore this one.
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=openai.Timeout(limits.stall_seconds, connect=limits.connect_seconds),
        http_client=http,
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes longer than a turn on loopback: once, before the fork."""
    return httpx2.create_ssl_context()


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Bounded(httpx2.AsyncByteStream):
    """A response body that ends in an error when it, or one line of it, grows too large."""

    def __init__(self, body: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._body = body
        self._bytes_left = bytes_max

    @classmethod
    def around(cls, bytes_max: int) -> Callable[[httpx2.Response], Awaitable[None]]:
        async def bound(response: httpx2.Response) -> None:
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = cls(response.stream, bytes_max)

        return bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line = 0
        async for part in self._body:
            self._bytes_left -= len(part)
            end = part.rfind(b"\n")
            line = line + len(part) if end < 0 else len(part) - end
            if self._bytes_left < 0 or line > _LINE_BYTES_MAX:
                raise _TooLarge
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()
