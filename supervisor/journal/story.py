"""The story of a message or a turn: what it has come to, then every event about it, in order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

Row = dict[str, Any]
# A story is read by a person; one that goes on for longer is told up to here.
_EVENTS_LOOKED_AT_MAX = 5000
_PAGE_EVENTS = 200
_ENDINGS = ("turn.done", "turn.failed", "turn.interrupted")


class Told(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def fields(self) -> Row: ...


Page = Callable[[str, int, int], Sequence[Told]]


def of_turn(turn: Row, first_seq: int, page: Page) -> list[Row]:
    """`turn` as the journal shows it; `first_seq` is where its first message stands in the feed."""
    summary = {
        "kind": "turn",
        **{name: turn[name] for name in ("id", "session", "state", "attempts", "agent", "level")},
    }
    messages = {message["id"] for message in turn["messages"]}
    return [summary, *_events(turn["session"], first_seq, messages, turn["id"], page)]


def of_message(message: Row, page: Page) -> list[Row]:
    """A message that no turn has taken."""
    summary = {"kind": "message", **{name: message[name] for name in ("id", "session", "state", "turn")}}
    return [summary, *_events(message["session"], message["seq"], {message["id"]}, "", page)]


def _events(session: str, first_seq: int, messages: set[str], turn: str, page: Page) -> Iterator[Row]:
    seq, looked_at = first_seq - 1, 0
    while looked_at < _EVENTS_LOOKED_AT_MAX and (found := page(session, seq, _PAGE_EVENTS)):
        looked_at += len(found)
        for told in found:
            seq = told.seq
            fields = told.fields
            if fields.get("message") in messages or (turn and fields.get("turn") == turn):
                yield {"seq": seq, "session": session, "type": told.type, "at": told.at, **fields}
            if told.type in _ENDINGS and fields.get("turn") == turn:
                return
