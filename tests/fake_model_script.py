"""What the fake model server says: how a request picks its mode, and each mode's words and refusals."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

_RECORD = "[note: the record of this conversation follows"
_END_OF_RECORD = "[note: end of the record. Answer this message:]"
_DIRECTIVE = re.compile(r"\[\[([a-z0-9]+)((?:\s.*?)?)\]\]", re.DOTALL)


@dataclass(frozen=True)
class Mode:
    """How to answer, and under which name its `times` are counted."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    counted_as: str = ""


class Cut(Exception):
    """The script wants the connection cut here."""


def said(messages: list[dict[str, Any]]) -> int:
    """Where the person last spoke: no steer after a tool result, no note of the worker; -1 when never.

    A record without an end is what an agent that has lost its session goes on from: the words are in it.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") != "user" or text_of(message).startswith("[note:"):
            continue
        if _END_OF_RECORD in str(message.get("content")):
            return index
        before = index - 1
        while before >= 0 and messages[before].get("role") == "user":
            before -= 1
        if before < 0 or messages[before].get("role") != "tool":
            return index
    records = [index for index, message in enumerate(messages) if text_of(message).startswith(_RECORD)]
    return records[-1] if records else -1


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, without the record that the worker of an ACP agent puts before it."""
    return str(message.get("content")).rpartition(_END_OF_RECORD)[2].strip()


def find_mode(body: dict[str, Any], fallback: Mode) -> Mode:
    """The mode of one request: its directive, else its model's name, else the fallback."""
    messages = body.get("messages", [])
    index = said(messages)
    text = text_of(messages[index]) if index >= 0 else ""
    directive = _DIRECTIVE.search(text)
    if directive:
        pairs = (word.partition("=") for word in shlex.split(directive.group(2)))
        return Mode(directive.group(1), {key: value for key, _, value in pairs}, text)
    name = str(body.get("model", ""))
    if name.startswith("fake:"):
        mode, _, query = name.removeprefix("fake:").partition("?")
        return Mode(mode, dict(parse_qsl(query)), name + text)
    return fallback


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\s*\S+", text) or [text]


