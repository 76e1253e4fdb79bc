"""Lives of a supervisor whose workers are puppets: it starts, recovers, reloads its settings, and stops."""

import asyncio
import os
import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipc.admin_messages import Care, Drain, Reload, Scale, Stop
from ipc.messages import Accepted, Done, Interrupt, Queue, Refused, Retry, Submit, Table
from ipc.places import is_listening
from supervisor.app import App
from supervisor.journal import journal
from tests.supervisor.puppet_service import SETTINGS, PuppetService
from tests.waiting import until


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PuppetService]:
    with PuppetService(tmp_path / "home") as made:
        yield made


def say(service: PuppetService, session: str, text: str, key: str = "k") -> None:
    assert isinstance(service.ask(Submit(session, text, key, busy="queue")), Accepted)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_running_turn_is_resumed_by_the_next_life(service: PuppetService, ending: signal.Signals) -> None:
    say(service, "done", "say finish")
    service.until_state("done/1", "done")
    say(service, "s", "say wait")
    say(service, "s", "finish", "next")
    service.until_state("s/1", "running")
    assert service.status()["epoch"] == 1
    assert service.restart(ending) == (0 if ending is signal.SIGTERM else -signal.SIGKILL)
    row = service.until_state("s/1", "running")
    assert row["attempts"] == 2
    assert service.status()["epoch"] == 2
    assert len(service.rows("turns", session="done")) == 1
    assert service.ask(Interrupt("s", "me")) == Done(("s/1",))
    service.until_state("s/1", "interrupted")


def test_no_event_is_before_the_text_of_a_turn_that_an_earlier_life_began(service: PuppetService) -> None:
    """The clock was set back in between: words came an hour after the last event."""
    say(service, "s", "say wait")
    service.until_state("s/1", "running")
    service.close(signal.SIGKILL)
    with closing(sqlite3.connect(service.places.journal)) as journal, journal:
        (newest,) = journal.execute("SELECT max(at) FROM events").fetchone()
        journal.execute("UPDATE turns SET content_at = ?", (newest + 3600,))
    service._start()
    service.until_state("s/1", "running")
    with closing(sqlite3.connect(service.places.journal)) as journal:
        later = journal.execute("SELECT at FROM events WHERE at > ?", (newest,)).fetchall()
    assert later
    assert min(at for (at,) in later) >= newest + 3600


def test_a_stop_is_answered_and_the_process_ends(service: PuppetService) -> None:
    say(service, "s", "say wait")
    service.until_state("s/1", "running")
    answer = service.ask(Stop())
    assert isinstance(answer, Done)
    until(service._has_ended)
    assert not is_listening(service.places.control)
    assert not os.path.exists(service.places.control)
    assert not Path(f"{service.places.journal}-wal").exists(), "the journal was closed"


def test_a_worker_that_dies_costs_an_attempt_and_poison_ends_the_turn(service: PuppetService) -> None:
    say(service, "once", "say die finish")
    assert service.until_state("once/1", "done")["attempts"] == 2
    metrics = {row["name"]: row for row in service.rows("metrics")}
    assert metrics["hermes_worker_deaths_total"]


def test_a_running_turn_is_steered(service: PuppetService) -> None:
    say(service, "s", "steer say finish")
    service.until_state("s/1", "running")
    assert isinstance(service.ask(Submit("s", "more", "steer", busy="steer")), Accepted)
    row = service.until_state("s/1", "done")
    assert len(row["messages"]) == 2


def test_a_clip_is_refused_where_nobody_hears(service: PuppetService) -> None:
    assert isinstance(service.ask(Submit("s", "", "k", clip="absent.wav")), Refused)


def test_the_journal_is_looked_after(service: PuppetService, tmp_path: Path) -> None:
    say(service, "s", "say finish")
    service.until_state("s/1", "done")
    for _ in range(5):  # one after the other: four at once are the limit
        (checked,) = service.client.rows(Care("check"))
        assert (checked["ok"], checked["findings"]) == (True, [])
    (stats,) = service.client.rows(Care("stats"))
    assert stats["epoch"] == 1
    exported = list(service.client.rows(Care("export", session="s")))
    assert exported
    backup = tmp_path / "backup.db"
    assert isinstance(service.ask(Care("backup", file=str(backup))), Table)
    assert backup.exists()
    assert isinstance(service.ask(Care("prune", older="1000d")), Table)
    assert service.rows("turns", session="s")
    assert isinstance(service.ask(Care("prune", older="never")), Refused)
    for file in (None, "backup.db", "/"):
        refused = service.ask(Care("backup", file=file))
        assert isinstance(refused, Refused)
        assert refused.error == "a backup needs the whole path of its file"

    def is_pruned() -> bool:
        assert isinstance(service.ask(Care("prune", older="1s")), Table)
        return not service.rows("turns", session="s")

    until(is_pruned)


def test_settings_are_read_again_whole_or_not_at_all(service: PuppetService) -> None:
    settings = service.places.settings_file
    assert service.ask(Reload()) == Table(())
    settings.write_text(SETTINGS.replace("count = 2", "count = 3").replace("nobody asks it", "another"))
    table = service.ask(Reload())
    assert isinstance(table, Table)
    assert [(row["key"], row["applies"]) for row in table.rows] == [
        ("[model] name", "at once"),
        ("[workers] count", "at once"),
    ]
    until(lambda: len(service.rows("workers")) == 3)
    assert service.status()["model"] == "another at http://127.0.0.1:9/v1"
    settings.write_text(SETTINGS.replace("count = 2", "count = 0"))
    refused = service.ask(Reload())
    assert isinstance(refused, Refused)
    assert refused.hint.endswith("; the settings in force have not changed")
    settings.write_text("")
    removed = service.ask(Reload())
    assert isinstance(removed, Refused)
    assert "no [model] any more" in removed.error
    assert service.status()["seats"] == 3


