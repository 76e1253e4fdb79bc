"""Acknowledges the events that a named client has shown, so that they are not shown again."""

import time

from hermesctl.client import refusal
from hermesctl.event_stream import EventStream
from ipc.messages import Answer, Done, Event, Refused, Seen

# Acknowledged after so many events or so much time: a crash in between may show these twice.
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
        """Called after every item, and after every silence. A refusal ends the command."""
        if isinstance(item, Refused):
            raise refusal(item)
        if isinstance(item, Event):
            self._shown = item.seq
        is_late = time.monotonic() - self._told_at >= _SECONDS_MAX
        if self._shown - self._told >= _EVENTS_MAX or (self._shown > self._told and is_late):
            self._stream.client.post(self._seen())
            self._told, self._told_at = self._shown, time.monotonic()

    def connection_lost(self) -> None:
        """Repeats the last acknowledgement, which may not have arrived."""
        self._told = 0

    def finish(self) -> None:
        """Sends the last acknowledgement and waits for the answer."""
        if self._shown:
            self._stream.client.ask(self._seen(), Done)

    def _seen(self) -> Seen:
        return Seen(self._cursor, self._session, self._shown)
