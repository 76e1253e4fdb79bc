"""What a named client has shown is acknowledged after it was shown, so that it is never shown again."""

import time

from hermesctl.client import refusal
from hermesctl.event_stream import EventStream
from ipc.messages import Answer, Done, Event, Refused, Seen

# Acknowledged after so many events or so much time: what a crash in between may show twice.
_EVENTS_MAX = 100
_SECONDS_MAX = 0.5


class Acknowledging:
    """Keeps the cursor of one client in one session."""

    def __init__(self, stream: EventStream, cursor: str, session: str) -> None:
        self._stream = stream
        self._cursor = cursor
        self._session = session
        self._shown = 0
        self._told = 0
        self._told_at = time.monotonic()

    def shown(self, item: Answer | None) -> None:
        """After every item, and after every silence. A refusal to remember it ends the command."""
        if isinstance(item, Refused):
            raise refusal(item)
        if isinstance(item, Event):
            self._shown = item.seq
        is_late = time.monotonic() - self._told_at >= _SECONDS_MAX
        if self._shown - self._told >= _EVENTS_MAX or (self._shown > self._told and is_late):
            self._stream.client.post(self._seen())
            self._told, self._told_at = self._shown, time.monotonic()

    def line_lost(self) -> None:
        """What was posted may not have arrived; it is said again."""
        self._told = 0

    def finish(self) -> None:
        """The last word, waited for."""
        if self._shown:
            self._stream.client.ask(self._seen(), Done)

    def _seen(self) -> Seen:
        return Seen(self._cursor, self._session, self._shown)
