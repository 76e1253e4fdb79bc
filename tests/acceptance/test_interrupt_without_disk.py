"""An interrupt needs no disk: it kills within its bound, says what is not written, and is recorded once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermesctl.client import Client
from ipc.messages import Accepted, Submit
from tests.acceptance.sight import named, shell, sleeper
from tests.acceptance.test_hard_weather import fill_up, no_room
from tests.fake_model import FakeModel
from tests.service import ENDINGS, Service, settings_for
from tests.waiting import until

# Of an interrupt on a busy machine; without the disk, waiting for it would take for ever.
BOUND_SECONDS = 5.0


@contextmanager
def stuck(service: Service) -> Iterator[None]:
    """Another program holds SQLite's own lock on the journal: a commit waits, and in the end fails."""
    with closing(sqlite3.connect(service.places.journal, isolation_level=None)) as intruder:
        intruder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            intruder.execute("ROLLBACK")


def running(service: Service, session: str) -> str:
    """A turn whose tool sleeps for ever, started through a process of its own; the name it sleeps under."""
    name = f"sleeper-{os.urandom(6).hex()}"
    service.say(session, shell(sleeper(name)))
    until(lambda: named(name))
    return name


def interrupted(service: Service, *arguments: str) -> tuple["subprocess.CompletedProcess[str]", float]:
    service.hermesctl("status")  # the first command of a test run also loads hermesctl
    began = time.monotonic()
    done = service.hermesctl("interrupt", *arguments)
    return done, time.monotonic() - began


def once(service: Service, session: str) -> None:
    """The interrupt is in the feed exactly once, with its proof, and nothing of it was resumed."""
    turn = f"{session}/1"
    listener = service.listen(session)
    ending = listener.ending(turn)
    assert ending.type == "turn.interrupted"
    assert ending.fields["by"] == "hermesctl"
    assert ending.fields["killed"]["all_dead"]
    assert ending.fields["killed"]["processes"] >= 1
    # Nothing is accepted before the reserve is made again.
    until(lambda: service.status()["state"] == "ready")
    service.say(session, "still there?")
    assert listener.ending(f"{session}/2").type == "turn.done"
    assert len(listener.of_type("turn.interrupted")) == 1
    assert len(listener.of_type("attempt.opened")) == 2
    assert listener.of_type("attempt.lost") == []
    assert [event.seq for event in listener.events] == list(range(1, len(listener.events) + 1))


def test_h12_an_interrupt_kills_while_the_journal_is_stuck(service: Service) -> None:
    sleeping = running(service, "demo")
    with stuck(service):
        # Something is on its way to the disk, so that a commit is under way and does not come back.
        client = service.client()
        client.post(_submit("elsewhere"))
        until(lambda: service.status()["late"] or service.status()["state"] == "stuck")
        done, seconds = interrupted(service, "demo")
        assert done.returncode == 0, done.stderr
        assert not named(sleeping)
        assert seconds < BOUND_SECONDS
        assert "demo/1 interrupted:" in done.stdout
        assert "none left" in done.stdout
        assert "not yet written down" in done.stderr
        again, _ = interrupted(service, "demo")
        assert again.returncode == 0
        assert "none left" in again.stdout, "asked again, it tells the same"
    once(service, "demo")


def _submit(session: str) -> Submit:
    return Submit(session, "hello", "key")


def test_h12_an_interrupt_kills_while_there_is_no_room(service: Service) -> None:
    sleeping = running(service, "demo")
    with no_room(service):
        service.client().post(_submit("elsewhere"))
        until(lambda: service.status()["state"] == "stuck")
        done, seconds = interrupted(service, "demo", "--json")
        assert done.returncode == 0, done.stderr
        assert not named(sleeping)
        assert seconds < BOUND_SECONDS
        told = json.loads(done.stdout)
        assert told["killed"]["all_dead"]
        assert told["killed"]["processes"] >= 1
        assert "journal" in told["unwritten"]
    once(service, "demo")


def test_h12_all_sessions_are_interrupted_without_a_disk(service: Service) -> None:
    sleeping = [running(service, session) for session in ("one", "two")]
    service.say("three", "waits for a seat")
    with stuck(service):
        service.client().post(_submit("elsewhere"))
        until(lambda: service.status()["late"] or service.status()["state"] == "stuck")
        done, seconds = interrupted(service, "--all")
        assert done.returncode == 0, done.stderr
        assert not any(map(named, sleeping))
        assert seconds < BOUND_SECONDS
        named_turns = {line.split()[0] for line in done.stdout.splitlines()}
        assert named_turns == {"elsewhere/1", "one/1", "three/1", "two/1"}
        assert done.stdout.count("none left") == 2
        assert "three/1 interrupted: nothing of it was running" in done.stdout
    once(service, "one")
    once(service, "two")
    assert service.listen("three").ending("three/1").type == "turn.interrupted"


