"""What a host tells the others of its sessions: how far their events go, and their text in order."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ipc.codec import encode
from ipc.messages import Delta, Noted
from supervisor.core.records import Record, TurnFailed
from supervisor.hosts import shared_feed
from supervisor.hosts.shared_feed import SharedFeed
from tests.journal.lives import accepted
from tests.journal.test_fences import DONE, FAILED, INTERRUPTED, SPOKE, STOPPED
from tests.waiting import soon


class Stage:
    """A feed with its subscriptions here, and what the other hosts are told."""

    def __init__(self) -> None:
        self.others: dict[int, str] = {2: "two"}
        self.told: list[list[Any]] = []
        self.published: list[Record] = []
        self.deltas: list[bytes] = []
        stage: Any = self
        self.feed = SharedFeed(stage, stage)

    def tell(self, life: int | None, notice: list[Any]) -> None:
        assert life is None
        self.told.append(notice)

    def publish(self, records: Sequence[Record]) -> None:
        self.published += records

    def delta(self, session: str, frame: bytes) -> None:
        self.deltas.append(frame)

    def says(self, text: str, offset: int, session: str = "s", turn: str = "s/1", attempt: int = 1) -> None:
        self.feed.delta(session, encode(Delta(session, turn, attempt, offset, text)))


def play(act: Callable[[Stage], None]) -> None:
    async def run() -> None:
        act(Stage())

    asyncio.run(run())


def failed(seq: int) -> TurnFailed:
    return TurnFailed(session="s", at=1.0, seq=seq, turn="s/1", attempt=1, error="e", hint="h")


def test_a_batch_is_one_notice_a_session_with_the_range_of_its_events() -> None:
    def act(stage: Stage) -> None:
        batch = [accepted(1), accepted(1, "t"), accepted(2), failed(3), accepted(4)]
        stage.feed.publish(batch)
        assert stage.published == batch
        assert stage.told == [["events", "s", 1, 4, True], ["events", "t", 1, 1, False]]

    play(act)


@pytest.mark.parametrize("ending", [DONE, FAILED, INTERRUPTED])
def test_each_way_in_which_a_turn_ends_is_told_as_an_end(ending: Record) -> None:
    def act(stage: Stage) -> None:
        stage.feed.publish([ending])
        assert stage.told == [["events", "s", 4, 4, True]]

    play(act)


def test_records_that_are_no_events_are_not_told_of() -> None:
    def act(stage: Stage) -> None:
        stage.feed.publish([SPOKE])
        stage.feed.publish([SPOKE, accepted(5), STOPPED])
        assert stage.told == [["events", "s", 5, 5, False]]

    play(act)


def test_nothing_is_told_while_no_other_host_is_there() -> None:
    def act(stage: Stage) -> None:
        stage.others = {}
        stage.feed.publish([accepted(1)])
        stage.says("hello", 0)
        stage.others = {2: "two"}
        stage.feed.publish([accepted(2)])
        assert (len(stage.published), len(stage.deltas)) == (2, 1)
        assert stage.told == [["events", "s", 2, 2, False]]

    play(act)


def test_text_is_told_before_the_next_event_of_its_session() -> None:
    def act(stage: Stage) -> None:
        stage.says("good ", 0)
        stage.says("morning", 5)
        stage.says("other", 0, "t", "t/1")
        assert not stage.told
        stage.feed.publish([accepted(2)])
        assert stage.told == [["text", "s", "s/1", 1, 0, "good morning"], ["events", "s", 2, 2, False]]

    play(act)


@pytest.mark.parametrize("change", [{"attempt": 2}, {"turn": "s/2"}, {"offset": 9}])
def test_text_that_does_not_continue_what_waits_is_told_apart(change: dict[str, Any]) -> None:
    def act(stage: Stage) -> None:
        stage.says("good ", 0)
        stage.says("morning", **({"offset": 5} | change))
        assert stage.told == [["text", "s", "s/1", 1, 0, "good "]]

    play(act)


def test_long_text_is_told_in_pieces_that_a_notice_holds() -> None:
    def act(stage: Stage) -> None:
        text = "".join(chr(0x4E00 + number) for number in range(2_500))
        stage.says(text, 7)
        stage.feed.publish([accepted(2)])
        pieces = [notice for notice in stage.told if notice[0] == "text"]
        assert [(each[4], len(each[5])) for each in pieces] == [(7, 1000), (1007, 1000), (2007, 500)]
        assert "".join(each[5] for each in pieces) == text

    play(act)


def test_a_note_is_told_at_once_and_cut_to_what_a_notice_holds() -> None:
    def act(stage: Stage) -> None:
        stage.feed.delta("s", encode(Noted("s/1", 2, "x" * 1_001)))
        assert stage.told == [["note", "s", "s/1", 2, "x" * 1_000]]
        assert len(stage.deltas) == 1

    play(act)


def test_text_that_no_event_follows_is_told_soon_and_so_is_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_feed, "_GATHER_SECONDS", 0.0)

    async def run() -> None:
        stage = Stage()
        stage.says("good ", 0)
        stage.says("other", 0, "t", "t/1")
        await soon(lambda: len(stage.told) == 2)
        stage.says("morning", 5)
        await soon(lambda: len(stage.told) == 3)
        assert [notice[1:] for notice in stage.told] == [
            ["s", "s/1", 1, 0, "good "],
            ["t", "t/1", 1, 0, "other"],
            ["s", "s/1", 1, 5, "morning"],
        ]

    asyncio.run(run())
