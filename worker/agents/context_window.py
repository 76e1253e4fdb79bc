"""Keeps the messages of a request within the context of the model, before every request of a turn.

The size of a request in tokens is estimated: one token for four bytes of UTF-8, or more if the server counted
more in the last request of this attempt. It may take three quarters of the context; the rest is for the
answer. A server that refuses a request as too long all the same has it halved, for the rest of the attempt.

What is too long is cut in this order, and no further than needed:

1. Earlier turns, oldest first: reduced to their texts, then left out.
2. Of the current turn, the results of older tool calls, oldest first: each becomes one line, which names the
file with the whole result (worker/output_files.py). The arguments and the reasoning of these calls keep
their beginnings and ends.
3. The newest round of calls: what is longer than its equal share keeps its beginning and its end, and a
result names its file.

System prompt, instructions and the person's messages of this turn stay, and so does every call of this turn
with its result: the remainder is a valid request. When nothing is left to cut, a refusal stands.
"""

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ipc.messages import Assign
from worker.agents.chat_messages import ChatMessage, conversation, size
from worker.model_answer import RETURNED_REASONING
from worker.tools.excerpt import left_out, shortened

# Enough to recognise a text.
_KEPT_CHARACTERS = 200
_BYTES_PER_TOKEN = 4
# Of the context, for the request.
_SHARE = 0.75
# A server that counts more than half a token a byte has not counted this request alone.
_CORRECTION_MAX = 2.0


class Window:
    """The messages of one attempt: the initial ones, and those added since. Schemas of tools go with them."""

    def __init__(
        self, assign: Assign, system: str, characters_max: int, schemas: Sequence[ChatMessage] = ()
    ) -> None:
        self._assign = assign
        self._system = system
        self._history_max = characters_max
        # The current turn: its messages, the earlier attempts at it, and all that follows.
        self._current = conversation(replace(assign, history=()), system, characters_max)[1:]
        self._opening = len(self._current), size(self._current)
        self._before: list[ChatMessage] = []
        # What a refusal left of it.
        self._refused_to: int | None = None
        self._schema_bytes = _bytes(schemas)
        self._correction = 1.0
        self.is_cut = False
        self._leave_out(characters_max)

    @property
    def messages(self) -> list[ChatMessage]:
        return [*self._before, *self._current]

    def add(self, *messages: ChatMessage) -> None:
        self._current += messages

    def fit(self, context_tokens: int) -> None:
        """Shortens the request to the context of a model."""
        # Again: what was left out may have had fewer bytes a character than the rest.
        while size(self.messages) > (limit := self._limit(context_tokens)) and self._shrink(limit):
            pass

    def _limit(self, context_tokens: int) -> int:
        """Returns how many characters the request may have; as many as it has if it fits."""
        messages = self.messages
        limit, used = size(messages), _bytes(messages)
        tokens = context_tokens * _SHARE / self._correction
        room = max(0, int(tokens * _BYTES_PER_TOKEN) - self._schema_bytes)
        if used > room:
            limit = limit * room // used
        return limit if self._refused_to is None else min(limit, self._refused_to)

    def counted(self, tokens: int) -> None:
        """The server has counted so many tokens in this request; 0 when it does not count."""
        if tokens > 0:
            estimate = (_bytes(self.messages) + self._schema_bytes) / _BYTES_PER_TOKEN
            self._correction = min(max(tokens / estimate, 1.0), _CORRECTION_MAX)

    def cut(self) -> bool:
        """Halves a refused request; returns false when nothing more can be left out."""
        self._refused_to = size(self.messages) // 2
        return self._shrink(self._refused_to)

    def _shrink(self, limit: int) -> bool:
        """Returns whether it has become shorter."""
        was = size(self.messages)
        self._leave_out(min(limit, self._history_max))
        surplus = size(self.messages) - limit
        newest = self._newest_round()
        for index in range(newest):
            if surplus <= 0:
                break
            surplus -= self._replace(index, _reduced(self._current[index]))
        if surplus > 0:
            self._share_out(newest, surplus)
        has_shrunk = size(self.messages) < was
        self.is_cut = self.is_cut or has_shrunk
        return has_shrunk

    def _share_out(self, newest: int, surplus: int) -> None:
        """Gives each message of the newest round an equal share of what is left for all of them."""
        sizes = [size([message]) for message in self._current[newest:]]
        share = max(_KEPT_CHARACTERS, _share(sizes, sum(sizes) - surplus))
        for index in range(newest, len(self._current)):
            self._replace(index, _shortened(self._current[index], share))

    def _replace(self, index: int, message: ChatMessage) -> int:
        """Returns the characters saved."""
        saved = size([self._current[index]]) - size([message])
        if saved > 0:
            self._current[index] = message
        return max(saved, 0)

    def _leave_out(self, characters_max: int) -> None:
        """Returns system prompt and earlier turns, within what the current turn leaves of the limit."""
        count, opening = self._opening
        grown = size(self._current) - opening
        messages = conversation(self._assign, self._system, characters_max - grown)
        self._before = messages[: len(messages) - count]

    def _newest_round(self) -> int:
        """Returns the index of the last message with tool calls in the current turn.

        Its end when there is none.
        """
        calling = [index for index, message in enumerate(self._current) if message.get("tool_calls")]
        return calling[-1] if calling else len(self._current)


def _bytes(sent: Sequence[ChatMessage]) -> int:
    return len(json.dumps(sent, ensure_ascii=False).encode(errors="replace"))


def _share(sizes: Sequence[int], room: int) -> int:
    """Returns the largest share that all can have, when those that need less leave it to the others."""
    share = 0
    for position, needed in enumerate(sorted(sizes)):
        share = room // (len(sizes) - position)
        if needed > share:
            break
        room -= needed
    return share


def _reduced(message: ChatMessage) -> ChatMessage:
    """Returns a result of an older call as one line, and what the calls say of themselves shortened."""
    if message["role"] == "tool":
        return message | {"content": left_out(message["content"])}
    return _shortened(message, _KEPT_CHARACTERS)


def _shortened(message: ChatMessage, characters: int) -> ChatMessage:
    """Shortens results, arguments and reasoning to so many characters each; messages of people stay whole."""
    if message["role"] == "tool":
        return message | {"content": shortened(message["content"], characters)}
    if not message.get("tool_calls"):
        return message
    reasoning = {name: _excerpt(message[name], characters) for name in RETURNED_REASONING if name in message}
    calls = [_short_call(each, characters) for each in message["tool_calls"]]
    return message | reasoning | {"tool_calls": calls}


def _short_call(call: dict[str, Any], characters: int) -> dict[str, Any]:
    """Arguments stay a JSON object: some servers read them."""
    function = call["function"]
    if len(function["arguments"]) <= characters:
        return call
    arguments = json.dumps({"cut": _excerpt(function["arguments"], characters)}, ensure_ascii=False)
    return call | {"function": function | {"arguments": arguments}}


def _excerpt(text: str, characters: int) -> str:
    """Returns its beginning and its end, if that is shorter."""
    half = characters // 2
    mark = f"\n[… {len(text) - 2 * half} characters left out …]\n"
    return text if len(text) <= 2 * half + len(mark) else text[:half] + mark + text[-half:]
