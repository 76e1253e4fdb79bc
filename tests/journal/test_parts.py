"""The small parts of the journal, each by itself: settings of the file, lock, errors, folding, snapshots."""

import asyncio
import fcntl
import json
import os
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipc.places import find_places
from supervisor.core.policy import Policy
from supervisor.core.records import AttemptOpened, Record, TurnOpened
from supervisor.core.state import BusyMode, Message, Session, State, Turn, Who
from supervisor.journal import __main__ as care
from supervisor.journal import lock, migrate
from supervisor.journal.budget import Budget
from supervisor.journal.errors import (
    JournalDamaged,
    JournalError,
    JournalFenced,
    JournalLocked,
    JournalUnwritable,
    named,
)
from supervisor.journal.fused_insert import Begun, folded
from supervisor.journal.journal import Journal
from supervisor.journal.snapshot import durable
from tests.journal.conftest import open_in
from tests.journal.lives import Life, accepted
from tests.waiting import DEADLINE_SECONDS

FULL = 2


def _setting(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_a_commit_is_synced_and_carries_nothing_over(journal: Journal) -> None:
    """What a power cut would show, and no test can wait for: SQLite's own account of how it writes."""
    assert _setting(journal._writing, "synchronous") == FULL
    assert _setting(journal._writing, "wal_autocheckpoint") == 0
    assert _setting(journal._writing, "journal_mode") == "wal"


def test_a_journal_is_handed_over_with_its_lock_and_its_epoch(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([accepted(1)])
    held, _ = journal.hand_over()
    assert os.get_inheritable(held)
    assert not journal._group_commit._thread.is_alive()
    with pytest.raises(JournalLocked):
        lock.take(tmp_path / "supervisor.lock")
    journal.close()
    taken = Journal.take_over(tmp_path / "journal.db", held)
    assert not os.get_inheritable(held)
    assert (taken.epoch, taken.read.session_seq("s")) == (journal.epoch, 1)
    assert _setting(taken._writing, "synchronous") == FULL
    taken.close()
    os.close(lock.take(tmp_path / "supervisor.lock"))


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("something longer than any pid\n")
    held = lock.take(path)
    assert path.read_text() == f"{os.getpid()}\n"
    with pytest.raises(
        JournalLocked, match=rf"another supervisor has .*lock \(pid {os.getpid()}\)"
    ) as refused:
        lock.take(path)
    assert refused.value.pid == os.getpid()
    os.close(held)


def test_a_lock_held_by_a_stranger_has_no_pid(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as stranger:
        fcntl.flock(stranger, fcntl.LOCK_EX)
        for content in ("", "no pid\n"):
            path.write_text(content)
            with pytest.raises(JournalLocked, match=r"\(pid unknown\)") as refused:
                lock.take(path)
            assert refused.value.pid == 0


def test_a_lock_without_a_folder_is_refused_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(JournalUnwritable, match=r"cannot be opened \(No such file or directory\)"):
        lock.take(tmp_path / "absent" / "lock")


def _sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("table turns")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "kind", "fault"),
    [
        (_sqlite_error("SQLITE_FULL"), JournalUnwritable, "no space left for the journal j.db"),
        (_sqlite_error("SQLITE_NOTADB"), JournalDamaged, "the journal j.db is damaged (table turns)"),
        (_sqlite_error("SQLITE_CORRUPT_VTAB"), JournalDamaged, "the journal j.db is damaged (table turns)"),
        (
            _sqlite_error("SQLITE_CONSTRAINT_UNIQUE"),
            JournalFenced,
            "the journal j.db refused a record (SQLITE_CONSTRAINT_UNIQUE: table turns)",
        ),
        (
            UnicodeEncodeError("utf-8", "secret \ud800", 7, 8, "no"),
            JournalFenced,
            "the journal j.db refused a record (UnicodeEncodeError: a value SQLite cannot hold)",
        ),
        (
            _sqlite_error("SQLITE_IOERR_READ"),
            JournalUnwritable,
            "the journal j.db cannot be used (SQLITE_IOERR_READ: table turns)",
        ),
    ],
)
def test_errors_of_sqlite_are_named(error: Exception, kind: type[JournalError], fault: str) -> None:
    found = named(error, "j.db")
    assert type(found) is kind
    assert found.fault == fault
    assert str(found) == f"{fault}; {found.hint}"
    assert "secret" not in str(found)


def _triple() -> list[Any]:
    return [
        accepted(1),
        TurnOpened(session="s", at=1.0, seq=2, turn="s/1", number=1, messages=("m_s_1",)),
        AttemptOpened(session="s", at=1.0, seq=3, turn="s/1", attempt=1, who=Who(1, 0, 1), pid=7),
    ]


def test_a_message_with_its_turn_and_attempt_is_one_insert() -> None:
    before, after = accepted(1, "before"), accepted(1, "after")
    found = list(folded([before, *_triple(), after]))
    assert found == [before, Begun(*_triple()), after]
    assert found[1].records == tuple(_triple())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("at", "other"),
    [
        (0, {"clip": "a.wav"}),
        (0, {"session": "t"}),
        (0, {"seq": 2}),
        (1, {"messages": ("m_s_1", "m_s_2")}),
        (1, {"turn": "s/2"}),
        (1, {"number": 2}),
        (1, {"session": "t"}),
        (1, {"seq": 4}),
        (2, {"attempt": 2}),
        (2, {"turn": "s/2"}),
        (2, {"session": "t"}),
        (2, {"seq": 4}),
    ],
    ids=str,
)
def test_what_does_not_belong_together_is_written_one_by_one(at: int, other: dict[str, Any]) -> None:
    records = _triple()
    records[at] = replace(records[at], **other)
    assert list(folded(records)) == records