def test_h12_a_ctrl_c_of_a_sender_needs_no_disk(service: Service) -> None:
    name = f"sleeper-{os.urandom(6).hex()}"
    command = [sys.executable, "-m", "hermesctl", "--home", str(service.home)]
    command += ["send", "demo", shell(sleeper(name))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        until(lambda: named(name))
        with stuck(service):
            service.client().post(_submit("elsewhere"))
            until(lambda: service.status()["late"] or service.status()["state"] == "stuck")
            sender.send_signal(signal.SIGINT)
            _, told = sender.communicate(timeout=30)
            assert sender.returncode == 3
            assert not named(name)
    assert "none left" in told
    assert "not yet written down" in told
    once(service, "demo")


def test_h12_a_turn_that_has_not_begun_is_stopped_before_it_does(service: Service, model: FakeModel) -> None:
    """Its worker was chosen, but waits for the commit: there is nothing to kill, and nobody is killed."""
    service.say("demo", "hello")
    listener = service.listen("demo")
    listener.ending("demo/1")
    until(lambda: service.status()["idle"] == 3)
    before = {row["incarnation"] for row in service.show("workers")}
    with stuck(service):
        client = service.client()
        number = client.post(_submit("demo"))
        until(lambda: service.status()["late"] or service.status()["state"] == "stuck")
        done, _ = interrupted(service, "demo")
        assert done.returncode == 0, done.stderr
        assert "demo/2 interrupted: nothing of it was running" in done.stdout
        assert {row["incarnation"] for row in service.show("workers")} == before
    client.answer_to(number, Accepted)
    assert listener.ending("demo/2").type == "turn.interrupted"


def test_h12_an_answer_and_an_interrupt_behind_it_end_the_turn_once(
    service: Service, model: FakeModel
) -> None:
    """The answer may lie in memory when its worker is killed: then it is recorded, and the interrupt late."""
    service.say("demo", "[[slow interval=0.02 count=100]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    with stuck(service):
        model.wait(lambda requests: requests[0].ended)
        done, _ = interrupted(service, "demo")
        assert done.returncode == 0, done.stderr
    assert listener.ending("demo/1").type in ("turn.done", "turn.interrupted")
    service.say("demo", "still there?")
    assert listener.ending("demo/2").type == "turn.done"
    assert len(listener.of_type(*ENDINGS)) == 2


def test_h12_after_a_crash_the_turn_is_treated_by_its_resume_policy(service: Service) -> None:
    """Promised was the kill, not the record."""
    sleeping = running(service, "demo")
    with stuck(service):
        service.client().post(_submit("elsewhere"))
        until(lambda: service.status()["late"] or service.status()["state"] == "stuck")
        done, _ = interrupted(service, "demo")
        assert "none left" in done.stdout
        service.kill()
        assert not named(sleeping)
    service.start()
    listener = service.listen("demo")
    listener.until(lambda: len(listener.of_type("attempt.opened")) == 2)
    assert [event.fields["reason"] for event in listener.of_type("attempt.lost")] == [
        "the supervisor ended while it ran"
    ]
    service.interrupt("demo")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A real file system of sixteen megabytes."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs the right to mount: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_h12_a_reserve_makes_room_for_closing_what_runs(tmp_path: Path, model: FakeModel) -> None:
    with small_disk(tmp_path) as disk:
        settings = settings_for(model, workers="count = 2", turns='busy = "queue"')
        with Service(disk / "home", settings) as service:
            reserve = service.places.reserve
            until(reserve.exists)
            assert reserve.stat().st_blocks * 512 >= 4 * 1024 * 1024
            assert reserve.stat().st_mode & 0o777 == 0o600
            assert service.status()["reserve"]
            sleeping = running(service, "demo")
            fill = disk / "fill"
            fill_up(fill)
            done, seconds = interrupted(service, "demo")
            assert done.returncode == 0, done.stderr
            assert not named(sleeping)
            assert seconds < BOUND_SECONDS
            # The reserve is given up, and with it there is room for the record.
            assert service.listen("demo").ending("demo/1").type == "turn.interrupted"
            until(lambda: not reserve.exists() or service.status()["reserve"])
            assert_refused_while_full(service)
            fill.unlink()
            until(lambda: service.status()["state"] == "ready")
            assert reserve.exists()
            once(service, "demo")


def assert_refused_while_full(service: Service) -> None:
    """New messages may not use what is kept for closing old turns, though a commit would succeed."""
    for number in range(200):
        if service.status()["state"] == "stuck":
            break
        # On a disk without a byte left the next commit finds that out.
        with closing(Client(service.places)) as client:
            client.post(_submit(f"more {number}"))
    assert service.status()["state"] == "stuck"
    assert not service.status()["reserve"]
    sent = service.hermesctl("send", "demo", "refused", "--no-wait")
    assert sent.returncode == 5
    assert "no space left for the journal" in sent.stderr
    assert "free space" in sent.stderr
    doctor = service.hermesctl("doctor")
    assert "✘ reserve" in doctor.stdout
    assert os.path.exists(service.places.journal)


def test_h12_a_missing_reserve_is_made_again(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1")
    until(service.places.reserve.exists)
    service.places.reserve.unlink()
    until(service.places.reserve.exists)
    assert service.status()["state"] == "ready"
