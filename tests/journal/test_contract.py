"""What every journal promises (supervisor/journal/contract.py), tried on each kind there is."""

import asyncio
from dataclasses import replace

import pytest

from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.records import CursorMoved, MessageDropped, Record
from supervisor.journal.errors import JournalError, JournalFenced
from supervisor.journal.snapshot import durable
from tests.journal.conftest import Shelf
from tests.journal.lives import Life, accepted
from tests.journal.test_fences import ATTEMPT, JOINED, LOST, OPENED, QUEUED, RUNNING, SECOND, SPOKE
from tests.journal.test_round_trip import every_record, live_through_everything


def test_every_record_is_kept_and_loads_back_in_the_next_life(shelf: Shelf) -> None:
    life = live_through_everything(shelf.open())
    assert {type(record) for record in life.records} == every_record()
    again = shelf.open()
    assert durable(again.load(life.policy)) == durable(life.state)
    assert again.cursors("s") == {"bridge": 9}


def test_every_life_has_a_higher_epoch(shelf: Shelf) -> None:
    assert [shelf.open().epoch for _ in range(3)] == [1, 2, 3]


def test_a_session_at_rest_is_not_loaded_and_can_be_woken(shelf: Shelf) -> None:
    journal = shelf.open()
    life = live_through_everything(journal)
    session = journal.wake("s")
    assert session is not None
    assert session.seq == journal.read.session_seq("s") == max(record.seq for record in life.records)
    assert journal.wake("nobody") is None
    assert journal.read.session_seq("nobody") == 0
    assert journal.known("m1") == Known(1, "first")
    assert journal.known("m_unknown") is None


def test_the_feed_has_every_told_record_once_and_in_order(shelf: Shelf) -> None:
    journal = shelf.open()
    life = live_through_everything(journal)
    told = [record for record in life.records if record.seq and record.session == "s"]
    page = journal.read.events_after("s", 0, 1000)
    assert [(each.session, each.seq, each.type, each.at) for each in page] == [
        ("s", record.seq, record.type, record.at) for record in told
    ]
    assert [each.fields for each in page] == [record.fields() for record in told]
    assert [each.seq for each in journal.read.events_after("s", 5, 3)] == [6, 7, 8]
    assert list(journal.read.events_after("s", len(told), 10)) == []


def test_who_waited_longest_is_loaded_first(shelf: Shelf) -> None:
    journal = shelf.open()
    journal.commit_now([accepted(1, session=name) for name in ("waits-b", "waits-a")])
    opened = [replace(accepted(1, session=name), message=f"m_{name}") for name in ("z", "y")]
    for message in opened:
        name = message.session
        turn = replace(OPENED, session=name, turn=f"{name}/1", messages=(message.message,))
        journal.commit_now([message, turn])
    assert list(journal.load(Policy()).sessions) == ["z", "y", "waits-b", "waits-a"]


@pytest.mark.parametrize("together", ["one commit", "many"])
def test_a_message_that_begins_at_once_is_the_same_in_one_commit_or_in_three(
    shelf: Shelf, together: str
) -> None:
    journal = shelf.open()
    batches: list[list[Record]] = (
        [list(RUNNING)] if together == "one commit" else [[each] for each in RUNNING]
    )
    for batch in batches:
        journal.commit_now(batch)
    session = journal.wake("s")
    assert session is not None
    assert session.turn is not None
    assert session.turn.attempt is not None
    assert (session.seq, session.turns, session.turn.content_at, session.turn.opened_at) == (3, 1, 1.0, 2.0)
    assert (session.turn.attempts, session.turn.attempt.opened_at, list(session.waiting)) == (1, 3.0, [])
    assert [message.id for message in session.turn.messages] == ["m_s_1"]
    journal.commit_now([SPOKE, LOST, SECOND])


@pytest.mark.parametrize("together", ["one commit", "many"])
def test_messages_of_many_sessions_are_the_same_in_one_commit_or_in_many(shelf: Shelf, together: str) -> None:
    journal = shelf.open()
    names = ["c", "a", "b"]
    for name in ("b", "c", "a"):  # the first of each waits no more, and says nothing of the order
        gone = MessageDropped(session=name, at=1.0, seq=2, message=f"m_{name}_1", by="someone")
        journal.commit_now([accepted(1, session=name), gone])
    text = 'a "quoted" \\ line\nU+0000 \0, DLE \x10@, é'
    second = [accepted(3, session=name, text=f"{text} {name}") for name in names]
    second[1] = replace(second[1], kind="voice", clip="clip", text="", at=2.5)
    second[2] = replace(second[2], by="someone", agent="other", instructions=text, key="\x10\0")
    # Another one of a session that is in the batch already.
    third = accepted(4, session="c")
    batches = [[*second, third]] if together == "one commit" else [[each] for each in (*second, third)]
    for batch in batches:
        journal.commit_now(batch)
    reopened = shelf.open()
    state = reopened.load(Policy())
    assert list(state.sessions) == names
    expected = {"c": [second[0], third], "a": [second[1]], "b": [second[2]]}
    for name, messages in expected.items():
        session = state.sessions[name]
        assert session.seq == 2 + len(messages)
        assert [
            (each.id, each.text, each.clip, each.seq, each.at, each.by, each.agent, each.instructions)
            for each in session.waiting
        ] == [
            (each.message, each.text, each.clip, each.seq, each.at, each.by, each.agent, each.instructions)
            for each in messages
        ]
        told = reopened.read.events_after(name, 2, 10)
        assert [(each.seq, each.at, each.type, each.fields) for each in told] == [
            (each.seq, each.at, each.type, each.fields()) for each in messages
        ]


