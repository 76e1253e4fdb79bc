"""An older file is brought to the newest shape with everything in it; a step that fails changes nothing."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.journal import migrate
from supervisor.journal.errors import JournalError
from supervisor.journal.journal import Journal, epoch_of
from tests.journal.conftest import open_in
from tests.journal.lives import Life
from tests.journal.test_opening import ended
from tests.journal.test_round_trip import live_through_a_day

STEP = "CREATE TABLE extra (id INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT;"
# Tables and columns of the first version that have another name now.
_RENAMED = {"speech": "texts", "said": "text_length"}


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


def test_the_first_shape_is_migrated_row_by_row(tmp_path: Path) -> None:
    """What was written by the first version reads the same in this one, and its open turn goes on."""
    (tmp_path / "newest").mkdir()
    newest = open_in(tmp_path / "newest")
    life = live_through_a_day(newest)
    life.say("m_open", "still open", session="t")
    expected, feed = contents(newest), newest.read.events_after("s", 0, 1000)
    newest.close()
    make_first_shape(tmp_path / "newest" / "journal.db", tmp_path / "journal.db")
    journal = open_in(tmp_path)
    assert migrate.version(journal._reading) == migrate.newest()
    for row in expected["turns"]:
        row["agent"], row["earlier_length"] = "", 0
    for row in expected["attempts"]:
        row["level"] = ""
    assert contents(journal) == {table: sorted(rows, key=repr) for table, rows in expected.items()}
    assert journal.read.events_after("s", 0, 1000) == feed
    assert journal.check() == ()
    again = Life(journal, replace(life.policy, agent_of=lambda session: "poet"), now=life.now)
    turn = again.state.sessions["t"].turn
    assert turn is not None
    assert turn.agent == "poet"
    journal.close()


def make_first_shape(newest: Path, path: Path) -> None:
    """The same rows as the first version would have written them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate._apply(connection, *migrate.steps()[0])
        connection.execute("ATTACH ? AS newest", (str(newest),))
        tables = connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            source = _RENAMED.get(table, table)
            known = {row[1] for row in connection.execute(f"PRAGMA newest.table_info({source})")}
            columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
            pairs = [(name, _RENAMED.get(name, name)) for name in columns]
            kept = [(first, now) for first, now in pairs if now in known]
            firsts, nows = (", ".join(f'"{pair[side]}"' for pair in kept) for side in (0, 1))
            connection.execute(f"DELETE FROM main.{table}")
            if table == "messages":
                nows = nows.replace('"state"', "iif(state = 'failed', 'refused', state)")
            connection.execute(f"INSERT INTO main.{table} ({firsts}) SELECT {nows} FROM newest.{source}")
        connection.execute(
            """UPDATE main.events SET body = json_remove(json_set(body, '$.said', body -> '$.offset'),
                   '$.offset')
               WHERE type = 'attempt.lost'"""
        )


def contents(journal: Journal) -> dict[str, list[dict[str, object]]]:
    """Every row of every table that the first version had."""
    found: dict[str, list[dict[str, object]]] = {}
    for table in ("sessions", "messages", "turns", "attempts", "texts", "tool_calls", "questions", "events"):
        rows = journal._rows.all(f"SELECT * FROM {table}")
        plain = [{name: value for name, value in dict(row).items() if name != "position"} for row in rows]
        found[table] = sorted(plain, key=repr)
    return found


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
