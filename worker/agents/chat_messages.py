"""Builds the chat messages of the history: cut text is marked, and every tool call has a result.

The attempts at a turn are one answer: each continues where the one before it was cut off, so their texts are
joined unchanged, and nothing between them mentions the loss. Only the end of a turn is described, in words
that name nothing of the host.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from ipc.message_parts import Cut
from ipc.messages import Assign, PastAttempt, PastTurn, ToolTrace
from worker.model_answer import RETURNED_REASONING

ChatMessage = dict[str, Any]

NO_RESULT = "no result: this call was cut off; it changes nothing, so it can be made again"
UNKNOWN_OUTCOME = (
    "outcome unknown: the process ended while this call ran; it may or may not have happened. "
    "Check before doing it again."
)
# The request to continue an answer that was cut off.
GO_ON: ChatMessage = {
    "role": "user",
    "content": (
        "[note: the answer above was cut off before its end. Go on exactly where it stopped, in the middle "
        "of a word if need be: what you say now is put right behind it, so begin with a space or a new line "
        "where one is due. Do not repeat what was already said or done.]"
    ),
}
_MARKS: dict[Cut, str] = {
    "interrupted": "[cut off by an interrupt]",
    "failed": "[cut off: it could not be finished]",
}
# Of a long result a later turn needs the beginning only; its own turn had it whole.
_RESULT_CHARACTERS_MAX = 8_000
# The cost of a message beside its text: role, ids, separators.
_MESSAGE_CHARACTERS = 20


def conversation(assign: Assign, system: str, characters_max: int) -> list[ChatMessage]:
    """System prompt, earlier turns, the current messages, and the earlier attempts at them.

    A turn that does not fit `characters_max` is reduced to its texts. If it still does not fit, it and the
    turns before it are left out; the current messages never are.
    """
    asked = [_user("\n\n".join(message.text for message in assign.messages)), *_tried(assign.tried)]
    left = characters_max - len(system) - size(asked)
    turns: list[list[ChatMessage]] = []
    for turn in reversed(assign.history):
        messages = _turn(turn)
        if size(messages) > left:
            messages = _turn(_without_calls(turn))
        left -= size(messages)
        if left < 0:
            system += "\n\n[note: older turns of this conversation were left out for lack of room]"
            break
        turns.append(messages)
    earlier = [message for messages in reversed(turns) for message in messages]
    return [{"role": "system", "content": system}, *earlier, *asked]


def _turn(turn: PastTurn) -> list[ChatMessage]:
    answer = list(_answer(turn.attempts, turn.attempts[-1].cut if turn.attempts else ""))
    if answer and answer[-1] == _assistant(""):
        answer[-1] = _assistant("[said nothing more]")
    return [_user("\n\n".join(turn.messages)), *(answer or [_assistant("[not answered]")])]


def _without_calls(turn: PastTurn) -> PastTurn:
    """Messages and answer; of the tool calls only their number."""
    return replace(turn, attempts=tuple(map(_calls_left_out, turn.attempts)))


def _calls_left_out(attempt: PastAttempt) -> PastAttempt:
    if not attempt.tools:
        return attempt
    mark = f"[… {len(attempt.tools)} tool calls left out …]"
    return replace(attempt, text=f"{mark}\n{attempt.text}", tools=())


def _tried(tried: Sequence[PastAttempt]) -> list[ChatMessage]:
    """Earlier attempts at this turn, and the request to continue where they stopped.

    If their last step is a tool call, its result already asks for the next step: no request is added.
    """
    messages = list(_answer(tried, "lost"))
    if not messages or messages[-1] == _assistant(""):
        return messages[:-1]
    return [*messages, GO_ON]


def _answer(attempts: Sequence[PastAttempt], cut: Cut) -> Iterator[ChatMessage]:
    """Text and calls of all attempts in the order they happened; `cut` is how the last one ended."""
    text, position, has_calls = "".join(attempt.text for attempt in attempts), 0, False
    for offset, batch in _batches(attempts):
        yield {
            "role": "assistant",
            "content": text[position:offset].strip() or None,
            "tool_calls": [_call(tool) for tool in batch],
        }
        yield from ({"role": "tool", "tool_call_id": tool.call, "content": _result(tool)} for tool in batch)
        position, has_calls = offset, True
    words = text[position:].strip()
    if cut == "lost":
        # Exact to the last space: the model's next text follows directly.
        words += text[len(text.rstrip()) :] if words else ""
    ending = "\n".join(word for word in (words, _MARKS.get(cut, "")) if word)
    if ending or has_calls:
        # A tool result must be followed by the assistant: many chat templates insist.
        yield _assistant(ending)


def _batches(attempts: Sequence[PastAttempt]) -> Iterator[tuple[int, list[ToolTrace]]]:
    """Groups calls at the same offset of one attempt, with their offset in the text of all attempts."""
    begin = 0
    for attempt in attempts:
        end = begin + len(attempt.text)
        for offset, batch in groupby(sorted(attempt.tools, key=_offset), key=_offset):
            yield min(begin + offset, end), list(batch)
        begin = end


def _offset(tool: ToolTrace) -> int:
    return tool.offset


def _call(tool: ToolTrace) -> ChatMessage:
    function = {"name": tool.name, "arguments": tool.arguments or "{}"}
    return {"id": tool.call, "type": "function", "function": function}


def _result(tool: ToolTrace) -> str:
    if tool.result is None:
        return NO_RESULT if tool.repeat == "pure" else UNKNOWN_OUTCOME
    if len(tool.result) <= _RESULT_CHARACTERS_MAX:
        return tool.result
    return tool.result[:_RESULT_CHARACTERS_MAX] + "\n[… the rest was left out]"


def size(messages: Sequence[ChatMessage]) -> int:
    """Returns the size of the messages in characters, with all that is sent of them."""
    return sum(
        _MESSAGE_CHARACTERS
        + sum(len(message.get(name) or "") for name in ("content", *RETURNED_REASONING))
        + sum(
            len(call["function"]["name"]) + len(call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        )
        for message in messages
    )


def _user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def _assistant(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}
