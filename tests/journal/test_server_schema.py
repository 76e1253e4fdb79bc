"""The schema on a server: older and newer programs side by side, as far as the newest step allows."""

import shutil
from pathlib import Path

import psycopg
import pytest

from supervisor.journal.errors import JournalUnfit
from supervisor.journal.migrate import steps_in
from supervisor.journal.postgres import host_life, server_schema
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.server_journal import ServerJournal
from tests.journal.lives import accepted
from tests.postgres_cluster import Cluster


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url(cluster.new_schema())


def open_at(url: str, folder: Path, host: str = "here") -> ServerJournal:
    return ServerJournal.open(url, Host(host, host), folder / f"{host}.lock")


def mark(url: str, **columns: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in columns.items():
            connection.execute(f"UPDATE journal_schema SET {name} = {value}".encode())


def marks(url: str) -> tuple[int, int]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT version, oldest FROM journal_schema").fetchone()
    assert found is not None
    return found


def test_a_program_goes_on_with_a_schema_that_a_newer_one_has_added_to(url: str, tmp_path: Path) -> None:
    open_at(url, tmp_path).close()
    newer = server_schema.newest() + 1
    mark(url, version=newer)
    journal = open_at(url, tmp_path)
    journal.commit_now([accepted(1)])
    journal.close()
    assert marks(url)[0] == newer, "an older program does not take it back"


def test_a_program_that_is_too_old_is_refused_and_changes_nothing(url: str, tmp_path: Path) -> None:
    open_at(url, tmp_path).close()
    newer = server_schema.newest() + 1
    mark(url, version=newer, oldest=newer)
    with pytest.raises(JournalUnfit, match=f"needs a program for schema {newer}"):
        open_at(url, tmp_path)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM lives").fetchone() == (1,)


def test_an_older_schema_is_migrated_with_what_is_in_it(url: str, tmp_path: Path) -> None:
    """By the steps that a database of the first version lacks."""
    steps = steps_in(server_schema._STEPS)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE journal_schema (version bigint NOT NULL)")
        connection.execute("INSERT INTO journal_schema (version) VALUES (1)")
        connection.execute(steps[0][1].encode())
        connection.execute(
            "INSERT INTO sessions (name, seq, turns, held, created_at, last_at) VALUES ('s', 4, 1, 0, 1, 2)"
        )
    journal = open_at(url, tmp_path)
    assert journal.read.session_seq("s") == 4
    journal.close()
    version, oldest = marks(url)
    assert version == server_schema.newest()
    assert oldest <= version


def test_a_migration_that_excludes_a_running_host_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host would go on writing to tables that it does not know."""
    old = open_at(url, tmp_path, "old")
    before, newer = marks(url), server_schema.newest() + 1
    steps = shutil.copytree(str(server_schema._STEPS), tmp_path / "steps")
    (steps / f"{newer:04}_step.sql").write_text(f"UPDATE journal_schema SET oldest = {newer};")
    monkeypatch.setattr(server_schema, "_STEPS", steps)
    with pytest.raises(JournalUnfit, match="host old runs version"):
        open_at(url, tmp_path, "new")
    assert marks(url) == before
    old.commit_now([accepted(1)])
    old.close()
    open_at(url, tmp_path, "new").close()
    assert marks(url) == (newer, newer)


def test_a_migration_excludes_a_host_whose_lease_is_over(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has died, and no start would ever be allowed."""
    old = open_at(url, tmp_path, "old")
    old._keeper.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE lives SET until = clock_timestamp() - interval '1 s'")
    newer = server_schema.newest() + 1
    steps = shutil.copytree(str(server_schema._STEPS), tmp_path / "steps")
    (steps / f"{newer:04}_step.sql").write_text(f"UPDATE journal_schema SET oldest = {newer};")
    monkeypatch.setattr(server_schema, "_STEPS", steps)
    open_at(url, tmp_path, "new").close()
    assert marks(url) == (newer, newer)
    old.close()


def test_a_schema_that_was_migrated_since_it_was_looked_at_is_refused(url: str, tmp_path: Path) -> None:
    """By a newer program, before this one has begun its life."""
    open_at(url, tmp_path).close()
    mark(url, oldest=server_schema.newest() + 1)
    with connect(url, "test") as connection, pytest.raises(JournalUnfit, match="needs a program for schema"):
        host_life.begin(connection, Host("here", "here"))


def test_a_database_that_cannot_hold_every_text_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(JournalUnfit, match="encoding SQL_ASCII"):
        open_at(cluster.url().replace("/postgres?", "/ascii?"), tmp_path)
