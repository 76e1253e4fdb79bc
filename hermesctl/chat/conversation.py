"""One session as this chat knows it: its log, its unsent messages, and the settings chosen for it."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from hermesctl.chat.session_log import SessionLog
from hermesctl.chat.turn import Turn
from ipc.messages import BusyMode, Delta, Event, Noted

# Events kept so that earlier ones can be put before them; a few megabytes of ordinary chat.
EVENTS_MAX = 5000


@dataclass(slots=True)
class Outgoing:
    """A message of this chat until its event arrives."""

    text: str
    state: Literal["sending", "accepted"] = "sending"
    message: str = ""
    clip: str = ""


@dataclass(slots=True)
class Conversation:
    session: str
    log: SessionLog = field(default_factory=SessionLog)
    outgoing: list[Outgoing] = field(default_factory=list)
    # The effect of a message on a running turn: chosen here, else as the session is set.
    busy: BusyMode | None = None
    set_busy: str = ""
    # The turn that is being interrupted.
    interrupting: str = ""
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    @property
    def mode(self) -> str:
        return self.busy or self.set_busy or self.log.busy

    @property
    def reaches_the_limit(self) -> bool:
        return len(self._events) + 1 >= EVENTS_MAX

    def take(self, item: Event | Delta | Noted) -> None:
        if isinstance(item, Event):
            self._events.append(item)
        self.log.take(item)
        self.forget_arrived()

    def forget_arrived(self) -> None:
        """Removes the messages whose events have arrived."""
        known = self.log.messages
        self.outgoing = [each for each in self.outgoing if each.message not in known]

    def put_before(self, events: list[Event]) -> None:
        """Rebuilds the log with earlier events in front; keeps the parts of a turn that were no events."""
        known = self.log
        room = EVENTS_MAX - len(self._events)
        earlier = [event for event in events if event.seq < known.first_seq][-room:] if room else []
        self._events.extendleft(reversed(earlier))
        self.log = SessionLog()
        for event in self._events:
            self.log.take(event)
        self.log.messages = known.messages | self.log.messages
        self.log.is_held = known.is_held
        for index, item in enumerate(self.log.items):
            if isinstance(item, Turn) and item.id in known.turns:
                old = known.turns[item.id]
                if old.is_open or old.messages:
                    old.messages, old.opened_at = item.messages, item.opened_at
                    old.version += 1
                    self.log.items[index] = self.log.turns[item.id] = old
