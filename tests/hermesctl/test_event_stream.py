"""The stream of events by itself: where it goes on after a loss, and what it leaves open."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermesctl import event_stream
from hermesctl.errors import CommandError, NotRunning
from hermesctl.event_stream import EventStream
from ipc.messages import Answer, Cut, Event, Refused, Request, Show, Subscribe, Subscribed, Table, Unsubscribe
from tests.hermesctl.peer import Peer, Story, opened

# Nothing here takes a second.
_PATIENCE_SECONDS = 20.0


@contextmanager
def supervisor(home: Path, demo: int, *events: Event) -> Iterator[Peer]:
    """A life of the supervisor in which the session `demo` has so many events, of which these are sent."""

    def reply(peer: Peer, request: Request) -> list[Answer]:
        match request:
            case Show():
                return [Table(({"session": "demo", "seq": demo},))]
            case Subscribe(session="demo", after=int(after)):
                return [Subscribed(demo), *(event for event in events if event.seq > after)]
        return [Subscribed(demo)]

    with opened(home, reply) as peer:
        yield peer


def received(stream: EventStream) -> Event:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not isinstance(item := stream.next(), Event):
        assert time.monotonic() < deadline, "no event arrived"
    return item


def test_a_stream_that_could_not_begin_leaves_no_connection_open(tmp_path: Path) -> None:
    """A chat tries again while the supervisor is away. What is left open is reported when it is collected."""
    for refused in (Subscribe, Show):

        def reply(peer: Peer, request: Request, refused: type = refused) -> list[Answer]:
            no = Refused("it is going", "try again")
            return [no if isinstance(request, refused) else Table(())]

        with opened(tmp_path, reply) as peer, pytest.raises(CommandError, match="it is going"):
            EventStream(peer.places, None if refused is Show else "demo", None)
        gc.collect()


def test_a_stream_of_all_sessions_does_not_go_back_to_events_before_its_beginning(tmp_path: Path) -> None:
    missed = Story(seq=5).event("a.missed")
    with supervisor(tmp_path, 5) as peer:
        stream = EventStream(peer.places, None, None)
        assert stream.is_known
    with supervisor(tmp_path, 6, missed) as peer:
        stream.reconnect(_PATIENCE_SECONDS)
        assert peer.requests(Subscribe) == [Subscribe(None), Subscribe("demo", 5)]
        assert received(stream) == missed
    stream.close()


def test_a_stream_of_all_sessions_loses_nothing_after_a_second_restart(tmp_path: Path) -> None:
    """In each life a session that was behind has a subscription of its own; the numbers begin anew."""
    story = Story(seq=5)
    missed, live = story.event("a.missed"), story.event("a.live")
    with supervisor(tmp_path, 5) as peer:
        stream = EventStream(peer.places, None, None)
    with supervisor(tmp_path, 6, missed):
        stream.reconnect(_PATIENCE_SECONDS)
        assert received(stream) == missed
    with supervisor(tmp_path, 6) as peer:
        stream.reconnect(_PATIENCE_SECONDS)
        peer.say(Subscribe, live)
        assert received(stream) == live
    stream.close()


def test_a_session_without_events_is_not_known(tmp_path: Path) -> None:
    with supervisor(tmp_path, 0) as peer:
        stream = EventStream(peer.places, "demo", None)
        assert not stream.is_known
        stream.close()


def test_reconnecting_leaves_no_descriptor_open(tmp_path: Path) -> None:
    with supervisor(tmp_path, 0) as peer:
        stream = EventStream(peer.places, "demo", 0)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            stream.reconnect(_PATIENCE_SECONDS)
        assert len(os.listdir("/proc/self/fd")) <= before
        stream.close()


def test_a_stream_that_is_silent_for_long_or_read_again_leaves_no_subscription_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervisor(tmp_path, 5, *(Event(seq, "demo", "x", 1.0, {}) for seq in (4, 5))) as peer:
        stream = EventStream(peer.places, "demo", None)
        monkeypatch.setattr(event_stream, "_QUIET_SECONDS", -1.0)
        assert stream.next() is None
        monkeypatch.undo()
        assert peer.requests(Subscribe) == [Subscribe("demo"), Subscribe("demo", 5)]
        stream.rewind(3)
        assert [received(stream).seq for _ in range(2)] == [4, 5]
        assert peer.requests(Subscribe)[2:] == [Subscribe("demo", 3)]
        assert peer.requests(Unsubscribe) == [Unsubscribe(1), Unsubscribe(3)]
        stream.close()


def test_the_next_supervisor_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with supervisor(tmp_path, 5) as peer:
        stream = EventStream(peer.places, "demo", None)
    with pytest.raises(NotRunning):
        stream.reconnect(0.0)
    stream.close()


class Clock:
    """The time that a stream sees."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_stream_subscribes_again_once_for_each_long_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Subscribed(5)] if isinstance(request, Subscribe) else []

    clock = Clock()
    monkeypatch.setattr(event_stream, "time", clock)
    with opened(tmp_path, reply) as peer:
        stream = EventStream(peer.places, "demo", None)
        peer.say(Subscribe, Story(seq=5).event("a.live"))
        clock.now += event_stream._QUIET_SECONDS
        assert received(stream).type == "a.live"
        monkeypatch.setattr(event_stream, "SILENCE_SECONDS", 0.01)
        clock.now += 1.0
        for count in (1, 2):
            for _ in range(3):
                assert stream.next() is None
            assert len(peer.requests(Subscribe)) == count
            clock.now += 2 * event_stream._QUIET_SECONDS
        stream.close()


def test_a_session_whose_own_subscription_was_cut_is_read_on_by_another_one(tmp_path: Path) -> None:
    story = Story(seq=5)
    missed, live = story.event("a.missed"), story.event("a.live")
    with supervisor(tmp_path, 5) as peer:
        stream = EventStream(peer.places, None, None)
    with supervisor(tmp_path, 6, missed) as peer:
        stream.reconnect(_PATIENCE_SECONDS)
        assert received(stream) == missed
        peer.say(Subscribe, Cut("too slow"))
        assert stream.next() is None
        assert peer.requests(Subscribe) == [Subscribe(None), Subscribe("demo", 5), Subscribe("demo", 6)]
        peer.say(Subscribe, live)
        assert received(stream) == live
    stream.close()


def test_a_cursor_goes_on_behind_what_it_has_acknowledged(tmp_path: Path) -> None:
    story = Story(seq=5)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Subscribed(7, after=5), story.event("a.sixth"), story.event("a.seventh")]

    with opened(tmp_path, reply) as peer:
        stream = EventStream(peer.places, "demo", None, cursor="bridge")
        assert [received(stream).seq for _ in range(2)] == [6, 7]
        stream.close()