def test_a_first_message_is_folded_into_the_first_turn_only() -> None:
    records = _triple()
    records[1] = replace(records[1], turn="s/2", number=2)
    records[2] = replace(records[2], turn="s/2")
    assert list(folded(records)) == records
    later = [replace(record, seq=record.seq + 3) for record in records]
    assert len(list(folded(later))) == 1


def test_what_is_folded_is_fenced_and_loaded_like_single_records(tmp_path: Path) -> None:
    states = []
    for name, batches in (("folded", [_triple()]), ("single", [[each] for each in _triple()])):
        (tmp_path / name).mkdir()
        with closing(open_in(tmp_path / name)) as journal:
            for batch in batches:
                journal.commit_now(batch)
            with pytest.raises(JournalFenced):
                journal.commit_now(_triple())
            states.append((durable(journal.load(Policy())), journal.read.events_after("s", 0, 9)))
    assert states[0] == states[1]


def _session(**other: Any) -> State:
    waiting = Message("m_2", "text", BusyMode.QUEUE, 2.0, seq=4)
    turn = Turn("s/1", "s", (Message("m_1", "first", BusyMode.QUEUE, 1.0, seq=1),), 1.0)
    state = State(Policy(), epoch=1)
    state.sessions["s"] = Session("s", seq=4, turns=1, turn=turn, waiting=deque([waiting]))
    for name, value in other.items():
        setattr(state.sessions["s"], name, value)
    return state


def test_a_snapshot_differs_where_the_durable_part_does() -> None:
    snapshot = durable(_session())
    assert snapshot == durable(_session())
    assert snapshot["s"].waiting[0].text == "text"
    assert snapshot["s"].turn is not None
    assert snapshot["s"].turn.messages[0].id == "m_1"
    assert snapshot != durable(_session(seq=5))
    assert snapshot != durable(_session(turn=None))
    assert snapshot != durable(_session(waiting=deque()))
    # A session at rest may be in memory or not.
    assert durable(_session(turn=None, waiting=deque())) == {}


