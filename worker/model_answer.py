"""One answer of a model, put together from the chunks of its stream; the shape of the chunks is not trusted.

Chunks come as the SDK made them of JSON, which it does without looking at types: every field may be missing
or hold anything. What cannot be part of an answer ends it by name (`Misbehaviour`). What can be put right is
put right here: halves of surrogate pairs, ids that are missing or unusable. The arguments of a call stay the
text that the model wrote; the call checks whether they are JSON.

Reasoning comes under several names: `reasoning_content` (DeepSeek, llama.cpp, vLLM), `reasoning` (OpenRouter,
Ollama, vLLM), `thinking`, or as parts of a list in place of the content (Mistral). It is counted, and bounded
together with the text. Its words are kept only under the first two names: a server that sends them with tool
calls may want them back with the results (DeepSeek refuses the request otherwise).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ipc.messages import Usage
from worker import model_faults as faults
from worker.model_faults import Misbehaviour

# More than any model calls in one reply; a server that sends more is broken.
_CALLS_MAX = 64
# No context is a thousandth of this, and a thousand answers added up are still a number for SQLite.
_TOKENS_MAX = 1_000_000_000
# As the API allows; an agent gives a call with another id one of its own.
_CALL_ID = re.compile(r"[A-Za-z0-9_.:|-]{1,128}")
_NAME_CHARACTERS_MAX = 128
# Fields of a message with tool calls in which the reasoning that came with them goes back.
RETURNED_REASONING = ("reasoning_content", "reasoning")
_FINISH = re.compile(r"[A-Za-z0-9_.-]{1,40}")
# One name for each reason, whatever the server calls it. Missing calls have ended nothing.
_FINISHES = {
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "max_tokens": "length",
    "model_length": "length",
}


@dataclass(frozen=True)
class ToolCall:
    """A tool call of the model; `arguments` is the text it wrote, which may not be JSON."""

    call: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One complete answer of the model: text, calls, or both.

    `finish` is why it ended: `stop`, `length`, `content_filter`, `refusal`, or another word of the server.
    `thought` counts the characters of its reasoning; `reasoning` is what may have to go back with the calls.
    """

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    finish: str = "stop"
    thought: int = 0
    reasoning: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Call:
    call: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Assembly:
    """Collects chunks and returns the reply at their end."""

    def __init__(self, characters_max: int) -> None:
        self._characters_left = characters_max
        self._texts: list[str] = []
        # The first half of a surrogate pair whose second comes with the next chunk.
        self._half = ""
        self._calls: dict[int, _Call] = {}
        self._usage = Usage()
        self._finish = ""
        self._has_refused = False
        self._reasoning: dict[str, list[str]] = {}
        # Characters of reasoning, and of tool calls, so far.
        self.thought = 0
        self.called = 0

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def take(self, chunk: object) -> str:
        """Adds a chunk and returns its text."""
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list | None):
            raise Misbehaviour(faults.garbage)
        self._take_usage(getattr(chunk, "usage", None))
        if not choices:
            return ""
        finish = getattr(choices[0], "finish_reason", None)
        if isinstance(finish, str) and finish:
            self._finish = finish
        delta = getattr(choices[0], "delta", None)
        calls = getattr(delta, "tool_calls", None)
        if not isinstance(calls, list | None):
            raise Misbehaviour(faults.garbage)
        for part in calls or ():
            self._take_call(part)
        self._take_reasoning(delta)
        refusal = _text(getattr(delta, "refusal", None))
        self._has_refused = self._has_refused or bool(refusal)
        return self._take_text(self._take_content(getattr(delta, "content", None)) + refusal)

    def reply(self) -> Reply:
        calls = tuple(ToolCall(c.call, c.name, whole("".join(c.arguments))) for c in self._calls.values())
        if not self._finish:
            # Without a finish reason the answer may be incomplete, and is not returned as complete.
            raise Misbehaviour(faults.cut if self._texts or calls or self.thought else faults.garbage)
        if not all(call.name for call in calls):
            raise Misbehaviour(faults.garbage)
        reasoning = {name: whole("".join(pieces)) for name, pieces in self._reasoning.items()}
        return Reply(self.text, calls, self._usage, self._why(), self.thought, reasoning if calls else {})

    def _why(self) -> str:
        if self._has_refused:
            return "refusal"
        word = self._finish.lower() if _FINISH.fullmatch(self._finish) else "unknown"
        return _FINISHES.get(word, word)

    def _take_content(self, content: object) -> str:
        """Returns its text; a list has parts of several kinds, and reasoning parts are counted."""
        if not isinstance(content, list):
            return _text(content)
        words = ""
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "text":
                words += _text(part.get("text"))
            elif kind in ("thinking", "reasoning"):
                thought = _thought(part.get(kind))
                self._spend(thought)
                self.thought += len(thought)
            elif not isinstance(kind, str):
                raise Misbehaviour(faults.garbage)
        return words

    def _take_reasoning(self, delta: object) -> None:
        """Counts reasoning once that a server sends under two names, and keeps it as received."""
        named = {name: getattr(delta, name, None) for name in (*RETURNED_REASONING, "thinking")}
        thoughts = {name: value for name, value in named.items() if isinstance(value, str) and value}
        for name, thought in thoughts.items():
            self._spend(thought)
            if name in RETURNED_REASONING:
                self._reasoning.setdefault(name, []).append(thought)
        self.thought += max(map(len, thoughts.values()), default=0)

    def _take_text(self, text: str) -> str:
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = whole(text.removesuffix(self._half) if self._half else text)
        if text:
            self._spend(text)
            self._texts.append(text)
        return text

    def _take_call(self, part: Any) -> None:
        call = _text(getattr(part, "id", None))
        function = getattr(part, "function", None)
        index = getattr(part, "index", None)
        if not isinstance(index, int):
            # Some servers leave the index out: a new id begins a call, none goes on with the last.
            index = len(self._calls) if call or not self._calls else len(self._calls) - 1
        name, arguments = _text(getattr(function, "name", None)), _text(getattr(function, "arguments", None))
        if index not in self._calls and len(self._calls) == _CALLS_MAX:
            raise Misbehaviour(faults.too_large)
        entry = self._calls.setdefault(index, _Call())
        if not entry.call and _CALL_ID.fullmatch(call):
            entry.call = call
        entry.name = entry.name or whole(name[:_NAME_CHARACTERS_MAX])
        self._spend(name + arguments)
        self.called += len(name + arguments)
        entry.arguments.append(arguments)

    def _take_usage(self, usage: Any) -> None:
        """Servers that count nothing leave it out, or send null; an impossible count is ignored."""
        counts = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
        if any(isinstance(count, int | float) and not 0 <= count <= _TOKENS_MAX for count in counts):
            raise Misbehaviour(faults.miscounted)
        prompt, output = counts
        if type(prompt) is int and type(output) is int:
            self._usage = Usage(prompt, output)

    def _spend(self, text: str) -> None:
        self._characters_left -= len(text)
        if self._characters_left < 0:
            raise Misbehaviour(faults.too_large)


def whole(text: str) -> str:
    """Joins surrogate pairs and replaces the rest, which UTF-8 cannot carry, by �."""
    if text.isascii() and "\0" not in text:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def _thought(value: object) -> str:
    """Returns the reasoning inside a part: a text, or a list of parts with texts.

    Anything else is not counted.
    """
    if isinstance(value, list):
        return "".join(part["text"] for part in value if isinstance(part, dict) and _has_text(part))
    return value if isinstance(value, str) else ""


def _has_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _text(value: object) -> str:
    if isinstance(value, str | None):
        return value or ""
    raise Misbehaviour(faults.garbage)
