"""The place of a reader: no event twice, none of a subscription that has ended."""

from client.resuming import Resuming
from ipc.messages import Delta, Event, Noted


def event(seq: int, session: str = "demo") -> Event:
    return Event(seq, session, "a.thing", 0.0, {})


def test_an_event_counts_once() -> None:
    resuming = Resuming()
    resuming.subscribed(7)
    assert resuming.take(7, event(1))
    assert not resuming.take(7, event(1))
    assert resuming.take(7, event(2))
    assert resuming.place("demo") == 2


def test_frames_of_an_ended_subscription_do_not_count() -> None:
    resuming = Resuming({"demo": 4})
    resuming.subscribed(7)
    resuming.subscribed(8)
    assert not resuming.take(7, event(5))
    assert not resuming.take(7, Delta("demo", "demo/1", 1, 0, "x"))
    assert not resuming.take(7, Noted("demo/1", 1, "x"))
    assert resuming.take(8, Delta("demo", "demo/1", 1, 0, "x"))
    assert resuming.take(8, Noted("demo/1", 1, "x"))
    assert resuming.place("demo") == 4


def test_a_session_with_its_own_subscription_is_read_through_that_one_alone() -> None:
    resuming = Resuming()
    resuming.subscribed(7)
    resuming.subscribed(8, "demo")
    assert not resuming.take(7, event(1))
    assert resuming.take(8, event(1))
    assert resuming.take(7, event(1, "other"))
    assert resuming.numbers() == (7, 8)
    assert resuming.carried_by(7) == (True, [])
    assert resuming.carried_by(8) == (False, ["demo"])


def test_a_new_main_subscription_replaces_all() -> None:
    resuming = Resuming()
    resuming.subscribed(7)
    resuming.subscribed(8, "demo")
    resuming.subscribed(9)
    assert resuming.numbers() == (9,)
    assert resuming.take(9, event(1))


def test_sessions_are_behind_when_they_have_more_than_was_read() -> None:
    resuming = Resuming({"demo": 4, "level": 2})
    assert resuming.behind({"demo": 6, "level": 2, "unread": 1}) == ["demo", "unread"]


def test_a_reader_may_go_back() -> None:
    resuming = Resuming({"demo": 4})
    resuming.subscribed(1)
    resuming.move("demo", 2)
    assert resuming.take(1, event(3))


def test_notes_and_deltas_of_a_session_come_through_its_own_subscription() -> None:
    resuming = Resuming()
    resuming.subscribed(7)
    resuming.subscribed(8, "demo")
    for item in (Noted("demo/1", 1, "x"), Delta("demo", "demo/1", 1, 0, "x")):
        assert not resuming.take(7, item)
        assert resuming.take(8, item)
