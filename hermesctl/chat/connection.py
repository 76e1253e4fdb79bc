"""The chat's connection to the supervisor, in its own thread; it reconnects and loses no message.

A request with a key is the same message however often it is sent, so it is kept until it is answered and sent
again on every new connection. A disconnect answers every other open request with Refused.
"""

import os
import queue
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from hermesctl.event_stream import EventStream
from ipc.messages import (
    Answer,
    Delta,
    Event,
    Noted,
    Refused,
    Request,
    Retry,
    Submit,
    Subscribe,
    Subscribed,
)
from ipc.places import Places

# Events of a session that are read when it is opened: some dozens of turns. More is read on demand.
RECENT_EVENTS = 400
# Received items that are not drawn yet; at this limit the thread waits, and the supervisor holds its events
# back.
_ARRIVED_MAX = 4096
# Pause between two attempts to reconnect.
_RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Received:
    """An item of the event stream."""

    item: Event | Delta | Noted


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to the request that was posted under this ticket."""

    ticket: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection is up, and this session is subscribed."""

    session: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The supervisor does not answer; the connection keeps trying."""


@dataclass(frozen=True, slots=True)
class _Post:
    ticket: int
    request: Request


@dataclass(frozen=True, slots=True)
class _Subscribe:
    session: str
    after: int | None


ConnectionEvent = Received | Answered | Connected | Disconnected


class Connection:
    """Subscribes to one session at a time.

    `run` is the thread; all other methods are called from outside it.
    """

    def __init__(self, places: Places, session: str, notify: Callable[[], None]) -> None:
        """`notify` is called in the thread whenever `arrived` has new items."""
        self._places = places
        self._notify = notify
        self._wake, self._alarm = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._alarm, False)
        # As long as the requests of a person until the thread reads them; the controller bounds the messages.
        self._orders: deque[_Post | _Subscribe] = deque()
        self._arrived: queue.Queue[ConnectionEvent] = queue.Queue(_ARRIVED_MAX)
        self._is_closing = False
        self._session = session
        self._after: int | None = None
        self._unanswered: dict[int, Request] = {}
        self._tickets: dict[int, int] = {}
        self._stream: EventStream | None = None

    def connect(self) -> None:
        """Makes the first connection; raises NotRunning when no supervisor answers."""
        if self._after is None:
            self._after = max(0, _head(self._places, self._session) - RECENT_EVENTS)
        self._stream = EventStream(self._places, self._session, self._after, self._wake)

    def post(self, ticket: int, request: Request) -> None:
        self._order(_Post(ticket, request))

    def subscribe(self, session: str, after: int | None) -> None:
        """Changes to another session, from `after`, or from its recent events when `after` is None."""
        self._order(_Subscribe(session, after))

    def arrived(self) -> list[ConnectionEvent]:
        """Returns everything that has arrived since the last call, in order."""
        found: list[ConnectionEvent] = []
        while True:
            try:
                found.append(self._arrived.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        self._is_closing = True
        self._wake_thread()

    def run(self) -> None:
        """Runs until `close`. An exception from here is a bug and ends the chat."""
        try:
            while not self._is_closing:
                try:
                    self._stay_connected()
                except NotRunning:
                    self._disconnect()
                    self._put(Disconnected())
                    self._wait_a_moment()
        finally:
            self._disconnect()

    def release(self) -> None:
        """Closes the descriptors, once `run` has returned."""
        os.close(self._wake)
        os.close(self._alarm)

    def _stay_connected(self) -> None:
        if self._stream is None:
            self._process_orders()
            self.connect()
        self._begin_again()
        while not self._is_closing and self._stream is not None:
            self._process_orders()
            arrived = self._stream.arrival() if self._stream else None
            if arrived is not None:
                self._take(*arrived)
            elif self._stream is not None and self._stream.is_lost():
                raise NotRunning()

    def _begin_again(self) -> None:
        self._put(Connected(self._session))
        self._tickets.clear()
        for ticket, request in list(self._unanswered.items()):
            self._send(ticket, request)

    def _process_orders(self) -> None:
        while self._orders:
            match self._orders.popleft():
                case _Post(ticket, request):
                    self._unanswered[ticket] = request
                    self._send(ticket, request)
                case _Subscribe(session, after):
                    self._session, self._after = session, after
                    self._disconnect()

    def _send(self, ticket: int, request: Request) -> None:
        if self._stream is not None:
            self._tickets[self._stream.client.post(request)] = ticket
        elif not isinstance(request, Submit | Retry):
            self._answer(
                ticket, Refused("the supervisor is away", "try again when it is back", code="unavailable")
            )

    def _take(self, number: int, answer: Answer) -> None:
        if isinstance(answer, Event):
            self._after = answer.seq
        if isinstance(answer, Event | Delta | Noted):
            self._put(Received(answer))
        elif number in self._tickets:
            self._answer(self._tickets.pop(number), answer)

    def _answer(self, ticket: int, answer: Answer) -> None:
        self._unanswered.pop(ticket, None)
        self._put(Answered(ticket, answer))

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        for ticket, request in list(self._unanswered.items()):
            if not isinstance(request, Submit | Retry):
                fault = "the line was cut before the answer"
                self._answer(ticket, Refused(fault, "look, then try again", code="unavailable"))

    def _put(self, event: ConnectionEvent) -> None:
        while not self._is_closing:
            try:
                self._arrived.put(event, timeout=_RETRY_SECONDS)
            except queue.Full:
                continue
            self._notify()
            return

    def _wait_a_moment(self) -> None:
        if select.select([self._wake], [], [], _RETRY_SECONDS)[0]:
            os.read(self._wake, 512)

    def _order(self, order: _Post | _Subscribe) -> None:
        self._orders.append(order)
        self._wake_thread()

    def _wake_thread(self) -> None:
        with suppress(BlockingIOError):  # a full pipe wakes as well as one byte does
            os.write(self._alarm, b".")


def _head(places: Places, session: str) -> int:
    """Returns the seq of the session's last event."""
    client = Client(places)
    try:
        return client.ask(Subscribe(session), Subscribed).seq
    finally:
        client.close()
