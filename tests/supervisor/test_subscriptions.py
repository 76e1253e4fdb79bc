"""Subscriptions over a real socket and journal: each event once and in order, and slow readers are ended."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ipc.channel import MESSAGE_BOUNDS
from ipc.codec import FRAME_BYTES_MAX, Decoder, encode
from ipc.messages import Answer, Cut, Delta, Event, Noted, Subscribed
from ipc.server import UNSENT_BYTES_MAX, Server
from ipc.zmtp import OPENING, Connection
from supervisor.clients import subscriptions
from supervisor.clients.subscriptions import Client, Subscriptions
from supervisor.containment import Containment
from supervisor.journal.asking import Asking
from tests.journal.conftest import open_in
from tests.journal.lives import accepted
from tests.waiting import soon

REQUEST = b"\0" * 7 + b"\7"
# More than the kernel and the server keep for one peer.
FLOOD = "x" * (UNSENT_BYTES_MAX // 4)


class Reader:
    """A client that reads when the test says so."""

    def __init__(self, path: str, name: bytes) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._socket.setblocking(False)
        properties = b"\x0bSocket-Type\0\0\0\x06DEALER" + b"\x08Identity\0\0\0" + bytes([len(name)]) + name
        ready = b"\x05READY" + properties
        self._socket.send(OPENING[:64] + b"\x04" + bytes([len(ready)]) + ready)
        # The server opens with the same bytes for every peer; messages follow.
        self._opening = len(OPENING)
        self._connection = Connection.resumed(MESSAGE_BOUNDS, b"")
        self._decoder: Decoder[Answer] = Decoder(Answer)
        self.seen: list[tuple[bytes, Answer]] = []

    def read(self) -> list[Answer]:
        with contextlib.suppress(BlockingIOError):
            while self._opening:
                self._opening -= len(self._socket.recv(self._opening))
            while data := self._socket.recv(65536):
                self._connection.receive(data)
                while (parts := self._connection.next()) is not None:
                    self.seen.append((parts[0], self._decoder.decode(parts[1])))
        return [answer for _, answer in self.seen]

    def seqs(self) -> list[int]:
        return [answer.seq for answer in self.read() if isinstance(answer, Event)]

    def close(self) -> None:
        self._socket.close()


class Stage:
    """A journal, a server and one connected reader."""

    def __init__(self, folder: Path, asking: Asking | None = None) -> None:
        self.journal = open_in(folder)
        self.contained: list[str] = []
        self.spoken: Delta | None = None
        contain = Containment(self, lambda: 0.0, self.contained.append)
        self.subscriptions = Subscriptions(self.journal.read, contain, asking)
        self.path = str(folder / "s.sock")
        self.server = Server(
            self.path, lambda parts: None, left=lambda name: self.subscriptions.forget(self.client(name))
        )
        self.subscriptions.open(lambda session: self.spoken)
        self._readers: list[Reader] = []

    def client(self, name: bytes = b"one") -> Client:
        return Client(self.server, name)

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""

    async def reader(self, name: bytes = b"one") -> Reader:
        self._readers.append(Reader(self.path, name))
        await soon(lambda: name in self.server._known)
        return self._readers[-1]

    def happens(self, *numbers: int, session: str = "s", text: str = "hello") -> None:
        """Messages become durable and are published, as after a commit of the engine."""
        records = [accepted(number, session, text) for number in numbers]
        self.journal.commit_now(records)
        self.subscriptions.publish(records)

    @property
    def is_empty(self) -> bool:
        made = self.subscriptions
        return not (made._subscribers or made._by_session or made._behind)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self.server.close()
        self.journal.close()


def play(folder: Path, act: Callable[[Stage], Awaitable[None]], asking: Asking | None = None) -> None:
    async def run() -> None:
        stage = Stage(folder, asking)
        try:
            await act(stage)
        finally:
            stage.close()

    asyncio.run(run())


def test_events_come_from_the_asked_seq_on_each_once(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1, 2, 3, 4)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 2)
        await soon(lambda: reader.seqs() == [3, 4])
        assert reader.seen[0] == (REQUEST, Subscribed(4, 2))
        first = reader.seen[1][1]
        assert isinstance(first, Event)
        assert (first.session, first.type, first.at, first.fields["text"]) == (
            "s",
            "message.accepted",
            3.0,
            "hello",
        )
        stage.happens(5, 6)
        stage.happens(1, session="other")
        await soon(lambda: reader.seqs() == [3, 4, 5, 6])
        assert {number for number, _ in reader.seen} == {REQUEST}

    play(tmp_path, act)


@pytest.mark.parametrize("is_level", [False, True], ids=["behind", "level"])
def test_an_event_read_from_the_journal_is_not_published_to_the_same_reader(
    tmp_path: Path, is_level: bool
) -> None:
    """It subscribes between the commit and the publication of the same event."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.journal.commit_now([accepted(2)])
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        if is_level:
            await soon(lambda: reader.seqs() == [1, 2])
        stage.subscriptions.publish([accepted(2)])
        stage.happens(3)
        await soon(lambda: 3 in reader.seqs())
        assert reader.seqs() == [1, 2, 3]

    play(tmp_path, act)


