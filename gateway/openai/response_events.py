"""A response of the Responses API, made of the steps of an answer: its object and its events, without I/O.

A stored response is read from the journal again, whenever it is asked for, and its stream resumes behind any
event that the client has. Deltas are not durable, so events cannot be counted: the number of an event follows
from its place. Every item of the output has a block of numbers; within it the number of a delta is the length
of the item's text behind it. A stream that begins in the middle of a delta gets the rest of it. In every
stream of a response the same text has the same numbers:

    0, 1                           response.created, response.in_progress
    item i, B = (i + 1) · 10^7     B and B + 1: the item and its content are added
                                   B + 10 + n: a delta behind which the item has n characters
                                   B + 5·10^6 …: text, content and item are done
    last block + 10^7              response.completed, .incomplete or .failed

An item ends with its attempt, if that is lost, and a question is an item of its own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.openai.answer_steps import Asked, End, Lost, Piece, Step, fault_of

BLOCK = 10_000_000
_TEXT = 10
_DONE = BLOCK // 2
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class ResponseEvent:
    """An event with its sequence number; that of a delta counts characters, so it may be sent in part."""

    number: int
    type: str
    fields: dict[str, Any]

    def after(self, number: int) -> "ResponseEvent | None":
        """Returns what of the event follows that number."""
        if self.number <= number:
            return None
        delta = str(self.fields.get("delta", ""))
        behind = number - (self.number - len(delta))
        if not delta or behind <= 0:
            return self
        return ResponseEvent(self.number, self.type, self.fields | {"delta": delta[behind:]})

    @property
    def body(self) -> dict[str, Any]:
        return {"type": self.type, "sequence_number": self.number, **self.fields}


class _Item:
    def __init__(self, id: str, begin: int) -> None:
        self.id = id
        # In the text of the turn.
        self.begin = begin
        self.text = ""
        self.status = "in_progress"

    @property
    def part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}

    @property
    def body(self) -> dict[str, Any]:
        content = [self.part] if self.status != "in_progress" or self.text else []
        common = {"id": self.id, "type": "message", "role": "assistant", "phase": None}
        return common | {"status": self.status, "content": content}


class ResponseStream:
    """`common` are the fields of the response that do not change; `sentence` writes one for its owner.

    `after` is the number of the last event that the client has of an earlier stream.
    """

    def __init__(
        self, id: str, common: dict[str, Any], sentence: Callable[[str], str] = str, after: int = -1
    ) -> None:
        self._id = id
        self._common = common
        self._sentence = sentence
        self._after = after
        self._items: dict[int, _Item] = {}
        self._block = 0
        self._status = "in_progress"
        self._end: End | None = None

    @property
    def is_ended(self) -> bool:
        return self._status != "in_progress"

    def response(self) -> dict[str, Any]:
        """The response as far as it is known. An item of which nothing stands is left out."""
        ended, error, incomplete = self._end, None, None
        if ended is not None and self._status == "failed":
            error = {"code": "server_error", "message": self._sentence("; ".join(fault_of(ended)))}
        if ended is not None and self._status == "incomplete":
            incomplete = {"reason": _INCOMPLETE[str(ended.fields["finish"])]}
        output = [item.body for item in self._items.values() if item.text]
        killed = ended.fields.get("killed") if ended is not None else None
        return (
            {"id": self._id, "object": "response", "status": self._status}
            | self._common
            | {"output": output, "usage": _usage(ended), "error": error, "incomplete_details": incomplete}
            | ({"completed_at": ended.at} if ended is not None else {})
            | ({"killed": killed} if killed else {})
        )

    def begin(self) -> list[ResponseEvent]:
        shown = self.response()
        return [
            ResponseEvent(0, "response.created", {"response": shown}),
            ResponseEvent(1, "response.in_progress", {"response": shown}),
        ]

    def take(self, step: Step) -> list[ResponseEvent]:
        match step:
            case Piece():
                return list(self._add(step.text, step.offset))
            case Lost():
                return list(self._lose(step.offset))
            case Asked():
                events = list(self._close("completed"))
                self._block += 1
                events += [*self._add(step.text, 0), *self._close("completed")]
                return [*events, self._finish("completed", "response.completed")]
            case End():
                self._end = step
                status, type = _ending(step)
                closed = self._close("completed" if step.outcome == "done" else "incomplete")
                return [*closed, self._finish(status, type)]

    def _add(self, text: str, offset: int) -> Iterator[ResponseEvent]:
        base = (self._block + 1) * BLOCK
        item = self._items.get(self._block)
        if item is None:
            item = self._items[self._block] = self._item(offset)
            yield ResponseEvent(base, "response.output_item.added", self._at(item=item.body))
            yield ResponseEvent(base + 1, "response.content_part.added", self._in(item, part=item.part))
        item.text += text
        number = base + _TEXT + len(item.text)
        yield ResponseEvent(number, "response.output_text.delta", self._in(item, delta=text, logprobs=[]))

    def _lose(self, offset: int) -> Iterator[ResponseEvent]:
        item = self._items.get(self._block)
        base = (self._block + 1) * BLOCK
        if item is None and base <= self._after < base + _DONE:
            # Nothing of it stands, but the client has seen some of it.
            item = self._items[self._block] = self._item(offset)
        if item is not None:
            item.text = item.text[: max(0, offset - item.begin)]
        yield from self._close("incomplete")
        self._block += 1

    def _item(self, begin: int) -> _Item:
        return _Item(f"{self._id.replace('resp', 'msg', 1)}_{self._block}", begin)

    def _close(self, status: str) -> Iterator[ResponseEvent]:
        item = self._items.get(self._block)
        if item is None:
            return
        item.status = status
        base = (self._block + 1) * BLOCK + _DONE
        done = self._in(item, text=item.text, logprobs=[])
        yield ResponseEvent(base, "response.output_text.done", done)
        yield ResponseEvent(base + 1, "response.content_part.done", self._in(item, part=item.part))
        yield ResponseEvent(base + 2, "response.output_item.done", self._at(item=item.body))

    def _finish(self, status: str, type: str) -> ResponseEvent:
        self._status = status
        return ResponseEvent((self._block + 2) * BLOCK, type, {"response": self.response()})

    def _at(self, **fields: Any) -> dict[str, Any]:
        return {"output_index": self._block, **fields}

    def _in(self, item: _Item, **fields: Any) -> dict[str, Any]:
        return self._at(item_id=item.id, content_index=0, **fields)


def _ending(end: End) -> tuple[str, str]:
    """The status of the response, and the event that ends its stream: a cancelled one has none of its own."""
    if end.outcome == "done":
        if str(end.fields.get("finish")) in _INCOMPLETE:
            return "incomplete", "response.incomplete"
        return "completed", "response.completed"
    return ("failed", "response.failed") if end.outcome == "failed" else ("cancelled", "response.incomplete")


def _usage(end: End | None) -> dict[str, Any] | None:
    found = end.fields.get("usage") if end is not None else None
    if not found:
        return None
    given, written = int(found.get("input_tokens") or 0), int(found.get("output_tokens") or 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + written,
    }
