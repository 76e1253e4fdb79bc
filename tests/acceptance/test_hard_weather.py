"""The disk fills, refuses, breaks; clocks jump; files are old or too new: named, survived, nothing lost."""

import json
import os
import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc import interpreter
from ipc.messages import Accepted, Submit
from tests import warm
from tests.fake_model import FakeModel
from tests.service import ENDINGS, Service, settings_for
from tests.waiting import until


@contextmanager
def no_room(service: Service) -> Iterator[None]:
    """No file of the supervisor may grow: SQLite is told what a full disk tells it."""
    assert service.process is not None
    before = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)


def say_without_waiting(service: Service, session: str, text: str, key: str) -> tuple[Client, int]:
    client = service.client()
    return client, client.post(Submit(session, text, key))


def test_d15_without_room_messages_are_refused_and_it_goes_on_by_itself(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 2", turns='busy = "queue"')
    first = service.say("demo", "[[slow interval=0.02 count=50]] go", key="first")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    with no_room(service):
        # Whatever was on its way when the room went is neither answered nor lost.
        client, number = say_without_waiting(service, "demo", "in the storm", "storm")
        until(lambda: service.status()["state"] == "stuck")
        with pytest.raises(CommandError, match="journal") as refused:
            service.say("demo", "too late", key="late")
        assert refused.value.code == 5
        assert "disk" in refused.value.hint
        status = service.status()
        assert any("nothing is accepted" in hint for hint in status["hints"])
        assert service.show("turns", session="demo")[0]["turn"] == "demo/1"
        assert service.hermesctl("status").returncode == 0
    accepted = client.answer_to(number, Accepted)
    until(lambda: service.status()["state"] == "ready")
    again = service.listen("demo")
    assert again.ending("demo/1").type == "turn.done"
    assert again.ending("demo/2").fields["text"] == "You said: in the storm"
    assert [event.seq for event in again.events] == list(range(1, len(again.events) + 1))
    assert [event.fields["message"] for event in again.of_type("message.accepted")] == [
        first.message,
        accepted.message,
    ]
    assert len(again.of_type("attempt.lost")) == 0
    assert len(again.of_type(*ENDINGS)) == 2


def test_d15_a_disk_without_room_is_named_and_room_is_enough(tmp_path: Path, model: FakeModel) -> None:
    """A real small disk, filled to its last byte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"needs the right to mount: {mounted.stderr.decode().strip()}")
    try:
        with Service(
            disk / "home", settings_for(model, workers="count = 1", turns='busy = "queue"')
        ) as service:
            service.say("demo", "before", key="before")
            service.listen("demo").ending("demo/1")
            fill = disk / "fill"
            fill_up(fill)
            client, number = say_without_waiting(service, "demo", "x" * 100_000, "storm")
            until(lambda: service.status()["state"] == "stuck")
            sent = service.hermesctl("send", "demo", "refused", "--no-wait")
            assert sent.returncode == 5
            assert "no space left for the journal" in sent.stderr
            assert "free space" in sent.stderr
            assert service.hermesctl("why", "demo/1").returncode == 0
            fill.unlink()
            client.answer_to(number, Accepted)
            assert service.listen("demo").ending("demo/2").type == "turn.done"
            until(lambda: service.status()["state"] == "ready")
            assert service.say("demo", "after").seq
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            while True:
                try:
                    file.write(b"x" * size)
                except OSError:
                    break


def test_d15_a_service_without_room_can_be_stopped(service: Service) -> None:
    service.say("demo", "[[slow interval=0.02 count=500]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    with no_room(service):
        until(lambda: service.status()["state"] == "stuck")
        assert service.stop() == 0
    service.start()
    assert service.listen("demo").ending("demo/1", deadline_seconds=60).type == "turn.done"


def test_d15_waiting_for_room_is_held_against_no_worker(
    make_service: Callable[..., Service],
) -> None:
    """Silence has a limit, but not the silence of a turn that nobody could listen to."""
    service = make_service(workers="count = 1", turns='silence = "3s"')
    service.say("demo", "[[slow interval=0.1 count=100]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    with no_room(service):
        until(lambda: any("for 4 s" in hint for hint in service.status()["hints"]))
    assert listener.ending("demo/1").type == "turn.done"
    assert listener.of_type("attempt.lost") == []


def run(home: Path) -> "subprocess.CompletedProcess[str]":
    return warm.run(interpreter.command("supervisor", "--home", str(home)), timeout=60)


def test_d15_a_damaged_page_is_named_at_start_and_repaired_by_the_command_it_names(service: Service) -> None:
    for number in range(20):
        service.say("demo", f"number {number} " + "x" * 2000, busy="queue")
    listener = service.listen("demo")
    listener.until(lambda: len(listener.of_type(*ENDINGS)) == 20)
    assert service.hermesctl("journal", "check").returncode == 0
    assert service.hermesctl("journal", "check", "--repair").returncode == 5
    service.stop()
    path = service.home / "journal.db"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 4096 // 2 * 4096)
        file.write(b"\xff" * 4096)
    refused = run(service.home)
    assert refused.returncode == 1
    assert "is damaged" in refused.stderr
    assert "hermesctl journal check --repair" in refused.stderr
    assert service.hermesctl("journal", "check").returncode == 5
    repaired = service.hermesctl("journal", "check", "--repair", "--json")
    assert repaired.returncode == 0, repaired.stderr
    report = json.loads(repaired.stdout)
    assert Path(report["kept"]).exists()
    assert report["saved"]["sessions"] == 1
    service.start()
    assert service.hermesctl("send", "demo", "still there?").stdout == "You said: still there?\n"
    assert service.hermesctl("journal", "check").returncode == 0


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """A folder or a file that cannot be changed, by root neither."""
    mounts = (["mount", "--bind", str(path), str(path)], ["mount", "-o", "remount,ro,bind", str(path)])
    if os.geteuid() != 0:
        before = path.stat().st_mode
        path.chmod(before & ~0o222)
        yield
        path.chmod(before)
    elif any(subprocess.run(each, capture_output=True).returncode for each in mounts):
        pytest.skip("needs the right to mount")
    else:
        try:
            yield
        finally:
            subprocess.run(["umount", str(path)], check=True)


@pytest.mark.parametrize("name", [".", "journal.db"])
def test_d15_what_is_read_only_is_named_at_start(service: Service, name: str) -> None:
    service.say("demo", "before")
    service.listen("demo").ending("demo/1")
    service.stop()
    with read_only(service.home / name):
        refused = run(service.home)
    assert refused.returncode in (1, 78)
    assert str(service.home) in refused.stderr
    assert "hint:" in refused.stderr
    assert "Traceback" not in refused.stderr
    service.start()
    assert len(service.show("turns")) == 1


def test_a_newer_journal_is_refused_by_name(service: Service) -> None:
    service.stop()
    change(service, "PRAGMA user_version = 99")
    refused = run(service.home)
    assert refused.returncode == 1
    assert "schema 99" in refused.stderr
    assert "Traceback" not in refused.stderr


def change(service: Service, *statements: str) -> None:
    """What only somebody else could have done to the file."""
    with closing(sqlite3.connect(service.home / "journal.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_d15_times_never_run_backwards_when_the_clock_was_set_back(service: Service) -> None:
    service.say("demo", "before")
    service.listen("demo").ending("demo/1")
    service.stop()
    # The same journal as if its last day had been lived by a clock that was a day ahead.
    change(
        service,
        "UPDATE events SET at = at + 86400",
        "UPDATE sessions SET last_at = last_at + 86400",
        "UPDATE turns SET opened_at = opened_at + 86400, ended_at = ended_at + 86400",
    )
    service.start()
    service.say("demo", "after")
    listener = service.listen("demo")
    listener.ending("demo/2")
    times = [event.at for event in listener.events]
    assert times == sorted(times)
    assert any("the clock is" in hint for hint in service.status()["hints"])


def test_d15_a_clock_set_forward_ends_what_is_not_fresh_and_nothing_else(service: Service) -> None:
    service.say("demo", "[[silent times=1]] hold")
    service.say("demo", "next", busy="queue")
    until(lambda: service.status()["running"] == 1)
    service.stop()
    change(
        service,
        "UPDATE events SET at = at - 86400",
        "UPDATE sessions SET last_at = last_at - 86400",
        "UPDATE messages SET at = at - 86400",
        "UPDATE turns SET opened_at = opened_at - 86400, content_at = content_at - 86400",
    )
    service.start()
    listener = service.listen("demo")
    assert "not resumed" in listener.ending("demo/1").fields["error"]
    listener.until(lambda: listener.of_type("message.dropped"))
    assert listener.of_type("message.dropped")[0].fields["by"] == "freshness"
    service.say("demo", "and now?")
    assert listener.ending("demo/2").fields["text"] == "You said: and now?"
