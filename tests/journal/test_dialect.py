"""The server's tables and statements are those of the file, in another dialect."""

import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as some

from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.journal.errors import JournalError
from supervisor.journal.journal import connect
from supervisor.journal.postgres.dialect import escaped, translated, unescaped
from tests.journal.conftest import Shelf, open_in
from tests.journal.lives import accepted
from tests.journal.test_fences import DONE, RUNNING, SPOKE, TOOL, TOOL_END
from tests.postgres_cluster import Cluster

# Rows of a journal file that has one life at a time; on a server they belong to a life.
_OF_A_LIFE = {"life", "tallies", "days"}
_CONTROLS = "".join(map(chr, range(32))) + "\x7f\x80\U0010ffff"


@given(some.text(some.sampled_from("\x00\x10@x\x1f")))
def test_an_escaped_text_has_no_nul_and_comes_back(text: str) -> None:
    assert "\x00" not in escaped(text)
    assert unescaped(escaped(text)) == text


@pytest.mark.parametrize("text", ["a\x00b", "\x10@", "\x10\x00\x10@\x10", r"\u0000 \\u0000", _CONTROLS])
def test_every_character_comes_back_as_it_was_sent(shelf: Shelf, text: str) -> None:
    journal = shelf.open()
    records: list[Record] = [replace(RUNNING[0], text=text), *RUNNING[1:], replace(SPOKE, text=text)]
    records += [replace(TOOL, arguments=text, at=5.0), replace(TOOL_END, seq=5, result=text)]
    journal.commit_now(records)
    session = journal.load(Policy()).sessions["s"]
    assert session.turn is not None
    assert session.turn.attempt is not None
    assert session.turn.messages[0].text == session.turn.attempt.text == text
    assert journal.read.events_after("s", 0, 1)[0].fields["text"] == text
    journal.commit_now([replace(DONE, seq=6, text=text)])
    assert journal.read.events_after("s", 5, 1)[0].fields["text"] == text
    journal.commit_now([replace(accepted(7), text=text, message="m_later")])
    known = journal.known("m_later")
    assert known is not None
    assert known.text == text


def test_the_server_has_every_table_and_column_of_the_file(cluster: Cluster, tmp_path: Path) -> None:
    open_in(tmp_path).close()
    with closing(connect(str(tmp_path / "journal.db"))) as file:
        in_file = file.execute(
            """SELECT schema.name, info.name FROM sqlite_schema AS schema
               JOIN pragma_table_info(schema.name) AS info WHERE schema.type = 'table'"""
        ).fetchall()
    shelf = Shelf("postgres", tmp_path, cluster.url(cluster.new_schema()))
    shelf.open()
    with psycopg.connect(shelf.url) as connection:
        on_server = connection.execute(
            """SELECT table_name, column_name FROM information_schema.columns
               WHERE table_schema = current_schema()"""
        ).fetchall()
    shelf.close()
    expected = {(table, column) for table, column in in_file if table not in _OF_A_LIFE}
    known = {(table, column) for table, column in on_server if (table, column) in expected}
    assert known == expected
    own = {"lives", "owners", "homes", "requests", "clips", "journal_schema"}
    assert {table for table, _ in on_server} - {table for table, _ in in_file} == own


def test_neither_an_error_nor_the_servers_log_quotes_a_person(cluster: Cluster, tmp_path: Path) -> None:
    shelf = Shelf("postgres", tmp_path, cluster.url(cluster.new_schema()))
    journal = shelf.open()
    said = "a swordfish that was said"
    journal.commit_now([accepted(1, text=said)])
    refused: list[Record] = [
        replace(accepted(1, text=said), seq=2),  # a message twice
        accepted(3, text=said),  # a gap
        accepted(2, text=said + "\ud800"),
        accepted(2, text=said, seq=2**70),
        replace(accepted(1, session="t", text=said), busy=2**70),  # type: ignore[arg-type]
    ]
    for record in refused:
        with pytest.raises(JournalError) as refusal:
            journal.commit_now([record])
        assert "swordfish" not in str(refusal.value)
    shelf.close()
    assert "swordfish" not in (cluster.folder / "log").read_text()


def test_parameters_are_written_as_psycopg_wants_them() -> None:
    assert translated("a = ? AND b LIKE ?") == b"a = %s AND b ILIKE %s"
    assert translated("a = ?1 OR ?2 IS NULL") == b"a = %(p1)s OR %(p2)s::text IS NULL"
    assert translated("a = :turn AND b = :ids::text[]") == b"a = %(turn)s AND b = %(ids)s::text[]"
    assert translated("a % 2 FROM x INDEXED BY y") == b"a %% 2 FROM x "


def test_a_journal_on_disk_needs_no_driver_of_a_server() -> None:
    code = "import sys, supervisor.entry; print([name for name in sys.modules if 'psycopg' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
