"""Shortens the messages of a request to the context of the model.

The size of the context is unknown beforehand: a server refuses a request that is too long. Each refusal
halves what is sent, in this order and no further than needed:

1. Earlier turns, oldest first: reduced to their texts, then left out.
2. Of the current turn, older tool results, with the arguments and the reasoning of their calls: oldest first,
each to its beginning and its end. The results of the newest round stay whole.
3. The results of the newest round, by halves.

The person's messages of this turn stay, and so does every call of this turn with its result: the remainder is
a valid request. When nothing is left to cut, the refusal stands.
"""

import json
from typing import Any

from msgspec.structs import replace

from ipc.messages import Assign
from worker.agents.chat_messages import ChatMessage, conversation, size
from worker.model_answer import RETURNED_REASONING

# Enough to recognise a result.
_KEPT_CHARACTERS = 200


class Window:
    """The messages of one attempt: the initial ones, and those added since."""

    def __init__(self, assign: Assign, system: str, characters_max: int) -> None:
        self._assign = assign
        self._system = system
        # The current turn: its messages, the earlier attempts at it, and all that follows.
        self._current = conversation(replace(assign, history=()), system, characters_max)[1:]
        self._opening = len(self._current), size(self._current)
        self._before: list[ChatMessage] = []
        self.is_cut = False
        self._leave_out(characters_max)

    @property
    def messages(self) -> list[ChatMessage]:
        return [*self._before, *self._current]

    def add(self, *messages: ChatMessage) -> None:
        self._current += messages

    def cut(self) -> bool:
        """Halves the request; returns false when nothing more can be left out."""
        was = size(self.messages)
        goal = was // 2
        self._leave_out(goal)
        surplus = size(self.messages) - goal
        newest = self._newest_round()
        for index in range(1, newest):
            if surplus <= 0:
                break
            surplus -= self._shorten(index, _KEPT_CHARACTERS)
        if surplus > 0:
            for index in range(newest, len(self._current)):
                self._shorten(index, max(_KEPT_CHARACTERS, size(self._current[index : index + 1]) // 2))
        self.is_cut = size(self.messages) < was
        return self.is_cut

    def _shorten(self, index: int, characters: int) -> int:
        """Shortens a message of the current turn; returns the characters saved."""
        message = self._current[index]
        self._current[index] = _shortened(message, characters)
        return size([message]) - size([self._current[index]])

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


def _shortened(message: ChatMessage, characters: int) -> ChatMessage:
    """Shortens results, arguments and reasoning to so many characters each; messages of people stay whole."""
    if message["role"] == "tool":
        return message | {"content": _excerpt(message["content"], characters)}
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
