"""Opening: a new life each time, a newer shape refused, damage named, history not paid for."""

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from supervisor.core.policy import Policy
from supervisor.core.records import Record, TurnFailed, TurnOpened
from supervisor.journal import load, lock, reader, session_search, tables, turn_rows
from supervisor.journal.errors import (
    JournalDamaged,
    JournalError,
    JournalLocked,
    JournalTooNew,
    JournalUnwritable,
)
from supervisor.journal.journal import Journal
from supervisor.journal.migrate import steps
from tests.journal.conftest import open_in
from tests.journal.lives import accepted

PAGE_BYTES = 4096


def ended(session: str, number: int) -> list[Record]:
    """One message and its turn, over at once."""
    seq, at, turn = 3 * number, float(number), f"{session}/{number}"
    message = accepted(number, session, seq=seq - 2, text="words " * 50)
    return [
        message,
        TurnOpened(
            session=session, at=at, seq=seq - 1, turn=turn, number=number, messages=(message.message,)
        ),
        TurnFailed(session=session, at=at, seq=seq, turn=turn, attempt=0, error="no", hint="none"),
    ]


def test_every_opening_is_a_new_life(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        journal = open_in(tmp_path)
        epochs.append(journal.epoch)
        journal.close()
    assert epochs == [1, 2, 3]


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([accepted(1)])
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    journal.close()


def test_a_closed_journal_is_one_file_and_takes_no_more(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([accepted(1)])
    journal.close()
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.db", "supervisor.lock"]
    with pytest.raises(JournalError, match="closed"):
        journal.commit_now([accepted(2)])


def test_the_lock_is_taken_before_the_file_is_touched(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    with pytest.raises(JournalLocked):
        Journal.open(tmp_path / "other.db", tmp_path / "supervisor.lock")
    assert not (tmp_path / "other.db").exists()
    journal.close()


def test_a_link_in_place_of_the_lock_is_refused_and_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("not ours\n")
    (tmp_path / "supervisor.lock").symlink_to(other)
    with pytest.raises(JournalUnwritable, match="is a symbolic link") as refusal:
        open_in(tmp_path)
    assert refusal.value.hint == "remove the link, then start again"
    assert other.read_text() == "not ours\n"
    assert not (tmp_path / "journal.db").exists()


def test_a_newer_schema_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    open_in(tmp_path).close()
    newer = steps()[-1][0] + 1
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute(f"PRAGMA user_version = {newer}")
    connection.close()
    before = (tmp_path / "journal.db").read_bytes()
    with pytest.raises(JournalTooNew, match=f"schema {newer}"):
        open_in(tmp_path)
    assert (tmp_path / "journal.db").read_bytes() == before


def test_a_failed_opening_gives_the_lock_back(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"this is not a journal" * 1000)
    for _ in range(2):
        with pytest.raises(JournalDamaged, match="not a database"):
            open_in(tmp_path)
    (tmp_path / "journal.db").unlink()
    open_in(tmp_path).close()


def test_a_damaged_page_is_found_at_start_wherever_it_is(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    journal = open_in(whole)
    journal.commit_now([record for number in range(1, 200) for record in ended("s", number)])
    journal.close()
    pages = (whole / "journal.db").stat().st_size // PAGE_BYTES
    assert pages > 50
    for page in range(1, pages):
        hurt = tmp_path / f"page{page}"
        shutil.copytree(whole, hurt)
        with open(hurt / "journal.db", "r+b") as file:
            file.seek(page * PAGE_BYTES)
            file.write(b"\xff" * PAGE_BYTES)
        with pytest.raises(JournalDamaged, match=r"journal\.db is damaged"):
            open_in(hurt)
        shutil.rmtree(hurt)


def test_a_truncated_file_is_found_at_start(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([record for number in range(1, 100) for record in ended("s", number)])
    journal.close()
    with open(tmp_path / "journal.db", "r+b") as file:
        file.truncate(10 * PAGE_BYTES)
    with pytest.raises(JournalDamaged):
        open_in(tmp_path)


@pytest.mark.parametrize(
    ("query", "index", "values"),
    [
        (load.OPEN_SESSIONS, "turns_open", ()),
        (load.WAITING_SESSIONS, "messages_waiting", ()),
        (load.HELD_SESSIONS, "sessions_held", ()),
        (load.WAITING, "messages_waiting", ('["s"]',)),
        (load.OPEN_TURNS, "turns_open (session=?)", ('["s"]',)),
        (load.TEXTS, "PRIMARY KEY (turn=? AND attempt=?)", ("[]",)),
        (load.ATTEMPTS, "PRIMARY KEY (turn=? AND number=?)", ("[]",)),
        (load.QUESTIONS, "questions_open (turn=?)", ("[]",)),
        (load.OPEN_CALLS, "tool_calls_open (turn=? AND attempt=?)", ("[]",)),
        (load.TAKEN, "sqlite_autoindex_messages_1", ("[]",)),
        (reader.EVENTS_AFTER, "PRIMARY KEY (session=? AND seq>?)", ("s", 0, 1)),
        (reader.MESSAGE_KNOWN, "sqlite_autoindex_messages_1", ("m",)),
        (tables.SESSIONS_PAGE, "sessions_recent ((last_at,name)<(?,?))", (1.0, "s", 1)),
        (tables.TURNS_OPEN, "turns_open", ("queued", None, 1, 1)),
        (tables.TURNS_UNHAPPY, "turns_unhappy", ("failed", None, 1, 1)),
        (tables.TURNS_OF_SESSION, "sqlite_autoindex_turns_1 (session=? AND number<?)", (None, "s", 1, 1)),
        (tables.TURNS_OF_ALL, "INTEGER PRIMARY KEY (rowid<?)", (None, None, 1, 1)),
        (tables.QUESTIONS_OPEN, "questions_waiting ((at,id)>(?,?))", (1.0, "q", 1)),
        (reader.TURN, "sqlite_autoindex_turns_1 (session=? AND number=?)", ("s", 1)),
        (tables.TOOL_OUTPUT, "tool_calls_by_attempt (turn=? AND attempt<?)", ("s/1", "c1", 1, 1)),
        (turn_rows.TURNS_BELOW, "sqlite_autoindex_turns_1 (session=? AND number<?)", ("s", 1, 1)),
        (turn_rows.ONE_TURN, "sqlite_autoindex_turns_1 (session=? AND number=?)", ("s", 1, "s/1")),
        (turn_rows.TURN_SAYS, "sqlite_autoindex_messages_1", ("[]",)),
        (turn_rows.TURN_TEXT, "PRIMARY KEY (turn=?)", ("s/1",)),
        (turn_rows.TURN_CALLS, "tool_calls_by_attempt (turn=?)", ("s/1",)),
        (turn_rows.OPEN_QUESTION, "questions_open (turn=?)", ("s/1",)),
        (turn_rows.ANSWERED_QUESTIONS, "questions_by_turn (turn=?)", ("s/1",)),
        (session_search.SESSIONS_BELOW, "sessions_recent ((last_at,name)<(?,?))", (1.0, "s", 1)),
        (session_search.SESSION, "PRIMARY KEY (name=?)", ("s", 1.0)),
        (reader.COUNTS, "turns_open", ()),
    ],
)
def test_what_is_read_often_is_read_by_index(
    tmp_path: Path, query: str, index: str, values: tuple[object, ...]
) -> None:
    open_in(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "journal.db")
    plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    connection.close()
    assert any(index in step for step in plan), plan
    scans = [step for step in plan if step.startswith("SCAN") and "USING" not in step]
    assert [step for step in scans if step != "SCAN tallies" and "VIRTUAL TABLE" not in step] == []


def test_loading_reads_as_many_pages_after_a_long_history(tmp_path: Path) -> None:
    """Counted in steps of SQLite's own machine, not in time."""
    steps_taken = []
    for turns in (2, 3000):
        folder = tmp_path / str(turns)
        folder.mkdir()
        journal = open_in(folder)
        journal.commit_now([record for number in range(1, turns) for record in ended("old", number)])
        journal.commit_now([accepted(1, session="open")])
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        journal._reading.set_progress_handler(step, 1)
        assert list(journal.load(Policy()).sessions) == ["open"]
        journal._reading.set_progress_handler(None, 1)
        steps_taken.append(count)
        journal.close()
    assert steps_taken[0] == steps_taken[1]


def test_a_turn_of_a_version_that_recorded_no_agent_has_that_of_the_settings(journal: Journal) -> None:
    opened = TurnOpened(session="s", at=1.0, seq=2, turn="s/1", number=1, messages=("m_s_1",), agent="")
    journal.commit_now([accepted(1), opened])
    turn = journal.load(Policy(agent_of=lambda session: f"that of {session}")).sessions["s"].turn
    assert turn is not None
    assert turn.agent == "that of s"


def test_a_turn_that_has_lost_a_message_is_loaded_with_the_others(journal: Journal) -> None:
    opened = TurnOpened(session="s", at=1.0, seq=3, turn="s/1", number=1, messages=("m_s_1", "m_s_2"))
    journal.commit_now([accepted(1), accepted(2), opened])
    journal._writing.execute("DELETE FROM messages WHERE id = 'm_s_1'")
    turn = journal.load(Policy()).sessions["s"].turn
    assert turn is not None
    assert [message.id for message in turn.messages] == ["m_s_2"]


def test_a_lock_that_another_process_has_leaves_no_descriptor_open(tmp_path: Path) -> None:
    held = lock.take(tmp_path / "lock")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(JournalLocked):
        lock.take(tmp_path / "lock")
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(held)


def test_a_close_gives_up_soon_on_a_reader_that_is_still_there(journal: Journal, tmp_path: Path) -> None:
    journal.commit_now([accepted(1)])
    steps: list[str] = []
    journal._writing.set_trace_callback(steps.append)
    journal.close()
    assert steps == ["PRAGMA busy_timeout = 200", "PRAGMA wal_checkpoint(TRUNCATE)"]
