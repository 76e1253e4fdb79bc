"""The answer to one message as steps, made of a session's events and deltas, without I/O.

The same steps come out whether the turn runs or is read from the journal later; only the pieces of text are
cut differently. Text comes once and in order: a delta that repeats or leaves a gap is cut or ignored, and the
event that ends the turn brings what is missing. Before a step that names a place in the text, the caller
fills in what was not streamed up to there, from the journal. After the loss of an attempt the text continues
at the offset that the event names; what was given beyond it is void.
"""

from dataclasses import dataclass
from typing import Any

from client.answering import TAKEN, Answering, Outcome, outcome, why_given_up
from ipc.messages import Delta, Event


@dataclass(frozen=True)
class Piece:
    """More of the text; `offset` is its place in the text of the turn."""

    text: str
    offset: int


@dataclass(frozen=True)
class Lost:
    """An attempt was lost. The text stands up to `offset`, and continues there."""

    offset: int


@dataclass(frozen=True)
class Asked:
    """A person must answer before the turn goes on: the answer to this message ends here."""

    text: str
    offset: int


@dataclass(frozen=True)
class End:
    """The turn has ended, or the message without one. `fields` are those of the event."""

    outcome: Outcome
    fields: dict[str, Any]
    at: float


Step = Piece | Lost | Asked | End


class AnswerSteps:
    """`begin` is where the answer begins in the text of its turn, `length` up to where it was given."""

    def __init__(self, message: str) -> None:
        self._answering = Answering(message)
        self.begin = 0
        self.length = 0

    @property
    def turn(self) -> str | None:
        return self._answering.turn

    def take(self, message: Event | Delta) -> list[Step]:
        if isinstance(message, Delta):
            is_ours = self._answering.take_delta(message)
            return self._more(message.text, message.offset) if is_ours else []
        before = self.turn
        if not self._answering.take(message):
            return []
        fields = message.fields
        if self.turn != before and message.type in TAKEN:
            self.begin = self.length = int(fields.get("offset") or self._answering.begins_at)
        if message.type == "attempt.lost":
            offset = max(self.begin, int(fields.get("offset") or 0))
            self.length = min(self.length, offset)
            return [Lost(offset)]
        if message.type == "question.asked":
            return [Asked(question_text(fields), int(fields.get("offset") or 0))]
        ended = outcome(message)
        if ended is None:
            return []
        whole = str(fields.get("text" if ended == "done" else "partial") or "") if self.turn else ""
        return [*self._more(whole, 0), End(ended, fields, message.at)]

    def lacks(self, step: Step) -> bool:
        """Whether text before the step was not streamed: the journal has it, and `fill` takes it."""
        return isinstance(step, Lost | Asked) and self.length < step.offset

    def fill(self, text: str, until: int) -> list[Step]:
        """Takes the recorded text of the turn, up to an offset."""
        return self._more(text[:until], 0)

    def _more(self, text: str, offset: int) -> list[Step]:
        end = offset + len(text)
        if not offset <= self.length < end:
            return []
        piece = Piece(text[self.length - offset :], self.length)
        self.length = end
        return [piece]


def question_text(fields: dict[str, Any]) -> str:
    """A question as an assistant would write it."""
    text, choices = str(fields.get("text") or ""), fields.get("choices") or ()
    return text + "".join(f"\n- {choice}" for choice in choices)


def fault_of(end: End) -> tuple[str, str]:
    """Returns fault and hint of an end that is no answer."""
    if end.outcome == "failed":
        return str(end.fields.get("error") or "the turn failed"), str(end.fields.get("hint") or "try again")
    if end.outcome == "interrupted":
        by = end.fields.get("by") or "a client"
        return f"{end.fields.get('turn')} was interrupted by {by}", "send the message again"
    reason, hint = why_given_up(end.fields)
    return f"the message was given up: {reason}", hint
