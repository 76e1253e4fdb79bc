"""Subscriptions: each client gets durable events from its seq on, and streamed deltas; slow ones are ended.

Problem: a client may ask for a session's events from any seq, must see each exactly once and in order, and
may read more slowly than events are made. The supervisor must neither buffer for it nor wait for it.

States of a subscription:

    behind ── journal has no later event ──► level       behind: fed from the journal, a slice at a time
    level ──── a send finds a full queue ──► behind      level: fed with events as they are committed
    behind for 30 s without progress, or a subscription to all sessions that falls behind ──► ended

A subscription that is behind is due, or the queue of its client is full: then it becomes due again with the
next retry. Those that are due are served in turn, a slice each, until a few milliseconds are used; then the
loop serves others first. So a thousand subscriptions that begin at once delay no turn, and none of them waits
for another's end. `_behind` has first those that have waited longest for a slice, because a retry may find
room for some of them only.

Invariants: `seq` is the last durable event that was sent, and only a successful send moves it. Events are
sent only after their commit. A subscription becomes level when it has every event that the journal had when
it was asked, and every one that was published since. A level one has every committed event; so an exception
while one is published ends it, because continuing would leave a gap. The journal is the buffer: memory per
subscription is constant. Deltas are not durable and have no seq; one that cannot be sent is dropped, and the
event that ends the turn has the whole text. Seqs count within a session, so a subscription to all sessions
has no place to continue from and cannot be behind.

Sessions of other hosts on the same journal: their events are committed there, and `told_elsewhere` says how
far. A subscription with fewer is behind, so it reads them from the journal. The same happens when an event of
this host is not the next one, because the session has moved here and a notice of the host before is still on
its way. Deltas of such sessions come by `delta_elsewhere`: a subscription that misses one while it reads an
event gets the whole text when it is level again.
"""

import asyncio
from collections.abc import Callable, KeysView, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ipc import messages as wire
from ipc.codec import encode
from ipc.errors import FrameTooLarge
from ipc.paging import fitted_row
from ipc.server import Server
from ipc.zmtp import Sent
from supervisor.clock import monotonic
from supervisor.containment import Containment, Fault
from supervisor.core.records import Record
from supervisor.journal.asking import Asking, InPlace
from supervisor.journal.contract import Feeds, Told
from supervisor.journal.errors import JournalUnwritable

# Events read from the journal at a time: half a millisecond, unless they are long.
_SLICE_EVENTS = 32
# Of one turn of the loop, for all subscriptions that are behind.
_TURN_SECONDS = 0.005
# Interval of retries for a subscription whose queue is full, and their limit without progress.
_RETRY_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0
# A journal that does not answer is asked again after this.
_ASK_AGAIN_SECONDS = 0.5
# Per client: more than `hermesctl tail` of all sessions needs.
FOLLOWS_MAX = 2000
_TOO_SLOW = "it read too slowly"
# The journal did not say which events the session has: the next one that is published is the first.
_ANY_SEQ = -1


class Client(NamedTuple):
    """A connected client: identities are unique within one socket only."""

    socket: Server
    identity: bytes


@dataclass(slots=True, eq=False)
class _Subscriber:
    """One subscription of one client; `session` None means all; `seq` is the last durable event sent."""

    client: Client
    request: bytes
    session: str | None
    seq: int
    is_level: bool = False
    newest: int = 0  # the last event that was published since it subscribed
    is_asking: bool = False  # the journal is being asked for its next slice
    has_text: bool = False  # it reads events of another host, and has missed no delta since
    slice_left: int = _SLICE_EVENTS  # events of its slice that were not sent yet
    was_refused: bool = False  # its queue was full, since the last retry
    stuck_seconds: float = 0.0


