"""Builds from a session's events the log that a person reads. No I/O, no clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from hermesctl.chat.turn import Fields, Question, Turn
from ipc.messages import Delta, Event, Noted

MessageState = Literal["transcribing", "waiting", "taken", "dropped", "not understood"]
# Turns kept in memory and on the scroll: hours of chat. Older ones are in the journal.
TURNS_MAX = 1000


@dataclass(slots=True)
class Message:
    """A message of a person. `reason` and `hint` tell why a clip has no transcript."""

    id: str
    at: float
    text: str = ""
    kind: str = "text"
    busy: str = ""
    state: MessageState = "waiting"
    by: str = ""
    reason: str = ""
    hint: str = ""
    note: str = ""


@dataclass(slots=True)
class Gap:
    """A place where the journal is known to miss events."""

    lost: int


Item = Turn | Message | Gap


@dataclass(slots=True)
class SessionLog:
    """`items` are turns, and messages that ended without one, in reading order."""

    items: list[Item] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    first_seq: int = 0
    seq: int = 0
    is_held: bool = False
    # The busy mode of the last message.
    busy: str = ""

    @property
    def open_turn(self) -> Turn | None:
        """The turn that has not ended: a session has at most one."""
        for item in reversed(self.items):
            if isinstance(item, Turn):
                return item if item.is_open else None
        return None

    @property
    def last_turn(self) -> Turn | None:
        return next((item for item in reversed(self.items) if isinstance(item, Turn)), None)

    @property
    def question(self) -> Question | None:
        turn = self.open_turn
        return turn.question if turn else None

    @property
    def waiting(self) -> list[Message]:
        """Waiting messages, in order of arrival."""
        return [each for each in self.messages.values() if each.state in ("waiting", "transcribing")]

    def take(self, item: Event | Delta | Noted) -> None:
        match item:
            case Event():
                self._take_event(item)
            case Delta():
                turn = self._turn(item.turn, 0.0)
                turn.append(item.attempt, item.offset, item.text)
                turn.version += 1
            case Noted():
                self._take_note(item)

    def take_queue(self, rows: Iterable[Fields]) -> None:
        """Takes over messages that have waited since before the first known event."""
        known = self.messages
        early: dict[str, Message] = {}
        for row in rows:
            self.is_held = self.is_held or bool(row.get("held"))
            if (name := str(row["message"])) not in known:
                state: MessageState = "transcribing" if row.get("state") == "transcribing" else "waiting"
                kind, text = str(row.get("kind") or "text"), str(row.get("text") or "")
                early[name] = Message(name, float(row.get("at") or 0), text, kind, state=state)
        self.messages = early | known

    def _take_event(self, event: Event) -> None:
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        self.first_seq = self.first_seq or event.seq
        fold = _FOLDS.get(event.type)
        if fold is not None:
            fold(self, event)
        if (name := event.fields.get("turn")) in self.turns:
            self.turns[name].version += 1

    def _take_note(self, note: Noted) -> None:
        if note.turn in self.turns:
            self.turns[note.turn].remark(note.text, note.call)
            self.turns[note.turn].version += 1
        elif note.turn in self.messages:
            self.messages[note.turn].note = note.text

    def _turn(self, name: str, at: float) -> Turn:
        """Returns a turn by its id; one that was opened before the first known event begins in the middle."""
        if name not in self.turns:
            self.turns[name] = Turn(name, at)
            self.items.append(self.turns[name])
            self._forget()
        return self.turns[name]

    def _forget(self) -> None:
        while len(self.items) > TURNS_MAX:
            oldest = self.items.pop(0)
            if isinstance(oldest, Turn):
                del self.turns[oldest.id]
                for name in oldest.messages:
                    self.messages.pop(name, None)

    def _accept(self, event: Event) -> None:
        fields = event.fields
        name, kind = str(fields["message"]), str(fields.get("kind") or "text")
        message = Message(name, event.at, str(fields.get("text") or ""), kind, str(fields.get("busy") or ""))
        message.state = "transcribing" if kind == "voice" else "waiting"
        self.messages[name] = message
        self.busy = message.busy or self.busy

    def _understand(self, event: Event) -> None:
        message = self._message(event)
        message.state = "waiting"
        message.text = str(event.fields.get("text") or "") if event.fields.get("echo", True) else ""

    def _misunderstand(self, event: Event) -> None:
        message = self._message(event)
        message.state = "not understood"
        message.reason, message.hint = str(event.fields.get("reason")), str(event.fields.get("hint") or "")
        self._put_aside(message)

    def _drop(self, event: Event) -> None:
        message = self._message(event)
        message.state, message.by = "dropped", str(event.fields.get("by") or "")
        self._put_aside(message)

    def _put_aside(self, message: Message) -> None:
        """Puts a message without a turn before the open turn, whose text stays at the end."""
        is_open = bool(self.items) and self.items[-1] is self.open_turn
        self.items.insert(len(self.items) - is_open, message)
        self._forget()

    def _message(self, event: Event) -> Message:
        name = str(event.fields.get("message"))
        return self.messages.setdefault(name, Message(name, event.at))

    def _open(self, event: Event) -> None:
        names = tuple(str(name) for name in event.fields.get("messages") or ())
        turn = self._turn(str(event.fields["turn"]), event.at)
        turn.messages += names
        for name in names:
            self.messages.setdefault(name, Message(name, event.at)).state = "taken"

    def _steer(self, event: Event) -> None:
        self._message(event).state = "taken"
        self._of(event).steer(str(event.fields.get("message")))

    def _answer(self, event: Event) -> None:
        if event.fields.get("message"):
            self._message(event).state = "taken"
        self._of(event).answer(event.fields)

    def _of(self, event: Event) -> Turn:
        return self._turn(str(event.fields["turn"]), event.at)


def _end(log: SessionLog, event: Event) -> None:
    states: dict[str, Any] = {
        "turn.done": "done",
        "turn.failed": "failed",
        "turn.interrupted": "interrupted",
    }
    log._of(event).end(states[event.type], event.at, event.fields)


_FOLDS: dict[str, Callable[[SessionLog, Event], None]] = {
    "message.accepted": SessionLog._accept,
    "transcript.ready": SessionLog._understand,
    "transcript.failed": SessionLog._misunderstand,
    "message.dropped": SessionLog._drop,
    "session.held": lambda log, event: setattr(log, "is_held", True),
    "session.released": lambda log, event: setattr(log, "is_held", False),
    "turn.opened": SessionLog._open,
    "turn.joined": SessionLog._open,
    "attempt.opened": lambda t, event: t._of(event).begin_attempt(int(event.fields.get("attempt") or 1)),
    "attempt.lost": lambda t, event: t._of(event).lose(
        str(event.fields.get("reason") or ""), event.fields.get("offset")
    ),
    "tool.started": lambda t, event: t._of(event).start_tool(event.fields),
    "tool.finished": lambda t, event: t._of(event).finish_tool(event.fields),
    "question.asked": lambda t, event: t._of(event).ask(event.fields),
    "question.answered": SessionLog._answer,
    "turn.steered": SessionLog._steer,
    "turn.done": _end,
    "turn.failed": _end,
    "turn.interrupted": _end,
    "journal.repaired": lambda t, event: t.items.append(Gap(int(event.fields.get("lost") or 0))),
}
