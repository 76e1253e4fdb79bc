"""An older file is brought to the newest shape with everything in it; a step that fails changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from supervisor.journal import migrate
from supervisor.journal.errors import JournalError
from supervisor.journal.journal import epoch_of
from tests.journal.conftest import open_in
from tests.journal.test_opening import ended

STEP = "CREATE TABLE extra (id INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT;"


def test_an_empty_file_is_given_every_step(tmp_path: Path) -> None:
    (tmp_path / "journal.db").touch()
    journal = open_in(tmp_path)
    assert migrate.version(journal._reading) == migrate.newest()
    journal.close()


def test_an_older_journal_is_migrated_with_all_that_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_in(tmp_path)
    journal.commit_now([record for number in range(1, 20) for record in ended("s", number)])
    journal.close()
    older = migrate.steps()
    newer = [*older, (older[-1][0] + 1, STEP)]
    monkeypatch.setattr(migrate, "steps", lambda: newer)
    journal = open_in(tmp_path)
    assert migrate.version(journal._reading) == newer[-1][0]
    assert journal._reading.execute("SELECT count(*) FROM extra").fetchone() == (0,)
    assert [event.seq for event in journal.read.events_after("s", 0, 100)] == list(range(1, 58))
    journal.close()


def test_a_step_that_fails_leaves_the_older_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_in(tmp_path).close()
    older = migrate.steps()
    broken = [*older, (older[-1][0] + 1, STEP + "INSERT INTO nowhere VALUES (1);")]
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "steps", lambda: broken)
        with pytest.raises(JournalError, match="nowhere"):
            open_in(tmp_path)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        assert migrate.version(connection) == older[-1][0]
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (
            0,
        )
        assert epoch_of(connection) == 1
    open_in(tmp_path).close()