class Script:
    """What one request is answered with, token by token."""

    def __init__(self, mode: Mode, body: dict[str, Any]) -> None:
        self.mode = mode
        self._messages: list[dict[str, Any]] = body.get("messages", [])

    def option(self, name: str, default: Any) -> Any:
        """An option, as the type of its default."""
        value = self.mode.options.get(name, default)
        return value if default is None else type(default)(value)

    def calls(self) -> list[dict[str, Any]]:
        """The tool calls of this round; none when the scripted rounds are over."""
        if self.mode.name != "tools" or not self._is_called_for:
            return []
        calls = self.mode.options.get("calls")
        if isinstance(calls, str):
            calls = json.loads(calls)
        if calls is None:
            arguments = self.mode.options.get("arguments", "{}")
            calls = [{"name": self.mode.options["name"], "arguments": arguments}]
        rounds = calls if calls and isinstance(calls[0], list) else [calls]
        since = self._messages[said(self._messages) + 1 :]
        done = sum(1 for message in since if message.get("tool_calls"))
        return list(rounds[done]) if done < len(rounds) else []

    @property
    def _is_called_for(self) -> bool:
        """Whether the person has said what the option `when` names, and nothing since what `unless` names."""
        index = said(self._messages)
        words = str(self._messages[index].get("content")) if index >= 0 else ""
        unless, since = str(self.option("unless", "")), self._messages[index + 1 :]
        told = [str(message.get("content")) for message in since]
        if words.startswith(_RECORD):
            told.append(words.partition("]]")[2])
        is_over = bool(unless) and any(unless in each for each in told)
        return str(self.option("when", "")) in words and not is_over

    async def thoughts(self, pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[dict[str, Any]]:
        """What comes before the first word, as deltas in the way that some servers have."""
        count = self.option("thoughts", 20 if self.mode.name == "reasoning" else 0)
        field = self.option("field", "reasoning_content")
        for number in range(count):
            await pause(self.option("interval", 0.0))
            thought = f"thought{number} "
            if field == "parts":
                inner = [{"type": "text", "text": thought}]
                yield {"content": [{"type": "thinking", "thinking": inner}]}
            else:
                yield {field: thought}

    @property
    def finish(self) -> str:
        return str(self.option("finish", "tool_calls" if self.calls() else "stop"))

    def overflow(self) -> "tuple[str, _Refusal] | None":
        """How a request that is longer than the option `context` is refused, and by which kind of server."""
        length = sum(len(json.dumps(message, ensure_ascii=False)) for message in self._messages)
        if not 0 < self.option("context", 0) < length:
            return None
        kind = self.option("overflow", "openai")
        return kind, OVERFLOWS[kind]

    async def tokens(self, pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[str]:
        """The text, a token at a time; `pause(seconds)` is how time passes."""
        mode = self.mode.name
        if mode == "empty":
            return
        if mode == "slow":
            text = self.option("text", "")
            words = tokens_of(text) if text else [f"word{n} " for n in range(self.option("count", 100))]
            for word in words:
                await pause(self.option("interval", 0.05))
                yield word
        elif mode in ("stall", "drop"):
            for number in range(self.option("tokens", 3)):
                yield f"word{number} "
            if mode == "drop":
                raise Cut
            await pause(float("inf"))
        elif mode == "goon":
            async for word in self._going_on(pause):
                yield word
        elif mode == "huge":
            sent, count = 0, self.option("count", 0)
            while count == 0 or sent < count:
                yield "x" * self.option("characters", 4096)
                sent += 1
                await pause(0)
        else:
            for word in tokens_of(self._plain()):
                yield word

    async def _going_on(self, pause: Callable[[float], Awaitable[None]]) -> AsyncIterator[str]:
        """So many words, going on behind those that the conversation has; cut off before the word `drop`."""
        since = self._messages[said(self._messages) + 1 :]
        before = "".join(str(m.get("content") or "") for m in since if m.get("role") == "assistant")
        whole = " ".join(f"word{number}" for number in range(self.option("count", 100)))
        first, left = before.count("word"), tokens_of(whole.removeprefix(before))
        for number, word in enumerate(left, first):
            if number == self.option("drop", -1) and number > first:
                raise Cut
            await pause(self.option("interval", 0.02))
            yield word

    def _plain(self) -> str:
        index = said(self._messages)
        if self.mode.name == "tools" and self._is_called_for:
            given = self._messages[index + 1 :] if self.option("quote", "off") == "on" else ()
            quoted = [str(each.get("content")) for each in given if each.get("role") != "assistant"]
            return "\n".join([self.option("text", "Done."), *quoted])
        if self.mode.name == "recite":
            roles = ", ".join(str(message.get("role")) for message in self._messages)
            first = next((str(m.get("content")) for m in self._messages if m.get("role") == "user"), "")
            return f"I was given {len(self._messages)} messages: {roles}. The first said: {first}"
        if self.mode.name == "refusal":
            return str(self.option("text", "I cannot help with that."))
        return str(self.option("text", "")) or f"You said: {self._messages[index].get('content')}"


def arguments_of(call: dict[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


_Refusal = tuple[int, str, str, dict[str, str]]
_PAGE = "<!doctype html><html><body><h1>Welcome</h1></body></html>"


def _fault(status: int, code: str, headers: dict[str, str] | None = None, message: str = "") -> _Refusal:
    error = {"message": message or f"fake {code}", "type": code, "code": code, "param": None}
    return status, "application/json", json.dumps({"error": error}), headers or {}


def _in_json(status: int, body: Any) -> _Refusal:
    return status, "application/json", json.dumps(body), {}


# A request that is too long, as servers say it. In a stream, the second of them comes behind a header of 200.
OVERFLOWS: dict[str, _Refusal] = {
    "openai": _in_json(
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    "llama.cpp": _in_json(
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9000 tokens) exceeds the available context size (4096 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9000,
                "n_ctx": 4096,
            }
        },
    ),
    "vllm": _in_json(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 9000.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "ollama": _in_json(
        400, {"error": {"message": "the input length exceeds the context length", "type": "api_error"}}
    ),
    "tgi": _in_json(
        422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."}
    ),
    "gemini": _in_json(
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (9000) exceeds the maximum number of tokens allowed.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    "rate": _in_json(
        429,
        {
            "error": {
                "message": "Request too large for fake on tokens per min (TPM): Limit 4096, Requested 9000.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    "413": (413, "text/html", "<html><h1>413 Request Entity Too Large</h1></html>", {}),
    "stream": _in_json(
        200, {"error": {"code": 400, "message": "the request exceeds the available context size"}}
    ),
}


def _rate_limit(script: "Script") -> _Refusal:
    headers = {"retry-after": str(script.option("retry_after", "0"))}
    return _fault(429, script.option("code", "rate_limit_exceeded"), headers)


def _not_found(script: "Script") -> _Refusal:
    if script.option("kind", "page") == "model":
        return _fault(404, "model_not_found", message=script.option("message", ""))
    return 404, "text/html", _PAGE, {}


REFUSALS: dict[str, Callable[["Script"], _Refusal]] = {
    "429": _rate_limit,
    "500": lambda script: _fault(script.option("status", 500), "server_error"),
    "400": lambda script: _fault(
        400, script.option("code", "invalid_request_error"), message=script.option("message", "")
    ),
    "401": lambda script: _fault(
        script.option("status", 401), "invalid_api_key", message=script.option("message", "")
    ),
    "404": _not_found,
    "html": lambda script: (200, "text/html", _PAGE, {}),
}

GARBAGE: dict[str, list[bytes]] = {
    "json": [b"data: {this is not json\n\n"],
    "shape": [b"data: [1, 2]\n\n", b'data: {"choices": 7}\n\n', b"data: [DONE]\n\n"],
    "bytes": [b"data: \xff\xfe\x00\n\n"],
    "empty": [b"data: [DONE]\n\n"],
    "unfinished": [b'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'],
}
