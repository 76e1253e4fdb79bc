"""What came before, as chat messages: cut words are marked as cut, no tool call is without a result."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ipc.messages import Assign, PastAttempt, PastTurn, ToolTrace
from worker.model_answer import RETURNED_REASONING

ChatMessage = dict[str, Any]

NO_RESULT = "no result: this call was cut off; it changes nothing, so it can be made again"
UNKNOWN_OUTCOME = (
    "outcome unknown: the process ended while this call ran; it may or may not have happened. "
    "Check before doing it again."
)
# A long listing is worth its beginning to a later turn; the newest result was seen whole when it came.
_RESULT_CHARACTERS_MAX = 8_000
# What a message costs beside its text: role, ids, separators.
_MESSAGE_CHARACTERS = 20


def conversation(assign: Assign, system: str, characters_max: int) -> list[ChatMessage]:
    """System prompt, earlier turns, what is asked now, and what earlier attempts at it did.

    A turn that does not fit `characters_max` is told without its tool calls. If it still does not fit, it and
    the turns before it are left out; what is asked now never is.
    """
    asked = [_user("\n\n".join(said.text for said in assign.say)), *_tried(assign.tried)]
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
    answer = _merged(message for attempt in turn.attempts for message in _attempt(attempt))
    if answer and answer[-1] == _assistant(""):
        answer[-1] = _assistant("[said nothing more]")
    return [_user("\n\n".join(turn.said)), *(answer or [_assistant("[not answered]")])]


def _without_calls(turn: PastTurn) -> PastTurn:
    """What was said and answered; of the tool calls only how many there were."""
    return replace(turn, attempts=tuple(map(_calls_left_out, turn.attempts)))


def _calls_left_out(attempt: PastAttempt) -> PastAttempt:
    if not attempt.tools:
        return attempt
    mark = f"[… {len(attempt.tools)} tool calls left out …]"
    return replace(attempt, text=f"{mark}\n{attempt.text}", tools=())


def _tried(tried: Sequence[PastAttempt]) -> list[ChatMessage]:
    """Earlier attempts at this very turn, and the request to go on where they stopped.

    One that ended with a question has its answer as the last result: there is nothing to say but to go on.
    """
    done = [attempt for attempt in tried if attempt.text or attempt.tools]
    messages = _merged(message for attempt in done for message in _attempt(attempt))
    if not messages or messages[-1] == _assistant(""):
        return messages[:-1]
    note = (
        "[note: the answer above was cut off before its end. Go on where it stopped; do not repeat what was "
        "already said or done.]"
    )
    return [*messages, _user(note)]


def _attempt(attempt: PastAttempt) -> Iterator[ChatMessage]:
    """Words and deeds in the order they happened; calls between the same words are told as one batch."""
    position = 0
    tools = sorted(attempt.tools, key=lambda tool: tool.offset)
    while tools:
        offset = tools[0].offset
        batch = [tool for tool in tools if tool.offset == offset]
        tools = tools[len(batch) :]
        yield {
            "role": "assistant",
            "content": attempt.text[position:offset].strip() or None,
            "tool_calls": [_call(tool) for tool in batch],
        }
        yield from ({"role": "tool", "tool_call_id": tool.call, "content": _result(tool)} for tool in batch)
        position = offset
    words = [attempt.text[position:].strip(), _mark(attempt.cut)]
    ending = "\n".join(word for word in words if word)
    if ending or attempt.tools:
        # A tool result must be followed by the assistant: many chat templates insist. Without words of its
        # own this one is merged with what the next attempt said.
        yield _assistant(ending)


def _mark(cut: str) -> str:
    if not cut:
        return ""
    return "[cut off by an interrupt]" if cut.startswith("interrupt") else f"[cut off: {cut}]"


def _call(tool: ToolTrace) -> ChatMessage:
    function = {"name": tool.name, "arguments": tool.arguments or "{}"}
    return {"id": tool.call, "type": "function", "function": function}


def _result(tool: ToolTrace) -> str:
    if tool.result is None:
        return NO_RESULT if tool.repeat == "pure" else UNKNOWN_OUTCOME
    if len(tool.result) <= _RESULT_CHARACTERS_MAX:
        return tool.result
    return tool.result[:_RESULT_CHARACTERS_MAX] + "\n[… the rest was left out]"


def _merged(messages: Iterator[ChatMessage]) -> list[ChatMessage]:
    """Joins what two attempts said in a row: many chat templates want the roles to alternate."""
    merged: list[ChatMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last and last["role"] == message["role"] == "assistant" and "tool_calls" not in last:
            merged[-1] = message | {
                "content": "\n\n".join(filter(None, (last["content"], message["content"])))
                or (None if "tool_calls" in message else "")
            }
        else:
            merged.append(message)
    return merged


def size(messages: Sequence[ChatMessage]) -> int:
    """What the messages cost of a limit in characters, with all that is sent of them."""
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
