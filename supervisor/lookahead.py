"""What a batch needs of the journal, asked once before it is decided, where the journal is on a server.

A file answers each question of enrichment.py in place. A server is asked for all of them together, while the
loop turns, and enrichment finds the answers here. Only the events that were looked at are decided then: those
that are posted meanwhile belong to the next batch. Between the question and the decision nothing else is
decided, and nothing but decisions writes what is asked for, so the answers are as good as if they were given
in place.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from supervisor.core.events import BeginAsked, EventsSeen, Known, SessionsTaken, TextArrived, VoiceArrived
from supervisor.core.state import Session, State
from supervisor.enrichment import ABOUT_SESSIONS
from supervisor.event_queue import Happened


@dataclass(slots=True)
class Wanted:
    """Sessions that are not in memory; messages by id; sessions whose cursors or beginning are asked for."""

    sessions: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.sessions or self.messages or self.cursors or self.begun)


@dataclass(slots=True)
class LookedUp:
    """The answers; what the journal does not have is absent."""

    sessions: dict[str, Session] = field(default_factory=dict)
    messages: dict[str, Known] = field(default_factory=dict)
    cursors: dict[str, dict[str, int]] = field(default_factory=dict)
    begun: dict[str, str] = field(default_factory=dict)


def wanted(happened: Iterable[Happened], state: State) -> Wanted:
    """Return what enrichment will ask for these events."""
    found = Wanted()
    for event in happened:
        # A call that gives an event later says which session that will be about, if it is about one.
        if callable(event) or isinstance(event, ABOUT_SESSIONS):
            session = getattr(event, "session", None)
            if session is not None and session not in state.sessions:
                found.sessions.add(session)
        elif isinstance(event, SessionsTaken):
            found.sessions.update(name for name in event.sessions if name not in state.sessions)
        if isinstance(event, TextArrived | VoiceArrived):
            found.messages.add(event.message)
        elif isinstance(event, BeginAsked):
            found.begun.add(event.session)
        elif isinstance(event, EventsSeen):
            found.cursors.add(event.session)
    return found
