"""The chat's line to the supervisor, in a thread of its own: it comes back by itself and loses no message.

A request with a key of its own is the same message however often it is sent, so it is kept until it is
answered and sent again on every new connection. Any other that a loss leaves unanswered is answered here.
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
from hermesctl.event_stream import Feed
from ipc.messages import (
    Answer,
    Delta,
    Event,
    Follow,
    Following,
    Noted,
    Refused,
    Request,
    Retry,
    Submit,
)
from ipc.places import Places

# Events of a session that are read when it is opened: some dozens of turns. More is read on demand.
RECENT_EVENTS = 400
# What has arrived and is not drawn yet; beyond it the thread waits, and the supervisor holds its feed back.
_ARRIVED_MAX = 4096
# Between two looks whether the supervisor is back.
_RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Told:
    """Something of the feed."""

    item: Event | Delta | Noted


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to what was posted under this ticket."""

    ticket: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Connected:
    """The line stands, and this session is followed."""

    session: str


@dataclass(frozen=True, slots=True)
class Away:
    """Nobody answers; the line tries on."""


@dataclass(frozen=True, slots=True)
class _Post:
    ticket: int
    request: Request


@dataclass(frozen=True, slots=True)
class _TurnTo:
    session: str
    after: int | None


Happening = Told | Answered | Connected | Away


class Line:
    """Follows one session at a time. `run` is the thread; everything else is called from outside it."""

    def __init__(self, places: Places, session: str, notify: Callable[[], None]) -> None:
        """`notify` is called in the thread whenever `arrived` has something new to give."""
        self._places = places
        self._notify = notify
        self._wake, self._alarm = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._alarm, False)
        # As long as what a person asks for before the thread looks again; the desk bounds the messages.
        self._orders: deque[_Post | _TurnTo] = deque()
        self._arrived: queue.Queue[Happening] = queue.Queue(_ARRIVED_MAX)
        self._is_closing = False
        self._session = session
        self._after: int | None = None
        self._unanswered: dict[int, Request] = {}
        self._tickets: dict[int, int] = {}
        self._feed: Feed | None = None

    def connect(self) -> None:
        """The first connection; NotRunning when there is nobody to talk to."""
        if self._after is None:
            self._after = max(0, _head(self._places, self._session) - RECENT_EVENTS)
        self._feed = Feed(self._places, self._session, self._after, self._wake)

    def post(self, ticket: int, request: Request) -> None:
        self._order(_Post(ticket, request))

    def follow(self, session: str, after: int | None) -> None:
        """Turns to another session, and reads it from `after`, or from the recent past when it is None."""
        self._order(_TurnTo(session, after))

    def arrived(self) -> list[Happening]:
        """All that has happened since the last call, in order."""
        found: list[Happening] = []
        while True:
            try:
                found.append(self._arrived.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        self._is_closing = True
        self._ring()

    def run(self) -> None:
        """Until `close`. What it raises is a fault of ours and ends the chat."""
        try:
            while not self._is_closing:
                try:
                    self._stay_connected()
                except NotRunning:
                    self._hang_up()
                    self._tell(Away())
                    self._wait_a_moment()
        finally:
            self._hang_up()

    def release(self) -> None:
        """Gives the descriptors back, once `run` has returned."""
        os.close(self._wake)
        os.close(self._alarm)

    def _stay_connected(self) -> None:
        if self._feed is None:
            self._take_orders()
            self.connect()
        self._begin_again()
        while not self._is_closing and self._feed is not None:
            self._take_orders()
            arrived = self._feed.arrival() if self._feed else None
            if arrived is not None:
                self._take(*arrived)
            elif self._feed is not None and self._feed.is_lost():
                raise NotRunning()

    def _begin_again(self) -> None:
        self._tell(Connected(self._session))
        self._tickets.clear()
        for ticket, request in list(self._unanswered.items()):
            self._send(ticket, request)

    def _take_orders(self) -> None:
        while self._orders:
            match self._orders.popleft():
                case _Post(ticket, request):
                    self._unanswered[ticket] = request
                    self._send(ticket, request)
                case _TurnTo(session, after):
                    self._session, self._after = session, after
                    self._hang_up()

    def _send(self, ticket: int, request: Request) -> None:
        if self._feed is not None:
            self._tickets[self._feed.client.post(request)] = ticket
        elif not isinstance(request, Submit | Retry):
            self._answer(ticket, Refused("the supervisor is away", "try again when it is back"))

    def _take(self, number: int, answer: Answer) -> None:
        if isinstance(answer, Event):
            self._after = answer.seq
        if isinstance(answer, Event | Delta | Noted):
            self._tell(Told(answer))
        elif number in self._tickets:
            self._answer(self._tickets.pop(number), answer)

    def _answer(self, ticket: int, answer: Answer) -> None:
        self._unanswered.pop(ticket, None)
        self._tell(Answered(ticket, answer))

    def _hang_up(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        for ticket, request in list(self._unanswered.items()):
            if not isinstance(request, Submit | Retry):
                self._answer(ticket, Refused("the line was cut before the answer", "look, then try again"))

    def _tell(self, happening: Happening) -> None:
        while not self._is_closing:
            try:
                self._arrived.put(happening, timeout=_RETRY_SECONDS)
            except queue.Full:
                continue
            self._notify()
            return

    def _wait_a_moment(self) -> None:
        if select.select([self._wake], [], [], _RETRY_SECONDS)[0]:
            os.read(self._wake, 512)

    def _order(self, order: _Post | _TurnTo) -> None:
        self._orders.append(order)
        self._ring()

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # a full pipe wakes as well as one byte does
            os.write(self._alarm, b".")


def _head(places: Places, session: str) -> int:
    """The seq of the session's last event now."""
    client = Client(places)
    try:
        return client.ask(Follow(session), Following).seq
    finally:
        client.close()