def test_one_session_that_is_elsewhere_refuses_the_messages_of_all(shelf: Shelf) -> None:
    journal = shelf.open()
    journal.commit_now([accepted(1, session=name) for name in ("a", "b", "c")])
    with pytest.raises(JournalFenced):
        journal.commit_now([accepted(2, session="a"), accepted(3, session="b"), accepted(2, session="c")])
    for name in ("a", "b", "c"):
        assert journal.read.session_seq(name) == len(journal.read.events_after(name, 0, 10)) == 1
        assert journal.known(f"m_{name}_2") is None


def test_what_joins_a_turn_is_answered_by_it_in_order(shelf: Shelf) -> None:
    journal = shelf.open()
    joined = replace(JOINED, at=7.0, seq=5, messages=("m_s_3", "m_s_4"))
    journal.commit_now([*QUEUED, accepted(3), accepted(4), joined, replace(ATTEMPT, seq=6)])
    turn = shelf.open().load(Policy()).sessions["s"].turn
    assert turn is not None
    assert [message.id for message in turn.messages] == ["m_s_1", "m_s_3", "m_s_4"]
    assert (turn.attempts, turn.content_at) == (1, accepted(4).at)


@pytest.mark.parametrize("number", [1, 2])
def test_a_beginning_that_does_not_fit_is_refused_whole(shelf: Shelf, number: int) -> None:
    """The second turn of a session whose first is open, or whose count is another."""
    journal = shelf.open()
    journal.commit_now(RUNNING)
    message = accepted(4)
    turn = replace(OPENED, seq=5, turn=f"s/{number}", number=number, messages=(message.message,))
    with pytest.raises(JournalFenced):
        journal.commit_now([message, turn, replace(ATTEMPT, seq=6, turn=f"s/{number}")])
    assert journal.read.session_seq("s") == 3
    assert journal.known(message.message) is None


def test_of_two_writers_that_believe_to_own_a_session_one_is_refused(shelf: Shelf) -> None:
    journal = shelf.open()
    journal.commit_now([accepted(1)])
    journal.commit_now([OPENED])
    with pytest.raises(JournalFenced):
        journal.commit_now([replace(OPENED, at=9.0)])
    assert [each.at for each in journal.read.events_after("s", 1, 10)] == [2.0]


def test_cursors_move_forward_each_for_itself(shelf: Shelf) -> None:
    journal = shelf.open()
    journal.commit_now(RUNNING)
    moved = CursorMoved(session="s", at=4.0, cursor="bridge", seen=1, before=0)
    journal.commit_now([moved, replace(moved, cursor="watcher", seen=3)])
    journal.commit_now([replace(moved, seen=2, before=1), replace(moved, seen=3, before=2)])
    assert shelf.open().cursors("s") == {"bridge": 3, "watcher": 3}


def test_commits_made_together_are_answered_each_for_itself(shelf: Shelf) -> None:
    journal = shelf.open()

    async def story() -> list[BaseException | None]:
        records = [accepted(1, session="a"), accepted(2, session="b"), accepted(1, session="c")]
        return await asyncio.gather(*(journal.commit([each]) for each in records), return_exceptions=True)

    good, refused, fine = asyncio.run(story())
    assert (good, fine) == (None, None)
    assert isinstance(refused, JournalError)
    assert [journal.read.session_seq(name) for name in "abc"] == [1, 0, 1]
    assert journal.transactions >= 1


def test_a_life_goes_on_where_the_last_one_was_cut_off(shelf: Shelf) -> None:
    life = Life(shelf.open())
    life.ready(0)
    life.say("m1", "first")
    life.say("m2", "second")
    again = Life(shelf.open(), now=2000.0)
    turn = again.state.sessions["s"].turn
    assert turn is not None
    assert (turn.attempts, turn.losses, len(again.state.sessions["s"].waiting)) == (1, 1, 1)
