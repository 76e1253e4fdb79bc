"""A stream of events that survives a supervisor restart: it resumes after the last seq, without repeats."""

import time
from contextlib import ExitStack

from client.resuming import Resuming
from hermesctl.client import SILENCE_SECONDS, Client
from hermesctl.errors import NotRunning
from ipc.messages import Answer, Cut, Delta, Event, Noted, Show, Subscribe, Subscribed, Unsubscribe
from ipc.places import Places

# Pause between two attempts to reconnect.
_RETRY_SECONDS = 0.2
# A reader that is slow now and then is cut less often than this.
_RESUBSCRIBE_SECONDS = 1.0
# The frame that reports a cut can itself be lost; after so much silence the stream subscribes again.
_QUIET_SECONDS = 30.0
# Sessions caught up after a loss when all are subscribed: more than a person reads in one terminal.
_SESSIONS_MAX = 1000


class EventStream:
    """The events of one session, or of all when `session` is None."""

    def __init__(
        self,
        places: Places,
        session: str | None,
        after: int | None,
        wake: int | None = None,
        cursor: str = "",
    ) -> None:
        """With a `cursor` and no `after` it begins after the last event that the cursor has acknowledged."""
        self._places = places
        self._session = session
        self._wake = wake
        self._received_at = time.monotonic()
        self._resubscribed_at = 0.0
        self.client = Client(places, wake)
        with ExitStack() as undone:
            undone.callback(self.client.close)
            self._begin(after, cursor)
            undone.pop_all()

    def _begin(self, after: int | None, cursor: str) -> None:
        session = self._session
        self._resuming = Resuming(self._heads() if session is None and after is None else None)
        standing = self.client.ask(Subscribe(session, after, cursor), Subscribed)
        self._resuming.subscribed(self.client.number)
        # False for a session that never got a message.
        self.is_known = session is None or standing.seq > 0
        if session is not None:
            begins = standing.after if cursor else standing.seq
            self._resuming.move(session, begins if after is None else after)

    def next(self) -> Answer | None:
        """Returns the next event, delta or note, or the answer to a posted request.

        None after a short silence.
        """
        arrived = self.arrival()
        return None if arrived is None else arrived[1]

    def arrival(self) -> tuple[int, Answer] | None:
        """Returns the same with the number of the request that it answers."""
        arrived = self.client.receive(SILENCE_SECONDS)
        if arrived is None:
            self._check_silence()
            return None
        self._received_at = time.monotonic()
        number, answer = arrived
        if isinstance(answer, Cut):
            self._resubscribe(number)
            return None
        if isinstance(answer, Event | Delta | Noted) and not self._resuming.take(number, answer):
            return None
        return arrived

    def rewind(self, after: int) -> None:
        """Reads the session again from an earlier place."""
        assert self._session is not None
        for number in self._resuming.numbers():
            self.client.post(Unsubscribe(number))
        self._resuming.move(self._session, after)
        self._subscribe_again()

    def is_lost(self) -> bool:
        return self.client.is_lost()

    def reconnect(self, patience_seconds: float) -> None:
        """Waits for the supervisor and continues the stream; raises NotRunning after the time limit."""
        deadline = time.monotonic() + patience_seconds
        while True:
            self.client.close()
            try:
                self.client = Client(self._places, self._wake)
                self._subscribe_again()
                return
            except NotRunning:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def close(self) -> None:
        self.client.close()

    def _subscribe(self, session: str) -> int:
        """Begins after the last event that was read."""
        self.client.ask(Subscribe(session, self._resuming.place(session)), Subscribed)
        return self.client.number

    def _subscribe_again(self) -> None:
        if self._session is not None:
            self._resuming.subscribed(self._subscribe(self._session))
            return
        self.client.ask(Subscribe(None, None), Subscribed)
        self._resuming.subscribed(self.client.number)
        for session in self._resuming.behind(self._heads()):
            self._resuming.subscribed(self._subscribe(session), session)

    def _check_silence(self) -> None:
        if time.monotonic() - self._received_at > _QUIET_SECONDS and not self.is_lost():
            self._received_at = time.monotonic()
            for number in self._resuming.numbers():
                self.client.post(Unsubscribe(number))
            self._subscribe_again()

    def _resubscribe(self, number: int) -> None:
        """Subscribes again after the last event, but not as fast as subscriptions can be cut."""
        if time.monotonic() - self._resubscribed_at < _RESUBSCRIBE_SECONDS:
            time.sleep(_RETRY_SECONDS)
        self._resubscribed_at = time.monotonic()
        is_main, sessions = self._resuming.carried_by(number)
        if is_main:
            self._subscribe_again()
        for session in sessions:
            self._resuming.subscribed(self._subscribe(session), session)

    def _heads(self) -> dict[str, int]:
        rows = self.client.rows(Show("sessions", limit=_SESSIONS_MAX), _SESSIONS_MAX)
        return {str(row["session"]): int(row.get("seq") or 0) for row in rows if "session" in row}
