"""Subscriptions to sessions of other hosts, over a real socket and a journal that another host writes."""

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ipc.codec import encode
from ipc.messages import Cut, Delta, Event, Subscribed
from supervisor.core.state import Attempt, Session, Turn, TurnState, Verdict, Who
from supervisor.hosts.remote_feed import RemoteFeed
from supervisor.journal.asking import Asking, InPlace
from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.postgres.read_threads import ReadThreads
from tests.journal.lives import accepted
from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_subscriptions import REQUEST, Reader, Stage, play
from tests.waiting import soon

EVERY = b"\0" * 7 + b"\1"


def committed_elsewhere(stage: Stage, *numbers: int, session: str = "s") -> None:
    stage.journal.commit_now([accepted(number, session) for number in numbers])


class Elsewhere:
    """The text of a session as its host has written it, and a feed that reads it."""

    def __init__(self, stage: Stage, asking: Asking | None = None) -> None:
        self.may_read = threading.Event()
        self.may_read.set()
        self.session = Session("s", 1, 1, 0)
        self.reads = 0
        self.here: set[str] = set()
        self.feed = RemoteFeed(
            subscriptions=stage.subscriptions,
            journal=stage.journal.read,
            wake=self._wake,
            asking=asking or InPlace(),
            is_here=self.here.__contains__,
        )
        stage.subscriptions.open(self.feed.streamed)

    def has_written(self, text: str, attempt: int = 1, turn: int = 1) -> None:
        running = Attempt(attempt, Who(1, 1, 1), 0.0, "", text)
        self.session.turn = Turn(f"s/{turn}", "s", (), 0.0, "default", attempts=attempt, attempt=running)

    def _wake(self, name: str) -> Session | None:
        found = self.session if name == "s" else None
        self.may_read.wait()
        self.reads += 1
        return found


def has_seen(reader: Reader, seq: int) -> bool:
    return reader.seqs()[-1:] == [seq]


def texts(answers: Sequence[object]) -> list[tuple[int, str]]:
    return [(each.offset, each.text) for each in answers if isinstance(each, Delta)]


