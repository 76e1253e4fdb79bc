"""A journal moved from its file to a server and back is the same, or it was not moved."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from supervisor.core.policy import Policy
from supervisor.journal import migrate
from supervisor.journal.errors import JournalDamaged, JournalError, JournalLocked, JournalUnfit
from supervisor.journal.move import MovedTable, Row, Source, Target, move, moved_tables
from supervisor.journal.move_files import file_source, file_target
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.move_server import server_source, server_target
from supervisor.journal.postgres.server_journal import ServerJournal
from supervisor.journal.snapshot import durable
from tests.journal.conftest import open_in
from tests.journal.lives import Life, accepted
from tests.journal.test_round_trip import live_through_everything
from tests.postgres_cluster import Cluster

CLIP = bytes(range(256)) * 9
NUL = "before\x00after \x10 and \x10@"


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url(cluster.new_schema())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file with a row in every table, and with texts that PostgreSQL does not take as they are."""
    journal = open_in(tmp_path)
    life = live_through_everything(journal)
    life.say("m_nul", NUL, session="nul")
    journal.close()
    (tmp_path / "clips").mkdir()
    # Of the two clips that messages had, one is there still; the third belongs to no message.
    for name in ("clip two", "stray"):
        (tmp_path / "clips" / name).write_bytes(CLIP)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("INSERT INTO days (day, tokens, cost) VALUES ('2026-11-18', 30, 7)")
        connection.commit()
    return tmp_path


def contents(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table.name: sorted(
                connection.execute(f'SELECT {table.listed} FROM "{table.name}"').fetchall(), key=repr
            )
            for table in moved_tables()
        }


def to_server(folder: Path, url: str) -> str:
    with file_source(folder / "journal.db", folder / "clips") as source, server_target(url, "") as target:
        for _ in move(source, target):
            pass
        return source.retire()


def to_file(url: str, folder: Path) -> None:
    with (
        server_source(url, "", "here") as source,
        file_target(folder / "journal.db", folder / "clips") as target,
    ):
        for _ in move(source, target):
            pass
        source.retire()


def open_server(url: str, folder: Path) -> ServerJournal:
    return ServerJournal.open(url, Host("here", "here"), folder / "supervisor.lock")


def rows_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table.name}".encode()).fetchone()
            for table in moved_tables()
        ]
    return sum(row[0] for row in counts if row is not None)


def test_there_and_back_every_row_is_the_same(folder: Path, url: str, tmp_path: Path) -> None:
    before = contents(folder / "journal.db")
    assert all(before.values()), "every table has a row"
    kept = to_server(folder, url)
    assert contents(Path(kept)) == before
    assert not (folder / "journal.db").exists()
    back = tmp_path / "back"
    back.mkdir()
    to_file(url, back)
    assert contents(back / "journal.db") == before
    assert {each.name: each.read_bytes() for each in (back / "clips").iterdir()} == {"clip two": CLIP}
    journal = open_in(back)
    assert journal.check() == ()
    assert journal.epoch == 2
    journal.close()


def test_work_goes_on_after_the_move_in_both_directions(folder: Path, url: str) -> None:
    """`Life` compares memory and journal after each event; an epoch is never used twice."""
    before = open_in(folder)
    state, epoch = durable(before.load(Policy())), before.epoch
    before.close()
    to_server(folder, url)
    moved = open_server(url, folder)
    assert durable(moved.load(Policy())) == state
    assert moved.epoch > epoch
    assert moved.load(Policy()).sessions["nul"].turn is not None
    life = Life(moved, now=5000.0)
    life.say("m_later", NUL, session="later")
    life.say("m_again", "in a session that was moved", session="s")
    counts = moved.read.counts()
    moved.close()
    to_file(url, folder)
    back = open_in(folder)
    assert back.epoch > moved.epoch
    assert back.read.counts() == counts
    again = Life(back, now=9000.0)
    again.say("m_last", NUL, session="later")
    back.close()


def test_the_columns_of_both_schemas_are_the_same(url: str, tmp_path: Path) -> None:
    open_server(url, tmp_path).close()
    sql = """SELECT column_name FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name = %s"""
    with psycopg.connect(url) as connection:
        for table in moved_tables():
            found = {row[0] for row in connection.execute(sql, (table.name,))}
            assert found - {"life"} == set(table.columns), table.name


class Cut(Exception):
    """The process of the move ends here."""


class CutSource:
    """A source whose reader does not come to the end of a table."""

    def __init__(self, source: Source, at: str) -> None:
        self._source = source
        self._at = at
        self.epoch = source.epoch
        self.clips = source.clips

    def rows(self, table: MovedTable) -> Iterator[Row]:
        for row in self._source.rows(table):
            if table.name == self._at:
                raise Cut
            yield row

    def retire(self) -> str:
        raise AssertionError("the move did not end")


def move_cut(source: AbstractContextManager[Source], target: AbstractContextManager[Target], at: str) -> None:
    with pytest.raises(Cut), source as given, target as taken:
        for _ in move(CutSource(given, at), taken):
            pass


@pytest.mark.parametrize("at", ["sessions", "turns", "past_turns"])
def test_a_move_to_a_server_that_is_cut_off_leaves_it_empty(folder: Path, url: str, at: str) -> None:
    before = contents(folder / "journal.db")
    move_cut(file_source(folder / "journal.db", folder / "clips"), server_target(url, ""), at)
    assert rows_in(url) == 0
    assert contents(folder / "journal.db") == before
    to_server(folder, url)


