"""The parts of a host whose journal other hosts share, made only for a journal on a server."""

from collections.abc import Callable

from ipc import messages as wire
from supervisor.clients.subscriptions import Subscriptions
from supervisor.containment import Containment
from supervisor.core.state import State
from supervisor.hosts import shared_feed
from supervisor.hosts.exchange import Exchange
from supervisor.hosts.remote_feed import RemoteFeed
from supervisor.hosts.shared_feed import SharedFeed
from supervisor.journal.journal import Journal
from supervisor.journal.opening import ChosenJournal

Streamed = Callable[[str], wire.Delta | None]


class Sharing:
    """`feed` stands where a host alone has its subscriptions."""

    def __init__(self, feed: SharedFeed, remote: RemoteFeed, exchange: Exchange, state: State) -> None:
        self.feed = feed
        self.exchange = exchange
        self._remote = remote
        self._state = state

    def open(self) -> None:
        """Begin to tell and to be told."""
        self.exchange.open()

    def streamed(self, own: Streamed) -> Streamed:
        """Return what gives the text of a session's open turn, wherever the session is."""
        sessions, remote = self._state.sessions, self._remote
        return lambda name: own(name) if name in sessions else remote.streamed(name)


def sharing_of(
    journal: ChosenJournal, subscriptions: Subscriptions, state: State, contain: Containment
) -> Sharing | None:
    """Return None for a file: it belongs to this host alone."""
    if isinstance(journal, Journal):
        return None
    exchange = Exchange(journal.notices, contain)
    remote = RemoteFeed(
        subscriptions=subscriptions,
        journal=journal.read,
        wake=journal.wake,
        asking=journal.asking,
        is_here=state.sessions.__contains__,
    )
    exchange.on(shared_feed.EVENTS, remote.events_told)
    exchange.on(shared_feed.TEXT, remote.text_told)
    exchange.on(shared_feed.NOTE, remote.note_told)
    exchange.on_connected(remote.connected)
    exchange.on_look(remote.look)
    return Sharing(SharedFeed(subscriptions, exchange), remote, exchange, state)