def test_sighup_reads_the_settings_again(service: PuppetService) -> None:
    service.places.settings_file.write_text(SETTINGS.replace("count = 2", "count = 1"))
    os.kill(service.pid, signal.SIGHUP)
    until(lambda: service.status()["seats"] == 1)


def test_a_scale_is_not_overruled_by_another_change(service: PuppetService) -> None:
    assert isinstance(service.ask(Scale(seats=4)), Done)
    service.places.settings_file.write_text(SETTINGS.replace("nobody asks it", "another"))
    assert isinstance(service.ask(Reload()), Table)
    assert service.status()["seats"] == 4


def test_a_retry_goes_to_the_agent_of_the_session_when_its_own_is_gone(tmp_path: Path) -> None:
    with PuppetService(tmp_path / "home", f"{SETTINGS}[agents.other]\n") as service:
        assert isinstance(service.ask(Submit("s", "fail", "k", agent="other")), Accepted)
        assert service.until_state("s/1", "failed")["agent"] == "other"
        assert isinstance(service.ask(Retry("s/1", "again")), Accepted)
        assert service.until_state("s/2", "failed")["agent"] == "other"
        service.places.settings_file.write_text(SETTINGS)
        assert isinstance(service.ask(Reload()), Table)
        assert isinstance(service.ask(Retry("s/1", "once more")), Accepted)
        assert service.until_state("s/3", "failed")["agent"] == "default"


def fail_at_once() -> None:
    """A commit waits for SQLite's lock for a moment only."""
    assert hasattr(journal, "_BUSY_SECONDS")
    journal._BUSY_SECONDS = 0.05


def test_without_a_disk_only_what_needs_no_record_is_served(tmp_path: Path) -> None:
    with PuppetService(tmp_path / "home", prepare=fail_at_once) as service:
        say(service, "s", "say wait")
        service.until_state("s/1", "running")
        with closing(sqlite3.connect(service.places.journal, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = service.client.post(Submit("t", "finish", "k"))
            until(lambda: service.status()["state"] == "stuck")
            assert any(hint.startswith("nothing is accepted for ") for hint in service.status()["hints"])
            for request in (Submit("u", "x", "k"), Queue("s", "clear"), Drain(), Scale(seats=3)):
                refused = service.ask(request)
                assert isinstance(refused, Refused), request
                assert refused.retry_after_seconds == 5.0
            assert service.ask(Queue("s")) == Table(())
            interrupted = service.ask(Interrupt("s", "me"))
            assert isinstance(interrupted, Done)
            assert len(interrupted.killed) == 1
            assert "database is locked" in interrupted.unwritten
            assert service.ask(Interrupt("s", "me")) == interrupted
            other.execute("ROLLBACK")
        assert isinstance(service.next_to(waiting), Accepted)
        until(lambda: service.status()["state"] == "ready")
        service.until_state("s/1", "interrupted")
        service.until_state("t/1", "done")


@pytest.mark.parametrize("way", ["request", "signal"])
def test_a_stop_without_a_disk_does_not_wait_for_it(tmp_path: Path, way: str) -> None:
    with (
        PuppetService(tmp_path / "home", prepare=fail_at_once) as service,
        closing(sqlite3.connect(service.places.journal, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        service.client.post(Submit("t", "finish", "k"))
        until(lambda: service.status()["state"] == "stuck")
        if way == "request":
            assert service.ask(Stop()) == Done(note="stopping; what is in the journal stands")
        else:
            os.kill(service.pid, signal.SIGTERM)
        until(service._has_ended)


def test_a_stop_whose_record_cannot_be_written_ends_the_service(tmp_path: Path) -> None:
    """The disk is found full by the stop itself; the turn is resumed by the next life."""
    with (
        PuppetService(tmp_path / "home", prepare=fail_at_once) as service,
        closing(sqlite3.connect(service.places.journal, isolation_level=None)) as other,
    ):
        say(service, "s", "say wait")
        service.until_state("s/1", "running")
        other.execute("BEGIN IMMEDIATE")
        os.kill(service.pid, signal.SIGTERM)
        until(service._has_ended)


def test_a_reload_is_told_to_systemd_from_its_begin_to_its_end(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30.0)

        def prepare() -> None:
            os.environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")

        def told(beginning: bytes) -> None:
            while not manager.recv(1000).startswith(beginning):
                pass

        with PuppetService(tmp_path / "home", prepare=prepare) as service:
            told(b"READY=1")
            for way in ("request", "signal"):
                if way == "request":
                    assert isinstance(service.ask(Reload()), Table)
                else:
                    os.kill(service.pid, signal.SIGHUP)
                told(b"RELOADING=1")
                told(b"READY=1")


def break_with_a_reload() -> None:
    """A reload makes a task that fails, and that no boundary contains."""

    async def failing() -> None:
        raise LookupError("of nobody")

    def reload_asked(app: App, reply: object, confirmed: bool = False) -> None:
        asyncio.get_running_loop().create_task(failing())

    App.reload_asked = reload_asked  # type: ignore[assignment, method-assign]


def test_a_task_that_fails_uncontained_ends_the_service(tmp_path: Path) -> None:
    service = PuppetService(tmp_path / "home", prepare=break_with_a_reload)
    service.client.post(Reload())
    try:
        until(service._has_ended)
    finally:
        status = service.close()
    assert status == 1