def test_without_a_place_it_begins_with_what_happens_next(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1, 2)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        stage.happens(3)
        await soon(lambda: reader.seqs() == [3])
        assert reader.seen[0][1] == Subscribed(2, 2)

    play(tmp_path, act)


def test_a_long_history_comes_whole_and_live_events_after_it(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.journal.commit_now([accepted(number) for number in range(1, 601)])
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        stage.happens(601)
        await soon(lambda: len(reader.seqs()) == 601)
        assert reader.seqs() == list(range(1, 602))
        assert not stage.subscriptions._behind

    play(tmp_path, act)


def test_a_reader_that_falls_behind_misses_no_event(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        for number in range(1, 13):
            stage.happens(number, text=FLOOD)
        await soon(lambda: stage.subscriptions._behind)
        # Not durable, and not for one that has not seen what came before.
        stage.subscriptions.delta("s", encode(Noted("s/1", 1, "lost")))
        stage.happens(13)
        await soon(lambda: len(reader.seqs()) == 13)
        assert reader.seqs() == list(range(1, 14))
        await soon(lambda: not stage.subscriptions._behind)
        assert not any(isinstance(answer, Noted) for answer in reader.read())
        stage.happens(14)
        await soon(lambda: reader.seqs()[-1] == 14)

    play(tmp_path, act)


def test_b6_a_reader_without_progress_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "_PATIENCE_SECONDS", 0.1)

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        for number in range(1, 13):
            stage.happens(number, text=FLOOD)
        await soon(lambda: stage.is_empty)
        stage.happens(13)
        # What was sent before is still read, without a gap; and the server keeps nothing for it.
        seqs = reader.seqs()
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) < 12

    play(tmp_path, act)


def test_progress_gives_a_slow_reader_its_time_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        for number in range(1, 25):
            stage.happens(number, text=FLOOD)
        (subscriber,) = await soon(lambda: stage.subscriptions._behind)
        await soon(lambda: subscriber.stuck_seconds > 0.05)
        await soon(lambda: len(reader.seqs()) > 6 and subscriber.stuck_seconds == 0)
        await soon(lambda: len(reader.seqs()) == 24)

    play(tmp_path, act)


def test_b6_a_reader_of_all_sessions_that_falls_behind_is_cut_at_once(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, None, None)
        stage.happens(1, session="a")
        stage.happens(1, session="b")
        await soon(lambda: reader.seqs() == [1, 1])
        assert reader.seen[0] == (REQUEST, Subscribed(0, 0))
        for number in range(2, 13):
            stage.happens(number, session="a", text=FLOOD)
        assert stage.is_empty

    play(tmp_path, act)