def test_reads_of_a_closed_file_are_named_errors(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    journal._reading.close()
    reads: tuple[Callable[[], object], ...] = (
        lambda: journal.read.session_seq("s"),
        lambda: journal.read.events_after("s", 0, 1),
    )
    for read in reads:
        with pytest.raises(JournalError, match="cannot be used"):
            read()
    journal.close()


def test_the_newest_event_and_long_names_are_found(journal: Journal) -> None:
    assert journal.read.newest_at() == 0.0
    journal.commit_now([accepted(1, "short"), accepted(1, "n" * 40), accepted(2, "short")])
    assert journal.read.newest_at() == 2.0
    assert journal.read.long_names(40) == ["n" * 40]
    assert journal.read.long_names(41) == []


def test_a_migration_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.Error):
            migrate._apply(connection, 7, "CREATE TABLE half (x); NONSENSE;")
        assert not connection.in_transaction
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert migrate.version(connection) == 0


def test_a_budget_remembers_every_cut() -> None:
    budget = Budget(10_000, by_shares=True)
    budget.take("x" * 20_000)
    assert not budget.is_spent
    assert budget.was_cut
    budget.take("short")
    assert budget.was_cut
    exact = Budget(1000)
    exact.take("y" * 100)
    assert not exact.was_cut
    exact.spend("z" * exact.left)
    assert exact.was_cut


def _cared(home: Path, capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, list[Any], str]:
    sys.argv[1:] = [*line, "--home", str(home)]
    status = care.main()
    shown = capsys.readouterr()
    return status, [json.loads(row) for row in shown.out.splitlines()], shown.err


def test_a_journal_at_rest_is_cared_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["journal"])
    status, rows, complaint = _cared(tmp_path, capsys, "check")
    assert (status, rows) == (5, [])
    assert complaint.startswith(f"hermesctl: there is no journal {tmp_path}")
    assert "hint: start the service once" in complaint
    journal = open_in(tmp_path)
    held = lock.take(find_places(str(tmp_path)).lock)
    assert _cared(tmp_path, capsys, "check")[0] == 75
    os.close(held)
    Life(journal).say("m_1", "hello")
    journal.commit_now([accepted(number, "t") for number in range(1, 301)])
    journal.close()
    status, (checked,), complaint = _cared(tmp_path, capsys, "check")
    assert (status, checked["ok"], checked["findings"], complaint) == (0, True, [], "")
    assert _cared(tmp_path, capsys, "stats")[1][0]["rows"]["messages"] == 301
    of_one = _cared(tmp_path, capsys, "export", "--session", "s")[1]
    assert {row.get("session") or row.get("name") for row in of_one} == {"s"}
    exported = _cared(tmp_path, capsys, "export")[1]
    assert sum(row["table"] == "messages" for row in exported) == 301
    status, (made,), _ = _cared(tmp_path, capsys, "backup", "--file", str(tmp_path / "copy.db"))
    assert (status, made["file"]) == (0, str(tmp_path / "copy.db"))
    assert _cared(tmp_path, capsys, "repair")[0] == 0
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("UPDATE sessions SET seq = seq + 1")
    connection.close()
    assert _cared(tmp_path, capsys, "check")[1][0]["ok"] is False
    # Last: a process that complains ends, and its lock with it.
    assert _cared(tmp_path, capsys, "backup", "--file", str(tmp_path / "copy.db"))[0] == 5


def test_the_command_line_of_the_journal_has_its_exit_status(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "supervisor.journal", "stats", "--home", str(tmp_path)]
    assert subprocess.run(line, capture_output=True).returncode == 5


def _unknown(records: list[Record]) -> list[Record]:
    """Records of which one is of a class that no statement is for."""

    class Unknown(Record):
        pass

    return [*records, Unknown(session="s", at=1.0)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_commit_that_breaks_the_writing_thread_comes_back_all_the_same(tmp_path: Path) -> None:
    journal = open_in(tmp_path)

    async def commit() -> None:
        await asyncio.wait_for(journal.commit(_unknown([accepted(1)])), DEADLINE_SECONDS)

    with pytest.raises(JournalError):
        asyncio.run(commit())
    assert journal.read.session_seq("s") == 0
    journal.close()