def test_events_of_another_host_are_read_once_and_in_order(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        committed_elsewhere(stage, 1, 2, 3)
        for seq in (2, 3, 3, 1):
            stage.subscriptions.told_elsewhere("s", seq)
        await soon(lambda: reader.seqs() == [1, 2, 3])
        committed_elsewhere(stage, 4)
        stage.subscriptions.told_elsewhere("s", 4)
        await soon(lambda: reader.seqs() == [1, 2, 3, 4])

    play(tmp_path, act)


def test_an_event_that_is_told_of_while_others_are_read_is_read_next(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        committed_elsewhere(stage, 1)
        stage.subscriptions.told_elsewhere("s", 1)
        await soon(lambda: asking.is_asked)
        asking.read()
        committed_elsewhere(stage, 2)
        stage.subscriptions.told_elsewhere("s", 2)
        asking.tell()
        await soon(lambda: asking.is_asked)
        asking.answer()
        await soon(lambda: reader.seqs() == [1, 2])
        stage.subscriptions.told_elsewhere("s", 2)
        assert not asking.is_asked, "it has them all"

    play(tmp_path, act, asking)


def test_a_subscription_that_began_without_the_journal_needs_none_for_what_happens_here(
    tmp_path: Path,
) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.journal.commit_now([accepted(number) for number in range(1, 6)])
        stage.subscriptions.open(lambda session: None, lambda session: 5)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", None)
        asking.fail(JournalUnreachable("the server does not answer", "look at it"))
        stage.subscriptions.told_elsewhere("s", 5)
        stage.happens(6)
        stage.happens(7)
        await soon(lambda: reader.seqs() == [6, 7])
        assert not asking.is_asked

    play(tmp_path, act, asking)


def test_a_session_that_moves_here_leaves_no_gap(tmp_path: Path) -> None:
    """The notice of its last events elsewhere comes after the first event here, or never."""

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.read() == [Subscribed(0, 0)])
        committed_elsewhere(stage, 1, 2)
        stage.happens(3)
        await soon(lambda: reader.seqs() == [1, 2, 3])
        stage.subscriptions.told_elsewhere("s", 2)
        stage.happens(4)
        await soon(lambda: reader.seqs() == [1, 2, 3, 4])

    play(tmp_path, act)


def test_text_is_whole_whatever_is_lost_or_comes_twice(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        tell = elsewhere.feed.text_told
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.read() == [Subscribed(0, 0)])
        tell("s", "s/1", 1, 0, "one ")
        tell("s", "s/1", 1, 4, "two ")
        tell("s", "s/1", 1, 0, "one ")
        tell("s", "s/1", 1, 4, "two three ")
        await soon(lambda: texts(reader.read()) == [(0, "one "), (4, "two "), (8, "three ")])
        elsewhere.has_written("one two three four ")
        tell("s", "s/1", 1, 19, "five ")  # a piece before it was lost
        whole = (0, "one two three four "), (19, "five ")
        await soon(lambda: texts(reader.read())[3:] == [*whole])

    play(tmp_path, act)


def test_text_that_the_journal_does_not_have_yet_is_waited_for(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.has_written("one ")
        elsewhere.feed.text_told("s", "s/1", 1, 8, "three ")
        elsewhere.feed.text_told("s", "s/1", 1, 14, "four ")
        await soon(lambda: texts(reader.read()) == [(0, "one ")])
        elsewhere.has_written("one two three ")
        await soon(lambda: texts(reader.read())[1:] == [(0, "one two three "), (14, "four ")])

    play(tmp_path, act)


def test_text_of_a_lost_attempt_is_replaced_by_that_of_the_next(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        tell = elsewhere.feed.text_told
        tell("s", "s/1", 1, 0, "one two")
        tell("s", "s/1", 2, 4, "zwei")
        tell("s", "s/1", 1, 7, "late")
        await soon(lambda: texts(reader.read()) == [(0, "one two"), (4, "zwei")])
        assert elsewhere.feed.streamed("s") == Delta("s", "s/1", 2, 0, "one zwei")

    play(tmp_path, act)


def test_the_text_of_the_next_turn_replaces_one_whose_end_was_not_told(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        tell = elsewhere.feed.text_told
        tell("s", "s/9", 1, 0, "one")
        tell("s", "s/10", 1, 0, "two")
        tell("s", "s/9", 1, 3, "late")
        await soon(lambda: texts(reader.read()) == [(0, "one"), (0, "two")])
        assert elsewhere.feed.streamed("s") == Delta("s", "s/10", 1, 0, "two")

    play(tmp_path, act)


def test_an_ended_turn_has_no_text_for_a_later_subscriber(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one")
        committed_elsewhere(stage, 1)
        elsewhere.feed.events_told("s", 1, 1, True)
        stage.subscriptions.subscribe(stage.client(), EVERY, "s", 0)
        await soon(lambda: reader.seqs() == [1, 1])
        assert texts(reader.read()) == [(0, "one")]
        elsewhere.has_written("stopped", turn=2)
        assert elsewhere.session.turn is not None
        assert elsewhere.session.turn.attempt is not None
        elsewhere.session.turn.attempt.verdict = Verdict(TurnState.INTERRUPTED, "test")
        assert elsewhere.feed.streamed("s") is None
        committed_elsewhere(stage, 2)
        elsewhere.feed.events_told("s", 2, 2, False)
        await soon(lambda: reader.seqs().count(2) == 2)
        assert texts(reader.read()) == [(0, "one")]

    play(tmp_path, act)


def test_a_turn_that_ends_while_its_text_is_read_has_none_afterwards(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        asking = ReadThreads(1)
        reader, elsewhere = await stage.reader(), Elsewhere(stage, asking)
        elsewhere.has_written("one ")
        elsewhere.may_read.clear()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: elsewhere.feed._missing)
        committed_elsewhere(stage, 1)
        elsewhere.feed.events_told("s", 1, 1, True)
        elsewhere.may_read.set()
        await soon(lambda: elsewhere.reads and reader.seqs() == [1])
        settled: list[None] = []
        asking.ask(lambda: None, settled.append, settled.append)  # type: ignore[arg-type]
        await soon(lambda: settled)
        assert texts(reader.read()) == []
        assert not elsewhere.feed._streams
        asking.close()

    play(tmp_path, act)


def test_text_that_comes_while_an_event_is_read_is_not_missed(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.read())
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one ")
        for number, word in ((1, "two "), (2, "")):
            committed_elsewhere(stage, number)
            # The event is read in a later turn of the loop.
            elsewhere.feed.events_told("s", number, number, False)
            if word:
                elsewhere.feed.text_told("s", "s/1", 1, 4, word)
            await soon(partial(has_seen, reader, number))
        assert [each for each in reader.read() if isinstance(each, Delta | Event)][1:3] == [
            reader.read()[2], Delta("s", "s/1", 1, 0, "one two "),
        ]  # fmt: skip
        assert texts(reader.read()) == [(0, "one "), (0, "one two ")], "not repeated with every event"

    play(tmp_path, act)


def test_who_follows_all_sessions_gets_events_of_other_hosts_until_the_connection_is_cut(
    tmp_path: Path,
) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        feed = elsewhere.feed
        feed.connected()
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        committed_elsewhere(stage, *range(1, 251))
        committed_elsewhere(stage, 1, session="other")
        feed.events_told("s", 1, 2, False)
        feed.events_told("other", 1, 1, False)
        feed.events_told("s", 2, 3, False)
        feed.events_told("s", 250, 250, False)
        await soon(lambda: len(reader.seqs()) == 251)
        told = [each for each in reader.read() if isinstance(each, Event)]
        assert [each.seq for each in told if each.session == "s"] == list(range(1, 251))
        feed.connected()
        await soon(lambda: isinstance(reader.read()[-1], Cut))

    play(tmp_path, act)


def test_events_that_are_told_of_while_others_are_read_come_once(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        asking = ReadThreads(1)
        reader, elsewhere = await stage.reader(), Elsewhere(stage, asking)
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        may_read = threading.Event()
        asking.ask(may_read.wait, lambda found: None, lambda error: None)
        committed_elsewhere(stage, 1, 2, 3, 4)
        for seq in (1, 2, 4):
            elsewhere.feed.events_told("s", seq, seq, False)
        may_read.set()
        await soon(lambda: reader.seqs()[-1:] == [4])
        assert reader.seqs() == [1, 2, 3, 4]
        asking.close()

    play(tmp_path, act)


def test_events_that_no_notice_told_of_are_found(tmp_path: Path) -> None:
    """Its host died between its commit and the notice."""

    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.read())
        committed_elsewhere(stage, 1, 2)
        elsewhere.feed.look()
        await soon(lambda: reader.seqs() == [1, 2])
        elsewhere.here.add("s")
        committed_elsewhere(stage, 3)
        elsewhere.feed.look()
        stage.subscriptions.publish([accepted(3)])
        await soon(lambda: reader.seqs() == [1, 2, 3])

    play(tmp_path, act)


def test_nothing_is_kept_for_sessions_that_are_not_followed(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one")
        assert not elsewhere.feed._streams
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        await soon(lambda: reader.read())
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one")
        assert elsewhere.feed._streams
        stage.subscriptions.forget(stage.client())
        elsewhere.feed.look()
        assert not elsewhere.feed._streams
        assert not elsewhere.feed._missing

    play(tmp_path, act)


def test_a_delta_of_another_host_goes_on_as_it_would_here(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        reader, elsewhere = await stage.reader(), Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one")
        elsewhere.feed.note_told("s", "s/1", 1, "thinking")
        stage.subscriptions.delta("s", encode(Delta("s", "s/1", 1, 3, "two")))
        await soon(lambda: texts(reader.read()) == [(0, "one"), (3, "two")])

    play(tmp_path, act)


def test_a_late_notice_of_an_earlier_event_does_not_hide_a_later_one(tmp_path: Path) -> None:
    """Both come while an event before them is read."""
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        committed_elsewhere(stage, 1)
        stage.subscriptions.told_elsewhere("s", 1)
        await soon(lambda: asking.is_asked)
        asking.read()
        committed_elsewhere(stage, 2, 3)
        stage.subscriptions.told_elsewhere("s", 3)
        stage.subscriptions.told_elsewhere("s", 1)
        asking.tell()
        await soon(lambda: asking.is_asked)
        asking.answer()
        await soon(lambda: reader.seqs() == [1, 2, 3])

    play(tmp_path, act, asking)
