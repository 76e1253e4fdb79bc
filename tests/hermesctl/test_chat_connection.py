"""The chat's connection against a scripted supervisor that goes away: what is sent again, and what is not."""

import contextlib
import fcntl
import select
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermesctl.chat import connection as chat_connection
from hermesctl.chat.connection import (
    RECENT_EVENTS,
    Answered,
    Connected,
    Connection,
    ConnectionEvent,
    Disconnected,
    Received,
)
from ipc.messages import Accepted, Event, Interrupt, Queue, Refused, Request, Submit, Subscribe, Subscribed
from ipc.places import find_places
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.test_send import Items
from tests.waiting import until

HELLO = Submit("demo", "hello", "key-1")


class Held:
    """A connection whose thread runs, and all that has happened on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.happened: list[ConnectionEvent] = []

    def wait_for(self, kind: type, count: int = 1) -> ConnectionEvent:
        def found() -> list[ConnectionEvent]:
            self.happened += self.connection.arrived()
            return [each for each in self.happened if isinstance(each, kind)][count - 1 : count]

        return until(found)[0]


@contextlib.contextmanager
def running(home: Path) -> Iterator[Held]:
    connection = Connection(find_places(str(home)), "demo", lambda: None)
    connection.connect()
    thread = threading.Thread(target=connection.run, daemon=True)
    thread.start()
    try:
        yield Held(connection)
    finally:
        connection.close()
        thread.join(20)
        assert not thread.is_alive()
        connection.release()


def answering(*kinds: type, head: int = 0) -> Callable[[Peer, Request], Items]:
    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Subscribe):
            return [Subscribed(head)]
        return [Accepted("m_1", 1)] if isinstance(request, kinds) else []

    return reply


def test_a_message_whose_answer_was_lost_is_sent_again_under_its_key(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with opened(tmp_path, answering()) as first:
            held = stack.enter_context(running(tmp_path))
            held.connection.post(7, HELLO)
            first.wait_for(Submit)
        held.wait_for(Disconnected)
        held.connection.post(8, Submit("demo", "typed while away", "key-2"))
        with opened(tmp_path, answering(Submit)) as second:
            held.wait_for(Answered, 2)
            assert [request.key for request in second.requests(Submit)] == ["key-1", "key-2"]
            held.wait_for(Connected, 2)
        answers = [each for each in held.happened if isinstance(each, Answered)]
        assert answers == [Answered(7, Accepted("m_1", 1)), Answered(8, Accepted("m_1", 1))]


def test_what_has_no_key_is_never_sent_twice_and_is_answered_here(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with opened(tmp_path, answering()) as first:
            held = stack.enter_context(running(tmp_path))
            held.connection.post(1, Interrupt("demo", "me"))
            first.wait_for(Interrupt)
        answered = held.wait_for(Answered)
        assert isinstance(answered, Answered)
        assert isinstance(answered.answer, Refused)
        held.wait_for(Disconnected)
        held.connection.post(2, Queue("demo", "clear"))
        held.wait_for(Answered, 2)
        with opened(tmp_path, answering()) as second:
            held.wait_for(Connected, 2)
            held.connection.post(3, HELLO)
            second.wait_for(Submit)
            assert second.requests(Interrupt) == second.requests(Queue) == []


def test_a_session_is_read_from_the_recent_past_and_then_from_where_it_was_left(tmp_path: Path) -> None:
    story = Story(seq=1000)
    with contextlib.ExitStack() as stack:
        with opened(tmp_path, answering(head=1000)) as first:
            held = stack.enter_context(running(tmp_path))
            assert first.wait_for(Subscribe, 2) == Subscribe("demo", 1000 - RECENT_EVENTS)
            first.say(Subscribe, story.event("session.released"))
            told = held.wait_for(Received)
            assert isinstance(told, Received)
            assert isinstance(told.item, Event)
        held.wait_for(Disconnected)
        with opened(tmp_path, answering(head=1001)) as second:
            assert second.wait_for(Subscribe) == Subscribe("demo", 1001)


def test_another_session_takes_unanswered_messages_along(tmp_path: Path) -> None:
    with opened(tmp_path, answering()) as peer, running(tmp_path) as held:
        held.connection.post(1, HELLO)
        peer.wait_for(Submit)
        held.connection.subscribe("other", 5)
        assert held.wait_for(Connected, 2) == Connected("other")
        assert peer.wait_for(Subscribe, 3) == Subscribe("other", 5)
        assert peer.wait_for(Submit, 2) == HELLO


def test_items_that_are_not_drawn_yet_are_kept_and_do_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_connection, "_ARRIVED_MAX", 1)
    monkeypatch.setattr(chat_connection, "_RETRY_SECONDS", 0.001)
    story = Story()
    events = [story.event("session.released") for _ in range(50)]
    with opened(tmp_path, answering()) as peer, running(tmp_path) as held:
        peer.wait_for(Subscribe, 2)
        peer.say(Subscribe, *events)
        held.wait_for(Received, 50)
        assert [each.item for each in held.happened if isinstance(each, Received)] == events
        # Nobody reads these any more.
        peer.say(Subscribe, *(story.event("session.released") for _ in range(3)))
        until(held.connection._arrived.full)


def test_orders_wake_the_thread_and_are_used_up_by_it_and_a_full_pipe_is_no_fault(tmp_path: Path) -> None:
    connection = Connection(find_places(str(tmp_path)), "demo", lambda: None)
    fcntl.fcntl(connection._alarm, fcntl.F_SETPIPE_SZ, 4096)
    for ticket in range(5000):
        connection.post(ticket, HELLO)
    for _ in range(4096 // 512):
        connection._wait_a_moment()
    assert not select.select([connection._wake], [], [], 0)[0]
    connection.release()
