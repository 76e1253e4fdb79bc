"""The story of a message or a turn: a row with its present state, then every event about it, in order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from supervisor.journal.contract import Told

Row = dict[str, Any]
# Events examined in one call; then the caller decides whether to continue.
_EVENTS_LOOKED_AT_MAX = 5000
_PAGE_EVENTS = 200
_ENDINGS_OF_TURNS = ("turn.done", "turn.failed", "turn.interrupted")
_ENDINGS_OF_MESSAGES = ("message.dropped", "transcript.failed")


Page = Callable[[str, int, int], Sequence[Told]]


def of_turn(turn: Row) -> Row:
    """Return the first row of a turn's story, from the turn as the journal has it."""
    shown = ("id", "session", "state", "attempts", "agent", "level")
    return {"kind": "turn", **{name: turn[name] for name in shown}}


def of_message(message: Row) -> Row:
    """Return the first row of the story of a message that no turn has taken."""
    return {"kind": "message", **{name: message[name] for name in ("id", "session", "state", "turn", "clip")}}


def events(
    session: str, after: int, messages: set[str], turn: str, page: Page
) -> Iterator[tuple[Row | None, int]]:
    """Yield the events about these messages and this turn, each with its seq; None when the limit is reached.

    Without a turn the story ends with the message.
    """
    seq, looked_at = after, 0
    while found := page(session, seq, _PAGE_EVENTS):
        for told in found:
            seq = told.seq
            fields = told.fields
            is_about_message = fields.get("message") in messages
            is_about_turn = bool(turn) and fields.get("turn") == turn
            if is_about_message or is_about_turn:
                yield {"seq": seq, "session": session, "type": told.type, "at": told.at, **fields}, seq
            if told.type in _ENDINGS_OF_TURNS and is_about_turn:
                return
            if told.type in _ENDINGS_OF_MESSAGES and is_about_message and not turn:
                return
        looked_at += len(found)
        if looked_at >= _EVENTS_LOOKED_AT_MAX:
            yield None, seq
            return
