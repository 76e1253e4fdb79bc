"""A response as the journal has it: found by the id of its message, with what is known of it so far."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.namespace import Namespace
from gateway.openai.answer_steps import AnswerSteps, Asked, End, Lost
from gateway.openai.openai_requests import ResponseRequest
from gateway.openai.response_events import ResponseStream
from gateway.openai.session_choice import Placed
from gateway.parts import Parts
from ipc.messages import Done, Event, Show

_ID = "resp_"
_MESSAGE = "m_"
_OPEN = frozenset({"queued", "running", "asking"})
_COMMON = frozenset({"seq", "session", "type", "at"})
# Fields that clients expect in every response, and that mean nothing here.
_FIXED: dict[str, Any] = {
    "background": None,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}


@dataclass(frozen=True)
class Stored:
    """`turn` is empty until one has taken the message; `state` is the turn's, or else the message's."""

    id: str
    placed: Placed
    turn: str
    state: str
    is_asking: bool
    common: dict[str, Any]
    events: tuple[Event, ...]
    sentence: Callable[[str], str]

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN if self.turn else self.state in ("waiting", "transcribing")

    def empty(self, after: int = -1) -> ResponseStream:
        """The response before its first step; of a stream that continues, behind which event."""
        return ResponseStream(self.id, self.common, self.sentence, after)

    async def so_far(self, parts: Parts) -> dict[str, Any]:
        """The response as it is now, also while its turn runs."""
        response, steps = self.empty(), AnswerSteps(self.placed.message)
        for event in self.events:
            for step in steps.take(event):
                if isinstance(step, Asked | Lost) and steps.lacks(step):
                    for missing in steps.fill(await self._text(parts), step.offset):
                        response.take(missing)
                response.take(step)
                if isinstance(step, Asked | End):
                    return response.response()
        if steps.turn is not None:
            text = await self._text(parts)
            for missing in steps.fill(text, len(text)):
                response.take(missing)
        return response.response() | ({} if self.state in ("running", "asking") else {"status": "queued"})

    def stopped(self, done: Done) -> dict[str, Any]:
        """The response whose turn was killed while the journal cannot be written: `done` has the proof."""
        killed = next((each for each in done.killed if each.turn == self.turn), None)
        proof = msgspec.to_builtins(killed) if killed is not None else {}
        proof.pop("turn", None)
        return self.empty().response() | {"status": "cancelled", "killed": proof, "unwritten": done.unwritten}

    async def _text(self, parts: Parts) -> str:
        rows = await parts.supervisor.rows(Show("turn", id=self.turn))
        return str(rows[0]["text"]) if rows else ""


async def find(parts: Parts, exchange: Exchange, id: str) -> Stored:
    """HttpError for an id that is none, for one of a stranger, and for one whose turn was pruned."""
    message = _MESSAGE + id.removeprefix(_ID)
    unknown = HttpError(404, f"there is no response {id[:100]!r}", "it was pruned, or it never was")
    if not id.startswith(_ID) or not id.removeprefix(_ID).isalnum():
        raise unknown
    rows = await parts.supervisor.rows(Show("story", id=message))
    if not rows or not exchange.namespace.owns(rows[0].get("session")):
        raise unknown
    summary, *told = rows
    session, turn = str(summary["session"]), str(summary.get("turn") or "")
    events = tuple(_event(row) for row in told if "type" in row)
    if not events:
        raise unknown
    begun = next((each for each in events if each.fields.get("message") == message), events[0])
    agent = next((each.fields["agent"] for each in events if each.type == "turn.opened"), "")
    shown = exchange.namespace.outward(session)
    common = _FIXED | {"created_at": int(begun.at), "model": agent, "conversation": {"id": shown}}
    state = str(summary.get("turn_state") if turn else summary.get("state"))
    placed = Placed(session, message, events[0].seq)
    is_asking = state == "asking" or _asks(events)
    return Stored(id, placed, turn, state, is_asking, common, events, exchange.namespace.sentence)


def new(namespace: Namespace, placed: Placed, now: float, request: ResponseRequest) -> ResponseStream:
    """The response to a message that was just accepted."""
    own = {
        "created_at": int(now),
        "model": request.model,
        "conversation": {"id": namespace.outward(placed.session)},
        "background": bool(request.background),
        "instructions": request.instructions,
        "metadata": request.metadata or {},
        "previous_response_id": request.previous_response_id,
    }
    return ResponseStream(_ID + placed.message.removeprefix(_MESSAGE), _FIXED | own, namespace.sentence)


def _asks(events: tuple[Event, ...]) -> bool:
    """Whether the last question has no answer: an attempt may hold for it."""
    asked = [each.type for each in events if each.type.startswith("question.")]
    return bool(asked) and asked[-1] == "question.asked"


def _event(row: dict[str, Any]) -> Event:
    fields = {name: value for name, value in row.items() if name not in _COMMON}
    return Event(int(row["seq"]), str(row["session"]), str(row["type"]), float(row["at"]), fields)