@pytest.mark.parametrize("at", ["sessions", "turns", "past_turns"])
def test_a_move_to_a_file_that_is_cut_off_leaves_none(folder: Path, url: str, at: str) -> None:
    to_server(folder, url)
    move_cut(server_source(url, "", "here"), file_target(folder / "journal.db", folder / "clips"), at)
    assert [path.name for path in folder.iterdir() if path.name.startswith("journal.db.moving")] == []
    assert not (folder / "journal.db").exists()
    to_file(url, folder)


def test_what_a_killed_move_has_left_is_removed_by_the_next(folder: Path, url: str) -> None:
    to_server(folder, url)
    for suffix in ("", "-journal"):
        (folder / f"journal.db.moving{suffix}").write_text("half of it")
    to_file(url, folder)
    assert open_in(folder).check() == ()
    assert list(folder.glob("journal.db.moving*")) == []


class Lossy:
    """A target that loses or changes a row on its way."""

    def __init__(self, target: Target, at: str, how: str) -> None:
        self._target = target
        self._at = at
        self._how = how
        self.rows, self.clips = target.rows, target.clips

    def take(self, table: MovedTable, rows: Iterable[Row]) -> None:
        self._target.take(table, self._altered(rows) if table.name == self._at else rows)

    def _altered(self, rows: Iterable[Row]) -> Iterator[Row]:
        for number, row in enumerate(rows):
            if number == 0 and self._how == "lost":
                continue
            changed = b"changed" if isinstance(row[-1], bytes) else "changed"
            yield (*row[:-1], changed) if number == 0 else row

    def take_clips(self, clips: Iterable[Row]) -> None:
        self._target.take_clips(self._altered(clips) if self._at == "clips" else clips)

    def finish(self, epoch: int) -> None:
        raise AssertionError("it is not equal")


@contextmanager
def lossy(target: AbstractContextManager[Target], at: str, how: str) -> Iterator[Target]:
    with target as taken:
        yield Lossy(taken, at, how)


@pytest.mark.parametrize("how", ["lost", "changed"])
@pytest.mark.parametrize("at", ["events", "past_turns", "messages", "clips"])
def test_a_row_that_is_lost_or_changed_is_noticed(folder: Path, url: str, at: str, how: str) -> None:
    with (
        pytest.raises(JournalError, match=f"{at} differ after the move"),
        file_source(folder / "journal.db", folder / "clips") as source,
        lossy(server_target(url, ""), at, how) as target,
    ):
        for _ in move(source, target):
            pass
    assert rows_in(url) == 0


def test_a_database_that_is_not_empty_is_refused(folder: Path, url: str) -> None:
    journal = open_server(url, folder)
    journal.commit_now([accepted(1)])
    journal.close()
    with pytest.raises(JournalError, match="not empty"):
        to_server(folder, url)
    assert rows_in(url) > 0
    assert (folder / "journal.db").exists()


def test_a_file_that_is_not_empty_is_refused(folder: Path, url: str) -> None:
    to_server(folder, url)
    journal = open_in(folder)
    journal.close()
    journal = open_in(folder)
    journal.commit_now([accepted(1)])
    journal.close()
    with pytest.raises(JournalError, match="already"):
        to_file(url, folder)
    journal = open_in(folder)
    assert journal.read.session_seq("s") == 1
    journal.close()


def test_a_file_without_a_row_is_replaced(folder: Path, url: str) -> None:
    """A start before hermes.toml had the url leaves one."""
    before = contents(folder / "journal.db")
    to_server(folder, url)
    open_in(folder).close()
    to_file(url, folder)
    assert contents(folder / "journal.db") == before


def test_a_database_that_another_host_has_is_refused(folder: Path, url: str) -> None:
    to_server(folder, url)
    other = ServerJournal.open(url, Host("there", "there"), folder / "other.lock")
    with pytest.raises(JournalLocked, match="host there"):
        to_file(url, folder)
    other.close()
    to_file(url, folder)


def test_a_life_that_ended_without_a_word_cannot_write_after_the_move(folder: Path, url: str) -> None:
    to_server(folder, url)
    former = open_server(url, folder)
    to_file(url, folder)
    with pytest.raises(JournalError):
        former.commit_now([accepted(1, session="new")])


def test_no_service_starts_with_a_database_that_was_moved(folder: Path, url: str) -> None:
    to_server(folder, url)
    to_file(url, folder)
    with pytest.raises(JournalUnfit, match="moved elsewhere"):
        open_server(url, folder)
    with pytest.raises(JournalUnfit, match="moved elsewhere"):
        to_file(url, folder)


def test_a_damaged_file_is_not_moved(folder: Path, url: str) -> None:
    path = folder / "journal.db"
    content = bytearray(path.read_bytes())
    content[4096 : 3 * 4096] = b"\xff" * (2 * 4096)
    path.write_bytes(content)
    with pytest.raises(JournalDamaged):
        to_server(folder, url)


def test_a_file_of_an_older_schema_is_not_moved(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: (*older, (older[-1][0] + 1, "")))
    with pytest.raises(JournalError, match="schema"):
        to_server(folder, url)


def test_one_database_is_moved_to_another(folder: Path, url: str, cluster: Cluster) -> None:
    before = contents(folder / "journal.db")
    to_server(folder, url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE other")
    other = cluster.url().replace("/postgres?", "/other?")
    with server_source(url, "", "here") as source, server_target(other, "") as target:
        assert dict(move(source, target)).keys() == before.keys() | {"clips"}
        source.retire()
    to_file(other, folder)
    assert contents(folder / "journal.db") == before


def test_a_database_is_not_moved_onto_itself(folder: Path, url: str) -> None:
    to_server(folder, url)
    with (
        server_source(url, "", "here"),
        pytest.raises(JournalLocked, match="being moved"),
        server_target(url, ""),
    ):
        pass