class Subscriptions:
    """Sends events once they are durable, and deltas as they are streamed."""

    def __init__(self, history: Feeds, contain: Containment, asking: Asking | None = None) -> None:
        """`asking` is how the journal is asked, in place if it is not given."""
        self._history = history
        self._asking = asking or InPlace()
        self._loop = asyncio.get_running_loop()
        self._publish_contained = contain.around("follower", self._publish, self._not_published)
        self._tell_contained = contain.around("follower", self._tell, self._not_told)
        self._pass_on_contained = contain.around("follower", self._pass_on, self._not_told)
        self._begin_contained = contain.around("follower", self._begin, self._not_told)
        self._catch_up_contained = contain.around("follower", self._catch_up, self._not_told)
        self._go_on_contained = contain.around("follower", self._go_on, self._not_told)
        self._subscribers: dict[Client, dict[bytes, _Subscriber]] = {}  # by client, then by request
        self._by_session: dict[str | None, dict[_Subscriber, None]] = {}
        self._behind: dict[_Subscriber, None] = {}
        self._due: dict[_Subscriber, None] = {}  # of those behind, in the order of their next slice
        self._full: set[Client] = set()
        self._next_turn: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None

    def open(
        self,
        streamed: Callable[[str], wire.Delta | None],
        live_seq: Callable[[str], int] = lambda session: 0,
    ) -> None:
        """`streamed` is the text of a session that is streamed and not durable yet.

        `live_seq` is the last event of a session in memory, 0 for any other.
        """
        self._streamed = streamed
        self._live_seq = live_seq

    @property
    def count(self) -> int:
        return sum(map(len, self._subscribers.values()))

    def has_room(self, client: Client) -> bool:
        """Return whether the client may have another subscription."""
        return len(self._subscribers.get(client, ())) < FOLLOWS_MAX

    def subscribe(self, client: Client, request: bytes, session: str | None, after: int | None) -> None:
        """Begin after `after`, or with what happens from now on when it is None."""
        subscriber = _Subscriber(client, request, session, after or 0)
        self.unsubscribe(client, request)
        self._subscribers.setdefault(client, {})[request] = subscriber
        self._by_session.setdefault(session, {})[subscriber] = None
        if session is None:
            self._begin(subscriber, after, 0)
            return
        self._asking.ask(
            lambda: self._history.session_seq(session),
            lambda last: self._begin_contained(subscriber, after, last),
            lambda error: self._not_begun(subscriber, after, error.fault, error.hint),
        )

    def _not_begun(self, subscriber: _Subscriber, after: int | None, fault: str, hint: str) -> None:
        """The journal does not answer. What happens from now on needs none of it, if the session is live."""
        if not self._is_subscribed(subscriber):
            return
        session = subscriber.session
        live_seq = self._live_seq(session) if session is not None and after is None else 0
        if live_seq:
            # What is being committed now is still to be sent, whichever event that is.
            subscriber.seq, subscriber.is_level = _ANY_SEQ, True
            self._send(subscriber, encode(wire.Subscribed(live_seq, live_seq)))
            return
        self.unsubscribe(subscriber.client, subscriber.request)
        socket, identity = subscriber.client
        socket.send([identity, subscriber.request, encode(wire.Refused(fault, hint, code="unavailable"))])

    def _begin(self, subscriber: _Subscriber, after: int | None, last: int) -> None:
        """`last` is the session's last event, as the journal had it when it was asked."""
        if not self._is_subscribed(subscriber):
            return
        session, last = subscriber.session, max(last, subscriber.newest)
        subscriber.seq = last if after is None else after
        if self._send(subscriber, encode(wire.Subscribed(last, subscriber.seq))) is not Sent.SENT:
            return
        if session is None or subscriber.seq >= last:
            self._become_level(subscriber)
        else:
            self._make_due(subscriber)

    def unsubscribe(self, client: Client, request: bytes) -> None:
        theirs = self._subscribers.get(client, {})
        subscriber = theirs.pop(request, None)
        if subscriber is None:
            return
        if not theirs:
            del self._subscribers[client]
        self._behind.pop(subscriber, None)
        self._due.pop(subscriber, None)
        listeners = self._by_session[subscriber.session]
        del listeners[subscriber]
        if not listeners:
            del self._by_session[subscriber.session]

    def forget(self, client: Client) -> None:
        """End all subscriptions of a client that is gone."""
        for request in list(self._subscribers.get(client, ())):
            self.unsubscribe(client, request)

    def publish(self, records: Sequence[Record]) -> None:
        """Send what has just become durable."""
        for record in records:
            if record.type and (self._by_session.get(record.session) or self._by_session.get(None)):
                self._publish_contained(record)

    def _publish(self, record: Record) -> None:
        frame = _frame(wire.Event(record.seq, record.session, record.type, record.at, record.fields()))
        for subscriber in self._by_session.get(record.session, ()):
            subscriber.newest = record.seq
        for subscriber in self._level(record.session):
            self._tell_contained(subscriber, record.seq, frame)

    def _not_published(self, fault: Fault, record: Record) -> None:
        """Without this event a subscriber would have a gap, so its subscription ends."""
        for subscriber in self._level(record.session):
            self._cut(subscriber, fault.error)

    def _not_told(self, fault: Fault, subscriber: _Subscriber, *rest: object) -> None:
        self._cut(subscriber, fault.error)

    def delta(self, session: str, frame: bytes) -> None:
        """Send a delta or another frame that is not durable. A subscriber whose queue is full misses it."""
        for subscriber in self._level(session):
            self._pass_on_contained(subscriber, frame)

    def told_elsewhere(self, session: str, seq: int) -> None:
        """Another host has committed events of a session up to `seq`: those with fewer read the journal."""
        for subscriber in list(self._by_session.get(session, ())):
            subscriber.newest = max(subscriber.newest, seq)
            if subscriber.is_level and _ANY_SEQ < subscriber.seq < seq:
                subscriber.is_level, subscriber.has_text = False, True
                self._make_due(subscriber)

    def delta_elsewhere(self, session: str, frame: bytes) -> None:
        """Send a delta of a session of another host; who reads an event now gets the whole text later."""
        for subscriber in self._by_session.get(session, ()):
            subscriber.has_text = False
        self.delta(session, frame)

    def publish_elsewhere(self, session: str, events: Sequence[Told]) -> None:
        """Send events of a session of another host to the subscriptions to all sessions."""
        for told in events:
            frame = _frame(wire.Event(told.seq, session, told.type, told.at, told.fields))
            for subscriber in list(self._by_session.get(None, ())):
                self._tell_contained(subscriber, told.seq, frame)

    def cut_every(self, reason: str) -> None:
        """End the subscriptions to all sessions: what they missed is not known."""
        for subscriber in list(self._by_session.get(None, ())):
            self._cut(subscriber, reason)

    def followed(self) -> KeysView[str | None]:
        """Return the sessions that have subscriptions, and None if some are to all sessions."""
        return self._by_session.keys()

    def _pass_on(self, subscriber: _Subscriber, frame: bytes) -> None:
        socket, identity = subscriber.client
        if socket.send([identity, subscriber.request, frame]) is Sent.GONE:
            self.unsubscribe(subscriber.client, subscriber.request)

    def _level(self, session: str) -> list[_Subscriber]:
        one, every = self._by_session.get(session), self._by_session.get(None)
        found = [*one] if one else []
        if every:
            found += every
        return [subscriber for subscriber in found if subscriber.is_level]

    def _tell(self, subscriber: _Subscriber, seq: int, frame: bytes) -> None:
        if subscriber.session is not None:
            if seq <= subscriber.seq:
                return
            if seq > subscriber.seq + 1 and subscriber.seq != _ANY_SEQ:
                subscriber.is_level = False
                self._make_due(subscriber)
                return
        if self._send(subscriber, frame) is Sent.SENT:
            subscriber.seq = seq

    def _send(self, subscriber: _Subscriber, frame: bytes) -> Sent:
        socket, identity = subscriber.client
        sent = socket.send([identity, subscriber.request, frame])
        if sent is Sent.GONE:
            self.unsubscribe(subscriber.client, subscriber.request)
        elif sent is Sent.FULL:
            self._fall_behind(subscriber)
        return sent

    def _fall_behind(self, subscriber: _Subscriber) -> None:
        subscriber.is_level = subscriber.has_text = False
        if subscriber.session is None:  # it has no place to continue from
            self._cut(subscriber, _TOO_SLOW)
            return
        self._behind[subscriber] = None
        self._full.add(subscriber.client)
        subscriber.was_refused = True
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY_SECONDS, self._try_full)

    def _try_full(self) -> None:
        """Their queues may have room again; one that never has is ended."""
        self._retry = None
        self._full.clear()
        for subscriber in list(self._behind):
            subscriber.stuck_seconds += _RETRY_SECONDS * subscriber.was_refused
            subscriber.was_refused = False
            if subscriber.stuck_seconds > _PATIENCE_SECONDS:
                self._cut(subscriber, _TOO_SLOW)
            else:
                self._make_due(subscriber)

    def _make_due(self, subscriber: _Subscriber) -> None:
        """Serve it a slice after those that are due already."""
        self._behind[subscriber] = self._due[subscriber] = None
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._serve_due)

    def _serve_due(self) -> None:
        self._next_turn = None
        until = monotonic() + _TURN_SECONDS
        while self._due and monotonic() < until:
            subscriber = next(iter(self._due))
            del self._due[subscriber]
            if subscriber.client not in self._full:
                self._catch_up_contained(subscriber)
        if self._due and self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._serve_due)

    def _cut(self, subscriber: _Subscriber, reason: str) -> None:
        """End the subscription. This frame may be lost too; a client without news subscribes again."""
        self.unsubscribe(subscriber.client, subscriber.request)
        socket, identity = subscriber.client
        socket.send([identity, subscriber.request, encode(wire.Cut(reason))])

    def _catch_up(self, subscriber: _Subscriber) -> None:
        """Ask for one slice and for the session's last event, unless that is being done."""
        if subscriber.is_asking:
            return
        assert subscriber.session is not None
        session, seq, count = subscriber.session, subscriber.seq, subscriber.slice_left
        subscriber.is_asking = True
        self._asking.ask(
            lambda: (self._history.events_after(session, seq, count), self._history.session_seq(session)),
            lambda found: self._go_on_contained(subscriber, *found),
            lambda error: self._not_read(subscriber, isinstance(error, JournalUnwritable), error.fault),
        )

    def _not_read(self, subscriber: _Subscriber, may_pass: bool, fault: str) -> None:
        """A journal that does not answer now is asked again."""
        subscriber.is_asking = False
        if may_pass:
            self._loop.call_later(_ASK_AGAIN_SECONDS, self._ask_again, subscriber)
        elif self._is_subscribed(subscriber):
            self._cut(subscriber, fault)

    def _ask_again(self, subscriber: _Subscriber) -> None:
        if self._is_subscribed(subscriber):
            self._make_due(subscriber)

    def _go_on(self, subscriber: _Subscriber, found: Sequence[Told], last: int) -> None:
        """Send one slice, or as much of it as the queue takes: the rest of the slice comes first then."""
        subscriber.is_asking = False
        if not self._is_subscribed(subscriber):
            return
        assert subscriber.session is not None
        for told in found:
            event = wire.Event(told.seq, subscriber.session, told.type, told.at, told.fields)
            if self._send(subscriber, _frame(event)) is not Sent.SENT:
                return
            subscriber.seq, subscriber.stuck_seconds = told.seq, 0.0
            subscriber.slice_left -= 1
        subscriber.slice_left = _SLICE_EVENTS
        if subscriber.seq < max(last, subscriber.newest):
            self._make_last(subscriber)
            self._make_due(subscriber)
        else:
            self._become_level(subscriber)

    def _is_subscribed(self, subscriber: _Subscriber) -> bool:
        """It may have left while the journal was asked."""
        return self._subscribers.get(subscriber.client, {}).get(subscriber.request) is subscriber

    def _make_last(self, subscriber: _Subscriber) -> None:
        """It had its slice: of those behind, the others come first."""
        del self._behind[subscriber]
        self._behind[subscriber] = None

    def _become_level(self, subscriber: _Subscriber) -> None:
        self._behind.pop(subscriber, None)
        subscriber.is_level = True
        if subscriber.has_text:
            subscriber.has_text = False
            return
        streamed = self._streamed(subscriber.session) if subscriber.session is not None else None
        if streamed is not None:
            self._send(subscriber, encode(streamed))


def _frame(event: wire.Event) -> bytes:
    """Encode an event. One of an older journal may be too long: then its texts are cut, with a mark."""
    try:
        return encode(event)
    except FrameTooLarge:
        return encode(msgspec.structs.replace(event, fields=fitted_row(event.fields)))
