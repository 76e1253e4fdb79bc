"""Messages that are written by one statement: which ones, and in which order."""

from dataclasses import replace

from supervisor.core.records import Record
from supervisor.journal.journal import Journal
from supervisor.journal.postgres.message_rows import Messages, gathered
from supervisor.journal.postgres.server_journal import ServerJournal
from tests.journal.conftest import every_journal
from tests.journal.lives import accepted
from tests.journal.test_fences import OPENED


def _shape(records: list[Record]) -> list[object]:
    """Those that are written together as a list of their ids, each other one by itself."""
    return [
        [message.message for message in each.accepted] if isinstance(each, Messages) else each
        for each in gathered(records)
    ]


def test_neighbours_of_different_sessions_are_written_together() -> None:
    records: list[Record] = [accepted(2, session=name) for name in ("b", "a", "c")]
    assert _shape(records) == [["m_b_2", "m_a_2", "m_c_2"]]
    assert _shape([]) == []


def test_a_second_message_of_a_session_begins_the_next_statement() -> None:
    records: list[Record] = [accepted(2), accepted(2, session="t"), accepted(3), accepted(4)]
    assert _shape(records) == [["m_s_2", "m_t_2"], ["m_s_3"], ["m_s_4"]]


def test_the_first_message_of_a_session_and_other_records_stay_where_they_are() -> None:
    first, turn = accepted(1, session="new"), replace(OPENED, session="t", turn="t/1")
    records: list[Record] = [accepted(2), first, accepted(2, session="t"), turn, accepted(2, session="u")]
    assert _shape(records) == [["m_s_2"], first, ["m_t_2"], turn, ["m_u_2"]]


def test_a_fault_names_the_message_or_how_many_there_were() -> None:
    for number, name in ((1, "m_s_2"), (2, "one of 2 sessions")):
        values = Messages((accepted(2), accepted(2, session="t"))[:number]).values()
        assert (values["number"], values["name"]) == (number, name)


@every_journal
def test_a_session_is_as_recent_as_the_message_that_waits(journal: Journal | ServerJournal) -> None:
    journal.commit_now([accepted(1)])
    journal.commit_now([accepted(2)])
    assert journal.read.newest_at() == accepted(2).at
