"""The feed of other hosts' sessions when reads fail or come late, and after a cut: the journal is held."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ipc.messages import Cut
from supervisor.core.state import Session
from supervisor.hosts import remote_feed
from supervisor.journal.errors import JournalUnreachable
from tests.hosts.test_told_elsewhere import EVERY, Elsewhere, committed_elsewhere, texts
from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_subscriptions import REQUEST, Reader, Stage, play
from tests.waiting import soon

LATER = b"\0" * 7 + b"\2"
AWAY = JournalUnreachable("the database does not answer", "look at it")

Act = Callable[[Stage, Reader, Elsewhere, HeldAsking], Awaitable[None]]


def held(folder: Path, act: Act) -> None:
    """Reads of the feed are answered when the test says so."""

    async def run(stage: Stage) -> None:
        asking = HeldAsking()
        await act(stage, await stage.reader(), Elsewhere(stage, asking), asking)

    play(folder, run)


def answer_all(asking: HeldAsking) -> None:
    while asking.is_asked:
        asking.answer()


def test_events_whose_read_failed_are_read_with_the_next(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        committed_elsewhere(stage, 1, 2)
        elsewhere.feed.events_told("s", 1, 1, False)
        asking.fail(AWAY)
        elsewhere.feed.events_told("s", 2, 2, False)
        answer_all(asking)
        await soon(lambda: reader.seqs() == [1, 2])

    held(tmp_path, act)


def test_a_notice_that_comes_again_takes_back_nothing_of_a_later_one(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        committed_elsewhere(stage, 1, 2, 3, 4)
        for first, last in ((1, 1), (2, 4), (2, 2)):
            elsewhere.feed.events_told("s", first, last, False)
        answer_all(asking)
        await soon(lambda: reader.seqs() == [1, 2, 3, 4])

    held(tmp_path, act)


def test_a_subscription_after_a_cut_gets_nothing_of_the_time_before_it(tmp_path: Path) -> None:
    """Neither by a read that was under way, nor by how far the one before it had come."""

    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        elsewhere.feed.connected()
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        committed_elsewhere(stage, 1, 2, 3, 4)
        elsewhere.feed.events_told("s", 1, 1, False)
        elsewhere.feed.connected()
        await soon(lambda: [each for each in reader.read() if isinstance(each, Cut)])
        stage.subscriptions.subscribe(stage.client(), LATER, None, None)
        answer_all(asking)
        elsewhere.feed.events_told("s", 4, 4, False)
        answer_all(asking)
        await soon(lambda: reader.seqs()[-1:] == [4])
        assert reader.seqs() == [4]

    held(tmp_path, act)


def test_a_later_subscription_to_all_sessions_gets_nothing_of_the_time_without_one(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        stage.subscriptions.subscribe(stage.client(), EVERY, None, None)
        committed_elsewhere(stage, 1, 2, 3)
        elsewhere.feed.events_told("s", 1, 1, False)
        answer_all(asking)
        stage.subscriptions.forget(stage.client())
        elsewhere.feed.look()
        elsewhere.feed.events_told("s", 2, 2, False)
        stage.subscriptions.subscribe(stage.client(), LATER, None, None)
        elsewhere.feed.events_told("s", 3, 3, False)
        answer_all(asking)
        await soon(lambda: reader.seqs()[-1:] == [3])
        assert reader.seqs() == [1, 3]

    held(tmp_path, act)


def test_text_after_a_read_that_failed_goes_on(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.fail(AWAY)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one ")
        await soon(lambda: texts(reader.read()) == [(0, "one ")])

    held(tmp_path, act)


def test_a_second_subscription_loses_no_text_that_waits_for_the_read_of_the_first(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        elsewhere.has_written("")
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one ")
        stage.subscriptions.subscribe(stage.client(), LATER, "s", 0)
        answer_all(asking)
        await soon(lambda: texts(reader.read()) == [(0, "one ")] * 2)

    held(tmp_path, act)


def test_text_of_a_turn_that_may_have_ended_during_a_cut_is_looked_up_again(tmp_path: Path) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        elsewhere.feed.connected()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        answer_all(asking)
        elsewhere.feed.text_told("s", "s/1", 1, 0, "one ")
        elsewhere.feed.connected()
        stage.subscriptions.subscribe(stage.client(), LATER, "s", 0)
        answer_all(asking)
        elsewhere.feed.text_told("s", "s/2", 1, 0, "two ")
        await soon(lambda: texts(reader.read())[-2:] == [(0, "two ")] * 2)
        assert len(texts(reader.read())) == 3

    held(tmp_path, act)


@pytest.mark.parametrize("meanwhile", ["cut", "here"])
def test_text_that_was_read_before_a_cut_or_a_move_to_this_host_is_not_told(
    tmp_path: Path, meanwhile: str
) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        elsewhere.feed.connected()
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.has_written("one ")
        asking.read()
        if meanwhile == "cut":
            elsewhere.feed.connected()
        else:
            elsewhere.here.add("s")
        asking.tell()
        stage.happens(1)
        await soon(lambda: reader.seqs() == [1])
        assert texts(reader.read()) == []

    held(tmp_path, act)


def test_the_text_of_an_ended_turn_that_is_read_late_is_not_taken_for_that_of_the_next(
    tmp_path: Path,
) -> None:
    async def act(stage: Stage, reader: Reader, elsewhere: Elsewhere, asking: HeldAsking) -> None:
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.has_written("one ")
        asking.read()
        committed_elsewhere(stage, 1)
        elsewhere.feed.events_told("s", 1, 1, True)
        await soon(lambda: reader.seqs() == [1])
        elsewhere.feed.text_told("s", "s/2", 1, 4, "and three ")
        asking.tell()
        elsewhere.session = Session("s", 1, 2, 0)
        elsewhere.has_written("two ", turn=2)
        answer_all(asking)
        await soon(lambda: len(texts(reader.read())) > 1)
        assert texts(reader.read()) == [(0, "two "), (4, "and three ")]

    held(tmp_path, act)


def test_text_that_is_missing_is_not_looked_for_when_it_is_not_followed_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_feed, "_TEXT_AGAIN_SECONDS", 0.0)

    async def act(stage: Stage) -> None:
        await stage.reader()
        elsewhere = Elsewhere(stage)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        elsewhere.has_written("one ")
        elsewhere.feed.text_told("s", "s/1", 1, 8, "three ")
        stage.subscriptions.forget(stage.client())
        elsewhere.feed.look()
        before = elsewhere.reads
        for _ in range(5):
            await asyncio.sleep(0)  # a timer of zero seconds fires in the next turn of the loop
        assert elsewhere.reads == before

    play(tmp_path, act)
