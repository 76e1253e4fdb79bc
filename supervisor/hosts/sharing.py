"""The parts of a host whose journal other hosts share, made only for a journal on a server."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipc import messages as wire
from supervisor.clients.changes import Changes
from supervisor.clients.queries import Views
from supervisor.clients.subscriptions import Subscriptions
from supervisor.containment import Containment
from supervisor.core.state import State
from supervisor.hosts import shared_feed
from supervisor.hosts.peers import Peers
from supervisor.hosts.remote_feed import RemoteFeed
from supervisor.hosts.remote_stories import RemoteStories
from supervisor.hosts.requests import Reply, Requests
from supervisor.hosts.routing import Routing
from supervisor.hosts.shared_feed import SharedFeed
from supervisor.journal.journal import Journal
from supervisor.journal.opening import ChosenJournal
from supervisor.stt.shared_clips import SharedClips

if TYPE_CHECKING:
    from supervisor.journal.postgres.server_journal import ServerJournal

Streamed = Callable[[str], wire.Delta | None]


class Sharing:
    """`feed` stands where a host alone has its subscriptions."""

    def __init__(
        self,
        journal: "ServerJournal",
        subscriptions: Subscriptions,
        state: State,
        contain: Containment,
        clips: SharedClips,
    ) -> None:
        self.clips = clips
        self.peers = Peers(journal.notices, contain)
        self.feed = SharedFeed(subscriptions, self.peers)
        self._journal = journal
        self._state = state
        self._contain = contain
        self._told: Callable[[str, int | None], None]
        self._remote = RemoteFeed(
            subscriptions=subscriptions,
            journal=journal.read,
            wake=journal.wake,
            asking=journal.asking,
            is_here=state.sessions.__contains__,
        )
        self.peers.on(shared_feed.EVENTS, self._events_told)
        self.peers.on(shared_feed.TEXT, self._remote.text_told)
        self.peers.on(shared_feed.NOTE, self._remote.note_told)
        self.peers.on_connected(self._remote.connected)
        self.peers.on_look(self._remote.look)

    def route(self, changes: Changes, views: Views) -> RemoteStories:
        """Let requests of clients go where their sessions are, and carry out those of other hosts.

        Return what stands where a host alone has its views.
        """
        journal, peers = self._journal, self.peers

        def serve(request: Any, reply: Reply, moved: Callable[[], None]) -> None:
            if isinstance(request, wire.Show):
                stories.serve(request, reply)
            else:
                changes.ask(request, reply, moved)

        requests = Requests(
            notices=journal.notices,
            rows=journal.requests,
            peers=peers,
            serve=serve,
            contain=self._contain,
        )
        is_here = self._state.sessions.__contains__
        stories = RemoteStories(views, requests, journal.epoch, journal.requests, is_here)
        routing = Routing(
            owners=journal.owners,
            requests=requests,
            others=lambda: peers.others,
            clips=self.clips,
            past=journal.read,
            asking=journal.asking,
            carry_out=changes.carry_out,
            is_here=is_here,
        )
        self._told = routing.told
        changes.open(routing.route)
        return stories

    def _events_told(self, session: str, first: int, last: int, has_ended: bool) -> None:
        """Another host has committed events of a session: with an open turn, it has the session."""
        self._told(session, None if has_ended else self.peers.sender)
        self._remote.events_told(session, first, last, has_ended)

    def open(self) -> None:
        """Begin to tell and to be told."""
        self.peers.open()

    def streamed(self, own: Streamed) -> Streamed:
        """Return what gives the text of a session's open turn, wherever the session is."""
        sessions, remote = self._state.sessions, self._remote
        return lambda name: own(name) if name in sessions else remote.streamed(name)


def sharing_of(
    journal: ChosenJournal,
    subscriptions: Subscriptions,
    state: State,
    contain: Containment,
    clips: Path,
    check: Callable[[Path], None],
) -> Sharing | None:
    """Return None for a file: it belongs to this host alone. `clips` is the folder of this host's clips."""
    if isinstance(journal, Journal):
        return None
    shared = SharedClips(clips, check, journal.clips, journal.asking)
    return Sharing(journal, subscriptions, state, contain, shared)
