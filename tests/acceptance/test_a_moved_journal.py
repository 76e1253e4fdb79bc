"""`hermesctl journal move`: a real service goes on after the move, from a file to a server and back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from supervisor.journal.postgres import server_schema
from supervisor.journal.postgres.connecting import connect
from tests import postgres_cluster
from tests.fake_model import FakeModel
from tests.postgres_cluster import Cluster
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

HOLD = "[[silent]] hold"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with postgres_cluster.running() as cluster:
        yield cluster


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url(cluster.new_schema(), cluster.port)


@pytest.fixture
def service(tmp_path: Path, model: FakeModel) -> Iterator[Service]:
    service = Service(tmp_path / "home", settings_for(model, workers="count = 2"))
    yield service
    service.__exit__(None, None, None)


def settle(service: Service, model: FakeModel, journal: Sequence[str] = ()) -> None:
    settings = settings_for(model, workers="count = 2") + "\n".join(journal) + "\n"
    (service.home / "hermes.toml").write_text(settings)


def moved(service: Service, url: str) -> dict[str, Any]:
    done = service.hermesctl("journal", "move", url, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def asks_again(service: Service, session: str, losses: int) -> None:
    """The turn that was held before the move is lost with its service, and gets another attempt."""
    listener = service.listen(session)
    listener.until(lambda: len(listener.of_type("attempt.opened")) == losses + 1)
    assert len(listener.of_type("attempt.lost")) == losses
    assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))


def test_a_service_goes_on_after_the_move_in_both_directions(
    service: Service, model: FakeModel, url: str
) -> None:
    service.start()
    assert service.hermesctl("send", "demo", "one\x01two").returncode == 0
    service.say("held", HOLD)
    listener = service.listen("held")
    listener.until(lambda: listener.of_type("attempt.opened"))
    service.kill()
    there = moved(service, url)
    assert there["settings"] == ["[journal]", f"url = {json.dumps(url)}"]
    assert (there["rows"]["sessions"], there["rows"]["turns"]) == (2, 2)
    assert not service.places.journal.exists()

    settle(service, model, there["settings"])
    service.start()
    asks_again(service, "held", losses=1)
    assert service.hermesctl("send", "demo", "again").returncode == 0
    assert [row["turn"] for row in service.show("turns", session="demo")] == ["demo/2", "demo/1"]
    service.kill()
    # The file that `start` of a test leaves has no session in it.
    back = moved(service, "sqlite:")
    assert back["settings"] == []

    settle(service, model)
    service.start()
    asks_again(service, "held", losses=2)
    assert service.hermesctl("send", "demo", "once more").returncode == 0
    assert len(service.show("turns", session="demo")) == 3
    done = service.hermesctl("journal", "check")
    assert done.returncode == 0, done.stdout
    assert service.stop() == 0


def test_a_move_says_what_to_write_and_changes_no_settings(service: Service, url: str) -> None:
    service.start()
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    before = (service.home / "hermes.toml").read_text()
    running = service.hermesctl("journal", "move", url)
    assert running.returncode == 75
    assert "another supervisor has" in running.stderr
    assert service.stop() == 0
    done = service.hermesctl("journal", "move", url)
    assert done.returncode == 0, done.stderr
    assert f"[journal]\nurl = {json.dumps(url)}\n" in done.stdout
    assert (service.home / "hermes.toml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("sqlite:",), 5, "is in"),
        (("http://db/hermes",), 78, "names no journal"),
        (("postgresql://me:secret@db/hermes",), 78, "contains a password"),
        (("postgresql://db/hermes?password=secret",), 78, "contains a password"),
        (("postgresql://db/hermes", "--password-file", "/nonexistent/file"), 78, "cannot be read"),
        (("postgresql://127.0.0.1:1/hermes",), 5, "does not answer"),
    ],
)
def test_a_target_that_cannot_be_is_refused(
    service: Service, arguments: tuple[str, ...], code: int, words: str
) -> None:
    service.start()
    assert service.stop() == 0
    done = service.hermesctl("journal", "move", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "hint:" in done.stderr
    assert "secret@" not in done.stderr
    assert service.places.journal.exists()


def exit_of(service: Service) -> tuple[int, str]:
    service.launch()
    assert service.process is not None
    return service.process.wait(DEADLINE_SECONDS), service.log()


def test_a_service_too_old_for_the_database_is_refused_with_78(
    service: Service, model: FakeModel, url: str
) -> None:
    settle(service, model, ["[journal]", f'url = "{url}"'])
    service.start()
    assert service.stop() == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE journal_schema SET version = 1000")
    service.start()
    assert service.stop() == 0, "it may be older than the schema"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE journal_schema SET oldest = 1000")
    code, log = exit_of(service)
    assert code == 78
    assert "needs a program for schema 1000" in log


def test_a_service_does_not_start_with_a_database_that_was_moved(
    service: Service, model: FakeModel, url: str
) -> None:
    settle(service, model, ["[journal]", f'url = "{url}"'])
    service.start()
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    assert service.stop() == 0
    moved(service, "sqlite:")
    code, log = exit_of(service)
    assert code == 78
    assert "moved elsewhere" in log


def test_a_move_that_is_killed_leaves_the_source_whole_and_the_target_empty(
    service: Service, cluster: Cluster, url: str
) -> None:
    service.start()
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    assert service.stop() == 0
    with psycopg.connect(url, autocommit=True) as other:
        prepared = connect(url, "hermes test")
        server_schema.prepare(prepared)
        prepared.close()
        other.execute("BEGIN")
        # Rows can be read and not written: the move stands still after the tables before this one.
        other.execute("LOCK TABLE past_turns IN SHARE ROW EXCLUSIVE MODE")
        command = [sys.executable, "-m", "hermesctl", "--home", str(service.home), "journal", "move", url]
        moving = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        with psycopg.connect(url, autocommit=True) as looking:
            until(lambda: looking.execute(waits).fetchone())
        os.killpg(moving.pid, signal.SIGKILL)
        moving.wait(DEADLINE_SECONDS)
        other.execute("ROLLBACK")
    assert service.places.journal.exists()
    done = until(lambda: _is_moved(service.hermesctl("journal", "move", url)))
    assert "1 sessions" in done


def _is_moved(done: "subprocess.CompletedProcess[str]") -> str:
    """The server notices only when the lock is free that its client is gone."""
    assert done.returncode in (0, 75), done.stderr
    return done.stdout
