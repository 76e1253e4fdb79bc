"""One session as this chat knows it: its transcript, what is on the way to it, and what was chosen for it."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from hermesctl.chat.session_log import Transcript
from hermesctl.chat.turn import Turn
from ipc.messages import BusyMode, Delta, Event, Noted

# Events kept so that earlier ones can be put before them; a few megabytes of ordinary talk.
EVENTS_MAX = 5000


@dataclass(slots=True)
class Outgoing:
    """A message of this chat until the feed has told of it."""

    text: str
    state: Literal["sending", "accepted"] = "sending"
    message: str = ""
    clip: str = ""


@dataclass(slots=True)
class Conversation:
    session: str
    transcript: Transcript = field(default_factory=Transcript)
    outgoing: list[Outgoing] = field(default_factory=list)
    # What a message does to a running turn: chosen here, else as the session is set.
    busy: BusyMode | None = None
    set_busy: str = ""
    # The turn whose end was asked for.
    interrupting: str = ""
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    @property
    def mode(self) -> str:
        return self.busy or self.set_busy or self.transcript.busy

    @property
    def reaches_the_limit(self) -> bool:
        return len(self._events) + 1 >= EVENTS_MAX

    def take(self, item: Event | Delta | Noted) -> None:
        if isinstance(item, Event):
            self._events.append(item)
        self.transcript.take(item)
        self.forget_arrived()

    def forget_arrived(self) -> None:
        """What the feed has told of is no longer on its way."""
        known = self.transcript.messages
        self.outgoing = [each for each in self.outgoing if each.message not in known]

    def put_before(self, events: list[Event]) -> None:
        """Folds anew with earlier events in front; what is known of a turn and was never an event stays."""
        known = self.transcript
        room = EVENTS_MAX - len(self._events)
        earlier = [event for event in events if event.seq < known.first_seq][-room:] if room else []
        self._events.extendleft(reversed(earlier))
        self.transcript = Transcript()
        for event in self._events:
            self.transcript.take(event)
        self.transcript.messages = known.messages | self.transcript.messages
        for index, item in enumerate(self.transcript.items):
            if isinstance(item, Turn) and item.id in known.turns:
                old = known.turns[item.id]
                if old.is_open or old.messages:
                    old.messages, old.opened_at = item.messages, item.opened_at
                    old.version += 1
                    self.transcript.items[index] = self.transcript.turns[item.id] = old
