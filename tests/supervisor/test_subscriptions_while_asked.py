"""Subscriptions while a journal is asked or fails: each event once, and nothing to one that left."""

from itertools import count
from pathlib import Path

import pytest

from ipc.messages import Cut, Event, Refused, Subscribed
from supervisor.clients import subscriptions
from supervisor.journal.errors import JournalEnded, JournalUnreachable
from tests.journal.lives import accepted
from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_subscriptions import FLOOD, REQUEST, Stage, play
from tests.waiting import soon

AWAY = JournalUnreachable("the server does not answer", "look at it")


def test_the_same_request_again_before_the_first_is_answered_is_begun_once(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        for _ in range(2):
            stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        asking.answer()
        await soon(lambda: asking.is_asked)
        asking.answer()
        assert not asking.is_asked
        stage.happens(2)
        await soon(lambda: 2 in reader.seqs())
        assert [type(answer) for answer in reader.read()] == [Subscribed, Event, Event]

    play(tmp_path, act, asking)


def test_a_failure_that_the_first_request_meets_does_not_end_the_second_under_its_number(
    tmp_path: Path,
) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        for _ in range(2):
            stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        asking.fail(AWAY)
        asking.answer()
        stage.happens(2)
        await soon(lambda: 2 in reader.seqs())
        assert [type(answer) for answer in reader.read()] == [Subscribed, Event]

    play(tmp_path, act, asking)


@pytest.mark.parametrize("has_begun", [False, True], ids=["the beginning", "a slice"])
def test_one_that_leaves_before_the_journal_fails_is_told_nothing_more(
    tmp_path: Path, has_begun: bool
) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.open(lambda session: None, lambda session: 1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0 if has_begun else None)
        if has_begun:
            asking.answer()
            await soon(lambda: asking.is_asked)
        stage.subscriptions.unsubscribe(stage.client(), REQUEST)
        asking.fail(JournalEnded("it was closed", "start again") if has_begun else AWAY)
        assert stage.is_empty
        # Its next subscription is told behind whatever came for the first.
        stage.subscriptions.subscribe(stage.client(), b"\0" * 8, None, None)
        await soon(lambda: len(reader.read()) > has_begun)
        assert [number for number, _ in reader.seen] == [REQUEST] * has_begun + [b"\0" * 8]

    play(tmp_path, act, asking)


def test_one_with_a_place_is_refused_while_the_journal_cannot_say_what_it_missed(tmp_path: Path) -> None:
    """It must not begin with what happens now, though its session is live."""
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1, 2, 3)
        stage.subscriptions.open(lambda session: None, lambda session: 3)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 1)
        asking.fail(AWAY)
        await soon(lambda: reader.read())
        assert reader.read() == [Refused(AWAY.fault, AWAY.hint, code="unavailable")]
        assert stage.is_empty

    play(tmp_path, act, asking)


def test_a_slice_that_is_asked_for_is_not_asked_for_twice(tmp_path: Path) -> None:
    """A retry finds room for other subscriptions meanwhile; each event comes once."""
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        stage.subscriptions._try_full()
        await soon(lambda: not stage.subscriptions._due)
        asking.answer()
        assert not asking.is_asked
        stage.happens(2)
        await soon(lambda: 2 in reader.seqs())
        assert reader.seqs() == [1, 2]

    play(tmp_path, act, asking)


def test_a_journal_that_fails_for_good_ends_the_subscription_with_its_fault(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        asking.fail(JournalEnded("it was closed", "start again"))
        await soon(lambda: len(reader.read()) == 2)
        assert reader.read()[1] == Cut("it was closed")
        assert stage.is_empty

    play(tmp_path, act, asking)


def test_one_that_left_before_the_journal_is_asked_again_stays_gone(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        [subscriber] = stage.subscriptions._behind
        asking.fail(AWAY)
        stage.subscriptions.unsubscribe(stage.client(), REQUEST)
        stage.subscriptions._ask_again(subscriber)
        assert stage.is_empty
        assert not stage.subscriptions._due

    play(tmp_path, act, asking)


def test_one_that_found_room_since_and_waits_for_the_journal_is_not_stuck(tmp_path: Path) -> None:
    """Its queue was full once: that counts once."""
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        [subscriber] = stage.subscriptions._behind
        subscriber.was_refused = True
        stage.subscriptions._try_full()
        once = subscriber.stuck_seconds
        assert once > 0
        stage.subscriptions._try_full()
        assert subscriber.stuck_seconds == once

    play(tmp_path, act, asking)


def test_an_event_that_cannot_be_sent_ends_every_subscription_that_would_miss_it(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        readers = [await stage.reader(name) for name in (b"one", b"two")]
        for name in (b"one", b"two"):
            stage.subscriptions.subscribe(stage.client(name), REQUEST, "s", None)
        stage.subscriptions.publish([accepted(1, text="\ud800")])
        for reader in readers:
            await soon(lambda each=reader: len(each.read()) == 2)  # type: ignore[misc]
            assert isinstance(reader.read()[1], Cut)
        assert stage.is_empty

    play(tmp_path, act)


def test_events_of_other_hosts_that_are_too_many_for_two_readers_end_both(tmp_path: Path) -> None:
    """The first ends while the event is being sent to all of them."""

    async def act(stage: Stage) -> None:
        for name in (b"one", b"two"):
            await stage.reader(name)
            stage.subscriptions.subscribe(stage.client(name), REQUEST, None, None)
        for number in range(1, 13):
            stage.journal.commit_now([accepted(number, text=FLOOD)])
            told = stage.journal.read.events_after("s", number - 1, 1)
            stage.subscriptions.publish_elsewhere("s", told)
        assert stage.is_empty

    play(tmp_path, act)


def test_all_subscriptions_to_all_sessions_end_when_it_is_not_known_what_they_missed(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        readers = {name: await stage.reader(name) for name in (b"one", b"two", b"of a session")}
        for name in readers:
            session = "s" if name == b"of a session" else None
            stage.subscriptions.subscribe(stage.client(name), REQUEST, session, None)
        stage.subscriptions.cut_every("the connection was cut")
        for name in (b"one", b"two"):
            told = await soon(lambda reader=readers[name]: reader.read()[1:])  # type: ignore[misc]
            assert told == [Cut("the connection was cut")]
        stage.happens(1)
        await soon(lambda: readers[b"of a session"].seqs() == [1])
        assert stage.subscriptions.count == 1

    play(tmp_path, act)


def test_those_that_found_no_time_in_one_turn_of_the_loop_are_served_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one that was served is level, and asks for no further turn."""
    seconds = count()
    monkeypatch.setattr(subscriptions, "_TURN_SECONDS", 1.5)

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        monkeypatch.setattr(subscriptions, "monotonic", lambda: next(seconds))
        for number in range(3):
            stage.subscriptions.subscribe(stage.client(), number.to_bytes(8), "s", 0)
        await soon(lambda: reader.seqs() == [1, 1, 1])

    play(tmp_path, act)