def test_the_cut_is_told_with_its_reason(tmp_path: Path) -> None:
    """An event that cannot be encoded: its subscription ends, or it would have a gap."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        other = await stage.reader(b"other")
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        stage.subscriptions.subscribe(stage.client(b"other"), REQUEST, "t", None)
        stage.subscriptions.publish([accepted(1, text="\ud800")])
        cut = await soon(lambda: [each for each in reader.read() if isinstance(each, Cut)])
        assert cut == [Cut("Event cannot be sent: UnicodeEncodeError")]
        assert stage.contained == ["follower"]
        stage.happens(1, session="t")
        await soon(lambda: other.seqs() == [1])
        assert not any(isinstance(each, Cut) for each in other.read())

    play(tmp_path, act)


def test_deltas_reach_the_readers_of_their_session_and_of_all(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        readers = [await stage.reader(name) for name in (b"one", b"two", b"all")]
        for name, session in ((b"one", "s"), (b"two", "t"), (b"all", None)):
            stage.subscriptions.subscribe(stage.client(name), REQUEST, session, None)
        note = Noted("s/1", 1, "words")
        stage.subscriptions.delta("s", encode(note))
        stage.happens(1)
        stage.happens(1, session="t")
        for reader in readers:
            await soon(lambda reader=reader: reader.seqs())  # type: ignore[misc]
        await soon(lambda: len(readers[2].seqs()) == 2)
        assert [note in reader.read() for reader in readers] == [True, False, True]

    play(tmp_path, act)


def test_streamed_text_is_told_to_one_that_comes_later(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.spoken = Delta("s", "s/1", 1, 0, "so far")
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: len(reader.read()) == 3)
        assert [type(each) for each in reader.read()] == [Subscribed, Event, Delta]

    play(tmp_path, act)


def test_a_client_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        other = await stage.reader(b"other")
        for number in range(3):
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", None)
        stage.subscriptions.subscribe(stage.client(b"other"), REQUEST, "s", None)
        reader.close()
        await soon(lambda: list(stage.subscriptions._subscribers) == [stage.client(b"other")])
        stage.happens(1)
        await soon(lambda: other.seqs() == [1])
        stage.subscriptions.unsubscribe(stage.client(b"other"), b"never asked")
        stage.subscriptions.unsubscribe(stage.client(b"other"), REQUEST)
        assert stage.is_empty
        stage.happens(2)
        stage.subscriptions.subscribe(stage.client(b"nobody"), REQUEST, "s", 0)
        assert stage.is_empty
        stage.subscriptions.subscribe(stage.client(b"nobody"), REQUEST, None, None)
        stage.subscriptions.delta("s", b"x")
        assert stage.is_empty

    play(tmp_path, act)


def test_the_same_request_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        stage.happens(1)
        stage.happens(2)
        await soon(lambda: 2 in reader.seqs())
        assert reader.seqs() == [1, 2]

    play(tmp_path, act)


def test_the_subscriptions_of_one_client_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "FOLLOWS_MAX", 2)

    async def act(stage: Stage) -> None:
        await stage.reader()
        assert stage.subscriptions.has_room(stage.client())
        stage.subscriptions.subscribe(stage.client(), b"1", "s", None)
        assert stage.subscriptions.has_room(stage.client())
        stage.subscriptions.subscribe(stage.client(), b"2", "s", None)
        assert not stage.subscriptions.has_room(stage.client())
        assert stage.subscriptions.has_room(stage.client(b"other"))

    play(tmp_path, act)


def test_a_single_event_that_was_not_published_leaves_no_gap(tmp_path: Path) -> None:
    """Another host has committed it, and the notice of that is still on its way."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.seqs() == [1])
        stage.journal.commit_now([accepted(2)])
        stage.happens(3)
        await soon(lambda: 3 in reader.seqs())
        assert reader.seqs() == [1, 2, 3]

    play(tmp_path, act)


def test_an_event_that_is_too_long_for_a_frame_is_cut(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        stage.happens(1, text="x" * (FRAME_BYTES_MAX + 1))
        (event,) = await soon(lambda: [each for each in reader.read() if isinstance(each, Event)])
        assert len(event.fields["text"]) < FRAME_BYTES_MAX

    play(tmp_path, act)
