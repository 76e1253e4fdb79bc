"""The upkeep of feeds: when they end, subscribe again, or read pages again; the supervisor is played."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway import session_feed
from gateway.errors import HttpError, Unavailable
from gateway.feed_item import FeedItem
from gateway.journal_pages import JournalPages
from gateway.session_feed import SessionFeed, SessionFeeds
from gateway.supervisor_client import SupervisorClient
from ipc.codec import Decoder
from ipc.messages import Answer, Cut, Event, Refused, Request, Subscribe, Subscribed, Unsubscribe
from ipc.server import Server
from ipc.zmtp import Sent
from tests.waiting import soon

HEAD = 3


class Supervisor:
    """A control socket that answers subscriptions: the session has three events."""

    def __init__(self, path: str) -> None:
        self._decoder: Decoder[Request] = Decoder(Request)
        self._server = Server(path, self._receive)
        self._peer = b""
        self.requests: list[tuple[int, Request]] = []
        self.refuses = False
        self.head = HEAD

    def _receive(self, parts: list[bytes]) -> None:
        self._peer, number, body = parts
        request = self._decoder.decode(body)
        self.requests.append((int.from_bytes(number), request))
        if isinstance(request, Subscribe):
            begun = Subscribed(self.head, self.head if request.after is None else request.after)
            self.send(int.from_bytes(number), Refused("it has fewer", "look") if self.refuses else begun)

    def send(self, number: int, answer: Answer) -> None:
        self._server.answer(self._peer, number.to_bytes(8), answer)

    def of(self, kind: type) -> list[tuple[int, Any]]:
        return [each for each in self.requests if isinstance(each[1], kind)]

    def close(self) -> None:
        self._server.close()


Scene = Callable[[Supervisor, SessionFeeds], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    async def run() -> None:
        supervisor = Supervisor(str(folder / "s.sock"))
        client = SupervisorClient(str(folder / "s.sock"))
        feeds = SessionFeeds(client, JournalPages(client))
        try:
            await soon(lambda: client.is_up)
            await scene(supervisor, feeds)
        finally:
            client.close()
            supervisor.close()

    asyncio.run(run())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look finds a feed idle, and quiet."""
    for name in ("_IDLE_SECONDS", "_QUIET_SECONDS"):
        monkeypatch.setattr(session_feed, name, -1.0)


def feed_of(feeds: SessionFeeds) -> SessionFeed:
    [feed] = feeds._feeds.values()
    return feed


