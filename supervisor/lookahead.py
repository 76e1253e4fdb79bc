"""What a batch needs of the journal, asked once before it is decided, where the journal is on a server.

A file answers each question of enrichment.py in place. A server is asked for all of them together, while the
loop turns, and enrichment finds the answers here. Only the events that were looked at are decided then: those
that are posted meanwhile belong to the next batch. Between the question and the decision nothing else is
decided, and nothing but decisions writes what is asked for, so the answers are as good as if they were given
in place.

A message is asked for by its id: its key may be known. Of a session that began here and is in memory since,
all messages are known (`NewSessions`), and the next one costs no question.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from supervisor.core.events import BeginAsked, EventsSeen, Known, SessionsTaken, TextArrived, VoiceArrived
from supervisor.core.records import MessageAccepted, Record
from supervisor.core.state import Session, State
from supervisor.enrichment import ABOUT_SESSIONS
from supervisor.event_queue import Happened

# Of one session; the key of a later message is asked for.
_MESSAGES_MAX = 1000


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


class NewSessions:
    """The messages of sessions that began in this life and have been in memory since.

    No other host writes to a session that is in memory here. One that has left memory is not new any more: it
    may come back from another host.
    """

    def __init__(self) -> None:
        self._messages: dict[str, set[str]] = {}

    def lacks(self, session: str, message: str) -> bool:
        """Whether the session is known not to have this message."""
        return message not in self._messages.get(session, (message,))

    def forget(self, session: str) -> None:
        self._messages.pop(session, None)

    def take(self, records: Iterable[Record], state: State) -> None:
        """These records are committed, and sessions at rest have left memory."""
        for record in records:
            if record.session not in state.sessions:
                self.forget(record.session)
            elif isinstance(record, MessageAccepted):
                if record.seq == 1:
                    self._messages[record.session] = set()
                self._add(record.session, record.message)

    def _add(self, session: str, message: str) -> None:
        known = self._messages.get(session)
        if known is not None:
            known.add(message)
            if len(known) > _MESSAGES_MAX:
                self.forget(session)


def wanted(happened: Iterable[Happened], state: State, new: NewSessions) -> Wanted:
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
            if event.session in found.sessions or not new.lacks(event.session, event.message):
                found.messages.add(event.message)
        elif isinstance(event, BeginAsked):
            found.begun.add(event.session)
        elif isinstance(event, EventsSeen):
            found.cursors.add(event.session)
    for session in found.sessions:
        new.forget(session)
    return found
