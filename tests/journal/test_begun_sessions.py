"""Histories with which sessions begin: how much is kept, how it is told, when it is pruned."""

import asyncio

import pytest

from ipc import messages as wire
from ipc.messages import Begin, Exchange
from supervisor.clients.beginnings import beginning
from supervisor.core.events import BeginAsked, InterruptAsked
from supervisor.journal.history import AttemptPast, TurnPast, encoded
from supervisor.journal.journal import Journal
from supervisor.journal.prune import Pruning
from tests.journal.conftest import every_journal
from tests.journal.lives import Life
from tests.journal.test_round_trip import live_through_everything


def begun(journal: Journal, request: Begin) -> BeginAsked:
    found = beginning(request, journal.read)
    assert isinstance(found, BeginAsked), found
    return found


def texts(journal: Journal, session: str, turns_max: int = 200, bytes_max: int = 1024 * 1024) -> list[str]:
    return [turn.messages[0] for turn in journal.read.history(session, 99, turns_max, bytes_max)]


@every_journal
def test_a_turn_is_told_as_it_was_kept(journal: Journal) -> None:
    life = live_through_everything(journal)
    whole = journal.read.history("s", 4, 200, 1024 * 1024)
    life.tell(begun(journal, Begin("fork", "k", from_session="s", through_turn=3)))
    assert journal.read.history("fork", 1, 200, 1024 * 1024) == whole
    assert any(tool for turn in whole for attempt in turn.attempts for tool in attempt.tools)


@every_journal
def test_the_newest_turns_are_kept_that_an_attempt_would_be_told(journal: Journal) -> None:
    many = begun(journal, Begin("s", "k", tuple(Exchange(str(number), "x") for number in range(300))))
    assert len(many.turns) == 200
    assert many.turns[-1] == encoded(TurnPast("", 300, ("299",), (AttemptPast("x", (), ""),)))
    long = begun(journal, Begin("s", "k", tuple(Exchange("ä" * 100_000) for _ in range(20))))
    assert 0 < len(long.turns) <= 5
    unanswered = begun(journal, Begin("s", "k", (Exchange("only a question"),)))
    assert unanswered.turns == (encoded(TurnPast("", 1, ("only a question",), ())),)


@every_journal
def test_own_turns_come_before_the_imported_ones_when_there_is_no_room_for_all(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    life.tell(begun(journal, Begin("s", "k", (Exchange("a", "x" * 500), Exchange("b", "x" * 500)))))
    life.say("m1", "own")
    life.tell(InterruptAsked("s", "me"))
    life.died(life.busy_seat())
    assert texts(journal, "s") == ["a", "b", "own"]
    assert texts(journal, "s", turns_max=2) == ["b", "own"]
    assert texts(journal, "s", turns_max=1) == ["own"]
    assert texts(journal, "s", bytes_max=1200) == ["b", "own"]


@every_journal
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Begin("new", "k", from_session="nobody"), "unknown"),
        (Begin("new", "k", from_session="s", through_turn=99), "unknown"),
        (Begin("new", "k", from_session="t", through_turn=1), "conflict"),
    ],
)
def test_what_cannot_be_copied_is_refused(journal: Journal, request_: Begin, code: str) -> None:
    live_through_everything(journal)
    found = beginning(request_, journal.read)
    assert isinstance(found, wire.Refused)
    assert found.code == code


@every_journal
def test_a_history_goes_with_the_last_event_of_its_session(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    for session in ("unused", "s"):
        life.tell(begun(journal, Begin(session, "k", (Exchange("a", "b"),))))
    life.say("m1", "own")
    prune(journal, life.now + 1)
    assert texts(journal, "s") == ["a"]
    assert texts(journal, "unused") == []
    assert journal.read.begun_by("unused") is None
    assert journal.read.session_seq("unused") == 1
    life.tell(InterruptAsked("s", "me"))
    life.died(life.busy_seat())
    prune(journal, life.now + 1)
    assert texts(journal, "s") == []
    assert journal.read.begun_by("s") is None


def test_a_history_that_no_message_has_followed_yet_stays_while_it_is_young(journal: Journal) -> None:
    life = Life(journal)
    life.tell(begun(journal, Begin("unused", "k", (Exchange("a", "b"),))))
    prune(journal, life.now - 1)
    assert texts(journal, "unused") == ["a"]
    assert journal.read.begun_by("unused") == "k"


def prune(journal: Journal, before: float) -> None:
    pruning = Pruning(before)
    asyncio.run(journal.prune(pruning))
