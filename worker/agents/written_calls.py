"""Finds tool calls that a model wrote as text.

Small models are trained to write a call as JSON, and many servers pass that on as text. A reply is taken for
calls only if it is nothing else, and only if it names tools that exist: an object with `name` and `arguments`
(or `parameters`), several of them, or a list; in a code block or in `<tool_call>` tags, or without either.

Such a reply must not be streamed before it is known not to be calls. Text is held back only while it begins
like one, so that other answers, in JSON too, are streamed as they come.
"""

import json
import re
from collections.abc import Container
from itertools import product
from typing import Any

from worker.model import ToolCall

# Without white space.
_WRAPPERS = ("", "```", "```json", "```tool_call", "<tool_call>")
_FIRST_KEYS = ('{"name"', '{"arguments"', '{"parameters"', '{"type":"function"', '{"function":{')
_OPENINGS = tuple("".join(parts) for parts in product(_WRAPPERS, ("", "["), _FIRST_KEYS))
_OPENING_CHARACTERS_MAX = max(map(len, _OPENINGS))
_WRAPPING = re.compile(r"```(?:json|tool_call)?|</?tool_call>")
# A call that writes a file holds the file; more than this is no call.
_HELD_CHARACTERS_MAX = 200_000
_CALLS_MAX = 64


class HeldText:
    """The beginning of a reply, held back while it may be a call."""

    def __init__(self) -> None:
        self._held = ""
        self._is_open = True

    def take(self, text: str) -> str:
        """Takes the next piece of the reply, and returns what can be streamed."""
        if not self._is_open:
            return text
        self._held += text
        if _may_be_calls(self._held) and len(self._held) <= _HELD_CHARACTERS_MAX:
            return ""
        return self.release()

    def release(self) -> str:
        """Returns what was held; what follows is not held any more."""
        self._is_open = False
        held, self._held = self._held, ""
        return held


def _may_be_calls(text: str) -> bool:
    begin = "".join(text[: 4 * _OPENING_CHARACTERS_MAX].split())
    return any(begin.startswith(opening) or opening.startswith(begin) for opening in _OPENINGS)


def written_calls(text: str, tools: Container[str]) -> tuple[ToolCall, ...]:
    """Returns the calls that the text consists of; none if it is anything else."""
    try:
        found = [_call(each, tools) for each in _objects(_WRAPPING.sub(" ", text).strip())]
    except (ValueError, RecursionError):
        return ()
    calls = tuple(call for call in found if call is not None)
    return calls if len(calls) == len(found) <= _CALLS_MAX else ()


def _objects(text: str) -> list[Any]:
    """Returns the JSON values that the text is made of, those of a list one by one."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found += value if isinstance(value, list) else [value]
        at += len(text) - at - len(text[at:].lstrip(" \t\r\n,;"))
    return found


def _call(value: Any, tools: Container[str]) -> ToolCall | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or value["name"] not in tools:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        return ToolCall("", value["name"], arguments)
    return ToolCall("", value["name"], json.dumps(arguments)) if isinstance(arguments, dict) else None
