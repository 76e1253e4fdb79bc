"""Which turn answers a message, and how that ends.

A message is accepted first and taken later: it opens a turn, joins one that waits, steers a running one, or
answers the question of one. Until then no turn is its own, and it may end without a turn. An event belongs to
the message when it names the message, or the turn that took it. A message that joins a running turn is
answered by the text after the place that the turn had reached then.

    waiting ── a TAKEN event names the message ──► taken by `turn` ── the turn ends ──► an Outcome of the turn
    waiting ── a GIVEN_UP event names it ──► an Outcome without a turn
"""

from typing import Any, Literal

from ipc.messages import Delta, Event

# Events with which a turn takes a message.
TAKEN = frozenset({"turn.opened", "turn.joined", "turn.steered", "question.answered"})
# Events that end a message without a turn.
GIVEN_UP = frozenset({"message.refused", "message.dropped", "transcript.failed"})

Outcome = Literal["done", "interrupted", "failed", "given up"]
_TURN_OUTCOMES: dict[str, Outcome] = {
    "turn.done": "done",
    "turn.interrupted": "interrupted",
    "turn.failed": "failed",
}


class Answering:
    """One accepted message, and the turn that answers it once that is known."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.turn: str | None = None
        # Where the answer to this message begins in the text of its turn.
        self.begins_at = 0
        # Length of the text of the turn that streams; a session has one at a time.
        self._lengths: dict[str, int] = {}

    def take(self, event: Event) -> bool:
        """Returns whether the event is of this message or of its turn."""
        fields = event.fields
        names_it = self.message in (fields.get("message"), *(fields.get("messages") or ()))
        if names_it and event.type in TAKEN and fields["turn"] != self.turn:
            self.turn = str(fields["turn"])
            self.begins_at = self._lengths.get(self.turn, 0)
        return names_it or (self.turn is not None and fields.get("turn") == self.turn)

    def take_delta(self, delta: Delta) -> bool:
        """Returns whether the delta is of the turn."""
        self._lengths = {delta.turn: delta.offset + len(delta.text)}
        return delta.turn == self.turn


def outcome(event: Event) -> Outcome | None:
    """Returns how an event that `take` has taken ends the message; None when it does not."""
    return "given up" if event.type in GIVEN_UP else _TURN_OUTCOMES.get(event.type)


def why_given_up(fields: dict[str, Any]) -> tuple[str, str]:
    """Returns reason and hint of an event that ends a message without a turn."""
    reason = fields.get("reason") or fields.get("error") or f"dropped by {fields.get('by', 'a client')}"
    return str(reason), str(fields.get("hint") or "send it again")