@pytest.mark.usefixtures("impatient")
def test_a_feed_without_readers_ends_and_a_quiet_one_subscribes_again_where_it_was(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        reader = await feeds.open("demo", None, lambda: None)
        [(first, _)] = supervisor.of(Subscribe)
        feeds._look()
        await soon(lambda: len(supervisor.of(Subscribe)) == 2)
        [(_, ended)] = supervisor.of(Unsubscribe)
        assert ended == Unsubscribe(first)
        second, again = supervisor.of(Subscribe)[1]
        assert again == Subscribe("demo", HEAD)
        reader.close()
        feeds._look()
        await soon(lambda: len(supervisor.of(Unsubscribe)) == 2)
        assert supervisor.of(Unsubscribe)[1][1] == Unsubscribe(second)
        assert not feeds._feeds

    play(tmp_path, scene)


def test_a_feed_that_is_cut_subscribes_again_after_a_pause_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        monkeypatch.setattr(session_feed, "_RESUBSCRIBE_SECONDS", 0.2)
        await feeds.open("demo", None, lambda: None)
        feed = feed_of(feeds)
        [(number, _)] = supervisor.of(Subscribe)
        began = feed._subscribed_at
        for _ in range(2):
            supervisor.send(number, Cut("it read too slowly"))
        await soon(lambda: len(supervisor.of(Subscribe)) == 2)
        assert feed._subscribed_at - began >= 0.2
        # The second cut was of the first subscription: when this event is read, it has had its time.
        latest, _ = supervisor.of(Subscribe)[-1]
        supervisor.send(latest, Event(HEAD + 1, "demo", "tool.started", 1.0, {}))
        await soon(lambda: feed.head == HEAD + 1)
        assert len(supervisor.of(Subscribe)) == 2

    play(tmp_path, scene)


class Full:
    """A socket to a supervisor that reads too slowly, in the place of the client's own."""

    def __init__(self, client: SupervisorClient) -> None:
        self._client = client
        self._own = client._socket
        self.refused = 0
        client._socket = self  # type: ignore[assignment]

    def send(self, parts: list[bytes]) -> Sent:
        self.refused += 1
        return Sent.FULL

    def take_again(self) -> None:
        self._client._socket = self._own


def test_a_feed_that_meets_a_full_socket_subscribes_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        monkeypatch.setattr(session_feed, "_RESUBSCRIBE_SECONDS", 0.02)
        await feeds.open("demo", None, lambda: None)
        [(first, _)] = supervisor.of(Subscribe)
        full = Full(feeds._supervisor)
        supervisor.send(first, Cut("it read too slowly"))
        # The end of the first subscription, and two attempts at another one.
        await soon(lambda: full.refused >= 3)
        full.take_again()
        await soon(lambda: len(supervisor.of(Subscribe)) == 2)
        assert supervisor.of(Subscribe)[1][1] == Subscribe("demo", HEAD)
        # The supervisor still tells the first one what happens.
        assert supervisor.of(Unsubscribe) == []
        for _ in range(2):
            supervisor.send(first, Event(HEAD + 1, "demo", "tool.started", 1.0, {}))
        await soon(lambda: supervisor.of(Unsubscribe))
        feed_of(feeds).subscribe()
        await soon(lambda: len(supervisor.of(Subscribe)) == 3)
        ended = [request.subscription for _, request in supervisor.of(Unsubscribe)]
        assert ended == [first, supervisor.of(Subscribe)[1][0]]

    play(tmp_path, scene)


def test_a_feed_that_has_ended_does_not_subscribe_again(
    tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        monkeypatch.setattr(session_feed, "_RESUBSCRIBE_SECONDS", 0.02)
        reader = await feeds.open("demo", None, lambda: None)
        [(first, _)] = supervisor.of(Subscribe)
        feed = feed_of(feeds)
        supervisor.send(first, Cut("it read too slowly"))
        await soon(lambda: feed._again_timer is not None)
        timer = feed._again_timer
        assert timer is not None
        reader.close()
        feeds._look()
        assert not feeds._feeds
        assert timer.cancelled()

    play(tmp_path, scene)


def test_an_older_journal_ends_all_readers_and_the_next_one_begins_anew(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        woken: list[bool] = []
        reader = await feeds.open("demo", None, lambda: woken.append(True))
        feed = feed_of(feeds)
        supervisor.refuses = True
        feed.subscribe()
        await soon(lambda: woken)
        assert reader.cut_reason == "it has fewer"
        assert reader.take() is None
        supervisor.refuses = False
        await feeds.open("demo", None, lambda: None)
        assert feed_of(feeds) is not feed

    play(tmp_path, scene)


def test_a_reader_that_left_takes_no_other_reader_with_it(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        reader = await feeds.open("demo", None, lambda: None)
        feeds._remove(feed_of(feeds))
        assert feed_of(feeds) is reader.feed
        assert not supervisor.of(Unsubscribe)

    play(tmp_path, scene)


class HeldPages:
    """Pages of the journal, answered when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, asyncio.Future[tuple[FeedItem, ...]]]] = []
        self.forgotten = 0

    def page(self, session: str, after: int) -> "asyncio.Future[tuple[FeedItem, ...]]":
        self.asked.append((after, asyncio.get_running_loop().create_future()))
        return self.asked[-1][1]

    def forget(self) -> None:
        self.forgotten += 1


def item(seq: int) -> FeedItem:
    return FeedItem(Event(seq, "demo", "tool.started", 1.0, {}), 100)


def test_pages_of_an_earlier_supervisor_are_forgotten(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        pages = HeldPages()
        feeds._pages = pages
        await feeds.open("demo", None, lambda: None)
        feeds._connected()
        assert pages.forgotten == 1
        await soon(lambda: len(supervisor.of(Subscribe)) == 2)

    play(tmp_path, scene)


def test_a_reader_asks_again_for_a_page_that_it_did_not_get_and_joins_behind_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_feed, "_PAGE_AGAIN_SECONDS", 0.001)

    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        pages = HeldPages()
        feeds._pages = pages
        taken: list[int] = []

        def wake() -> None:
            while (batch := reader.take()) is not None:
                taken.extend(each.seq for each in batch.items)

        reader = await feeds.open("demo", 0, wake)
        wake()
        pages.asked[0][1].set_exception(Unavailable())
        await soon(lambda: len(pages.asked) == 2)
        pages.asked[1][1].set_result((item(1), item(2)))
        await soon(lambda: len(pages.asked) == 3)
        assert [after for after, _ in pages.asked] == [0, 0, 2]
        # The rest was pruned: there is nothing to wait for.
        pages.asked[2][1].set_result(())
        await soon(lambda: not reader.is_behind)
        [(number, _)] = supervisor.of(Subscribe)
        supervisor.send(number, Event(HEAD + 1, "demo", "tool.started", 1.0, {}))
        await soon(lambda: taken == [1, 2, HEAD + 1])

    play(tmp_path, scene)


def test_a_session_that_could_not_be_had_leaves_nothing_and_is_asked_for_again(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        supervisor.refuses = True
        with pytest.raises(HttpError, match="it has fewer"):
            await feeds.open("demo", None, lambda: None)
        assert not feeds._feeds
        supervisor.refuses, supervisor.head = False, 0
        with pytest.raises(HttpError, match="there is no session demo"):
            await feeds.open("demo", None, lambda: None)
        assert not feeds._feeds
        await soon(lambda: len(supervisor.of(Unsubscribe)) == 2)
        supervisor.head = HEAD
        assert (await feeds.open("demo", None, lambda: None)).seq == HEAD

    play(tmp_path, scene)


def test_a_client_that_goes_while_a_feed_begins_takes_no_other_with_it(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        going, staying = (asyncio.create_task(feeds.open("demo", None, lambda: None)) for _ in range(2))
        await asyncio.sleep(0)
        going.cancel()
        assert (await staying).seq == HEAD
        assert going.cancelled()
        assert len(supervisor.of(Subscribe)) == 1

    play(tmp_path, scene)


def test_a_feed_whose_readers_were_ended_has_no_subscription(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        for _ in range(2):
            reader = await feeds.open("demo", None, lambda: None)
            # One that closes itself when it is cut, as streams do.
            reader.wake = reader.close
        feed_of(feeds).fail("its journal is another one")
        [(number, _)] = supervisor.of(Subscribe)
        await soon(lambda: supervisor.of(Unsubscribe))
        assert supervisor.of(Unsubscribe)[0][1] == Unsubscribe(number)
        assert not feed_of(feeds).readers

    play(tmp_path, scene)


def test_a_feed_stays_for_a_while_after_its_last_reader_and_is_quiet_when_nothing_comes(
    tmp_path: Path,
) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        reader = await feeds.open("demo", None, lambda: None)
        feed = feed_of(feeds)
        feed.idle_since = feed.taken_at = 0.0
        supervisor.send(feed._number, Event(HEAD + 1, "demo", "tool.started", 1.0, {}))
        await soon(lambda: feed.head == HEAD + 1)
        number = feed._number
        feeds._look()
        assert feed._number == number, "it is not quiet"
        reader.close()
        feeds._look()
        assert feed_of(feeds) is feed

    play(tmp_path, scene)


def test_a_reader_whose_page_is_refused_is_cut_with_the_reason(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        pages = HeldPages()
        feeds._pages = pages
        reader = await feeds.open("demo", 0, lambda: None)
        assert reader.take() is None
        pages.asked[0][1].set_exception(HttpError(400, "it has fewer", "look"))
        assert reader.take() is None
        assert reader.cut_reason == "it has fewer"

    play(tmp_path, scene)
