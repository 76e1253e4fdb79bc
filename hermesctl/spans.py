"""Makes spans of events: the whole tree of a turn, once, when the turn has ended; no text is in one."""

from collections import deque
from dataclasses import dataclass, field

from ipc.messages import Event

Attributes = dict[str, str | int | float | bool]

# Turns and messages that have not ended: more than can be open; the oldest are dropped.
_OPEN_MAX = 10_000
_ENDINGS = {"turn.done": "done", "turn.failed": "failed", "turn.interrupted": "interrupted"}


@dataclass
class Span:
    """An interval, and the intervals within it."""

    name: str
    start: float
    end: float = 0.0
    attributes: Attributes = field(default_factory=dict)
    is_fault: bool = False
    inner: "list[Span]" = field(default_factory=list)

    def close(self, at: float, **attributes: str | int | float | bool) -> None:
        if not self.end:
            self.end = at
            self.attributes |= {f"hermes.{name}": value for name, value in attributes.items()}


class Spans:
    """Open messages and turns."""

    def __init__(self) -> None:
        self._messages: dict[str, Span] = {}
        self._turns: dict[str, Span] = {}
        self._bound: deque[tuple[dict[str, Span], str]] = deque()

    def told(self, event: Event) -> Span | None:
        """Returns the turn that this event has ended, with all that happened in it."""
        fields = event.fields
        turn = self._turns.get(str(fields.get("turn", "")))
        match event.type:
            case "message.accepted":
                name = "transcribe" if fields["kind"] == "voice" else "wait"
                self._begin(self._messages, fields["message"], Span(name, event.at))
            case "transcript.ready" if waiting := self._messages.get(fields["message"]):
                waiting.close(event.at)
            case "transcript.failed" | "message.dropped":
                self._messages.pop(fields["message"], None)
            case "turn.opened":
                self._open(event)
            case _ if turn is not None:
                return self._within(turn, event)
        return None

    def _open(self, event: Event) -> None:
        inner = self._waits(event)
        turn = Span("turn", min([event.at, *(wait.start for wait in inner)]), inner=inner)
        turn.attributes = {"hermes.session": event.session, "hermes.turn": event.fields["turn"]}
        turn.inner.append(Span("queue", event.at))
        self._begin(self._turns, event.fields["turn"], turn)

    def _waits(self, event: Event) -> list[Span]:
        """Yields the waiting times of the messages that a turn takes with this event."""
        found = [self._messages.pop(message, None) for message in event.fields["messages"]]
        waits = [wait for wait in found if wait is not None]
        for wait in waits:
            wait.close(event.at)
        return waits

    def _within(self, turn: Span, event: Event) -> Span | None:
        fields, latest = event.fields, turn.inner[-1]
        match event.type:
            case "turn.joined":
                turn.inner[-1:-1] = self._waits(event)
            case "attempt.opened":
                latest.close(event.at)
                attempt = Span(f"attempt {fields['attempt']}", event.at)
                attempt.attributes = {"hermes.worker": fields["worker"], "process.pid": fields["pid"]}
                turn.inner.append(attempt)
            case "attempt.lost":
                _close_all(latest, event.at, outcome="lost")
                latest.is_fault = True
                turn.inner.append(Span("queue", event.at))
            case "question.asked":
                _close_all(latest, event.at, outcome="asked")
                turn.inner.append(Span("ask", event.at))
            case "question.answered":
                latest.close(event.at)
                turn.inner.append(Span("queue", event.at))
            case "tool.started":
                tool = Span(f"tool {fields['name']}", event.at, attributes={"hermes.call": fields["call"]})
                latest.inner.append(tool)
            case "tool.finished":
                for tool in latest.inner:
                    if tool.attributes.get("hermes.call") == fields["call"]:
                        tool.close(event.at, ok=fields["ok"])
                        tool.is_fault = not fields["ok"]
            case kind if kind in _ENDINGS:
                return self._end(turn, event)
        return None

    def _end(self, turn: Span, event: Event) -> Span:
        fields, outcome = event.fields, _ENDINGS[event.type]
        del self._turns[fields["turn"]]
        _close_all(turn.inner[-1], event.at, outcome=outcome)
        more: Attributes = {}
        if usage := fields.get("usage"):
            more = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}
        if killed := fields.get("killed"):
            more = {"killed_processes": killed["processes"], "killed_ms": killed["ms"]}
        turn.close(event.at, outcome=outcome, **more)
        turn.is_fault = outcome == "failed"
        return turn

    def _begin(self, where: dict[str, Span], name: str, span: Span) -> None:
        where[name] = span
        self._bound.append((where, name))
        if len(self._bound) > _OPEN_MAX:
            oldest, forgotten = self._bound.popleft()
            oldest.pop(forgotten, None)


def _close_all(span: Span, at: float, outcome: str) -> None:
    """Ends all open intervals with their parent."""
    for inner in span.inner:
        inner.close(at, outcome="cut off")
    span.close(at, outcome=outcome)
