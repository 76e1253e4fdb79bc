"""hermes.toml is read again while the service runs: live where it can be, named where not, never half."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import Reload, Table
from tests.fake_model import FakeModel
from tests.service import NO_GATEWAY, VOICELESS, Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until


def write(service: Service, model: FakeModel, **tables: str) -> str:
    text = settings_for(model, **tables)
    (service.home / "hermes.toml").write_text(text)
    return text


def reload(service: Service) -> dict[str, str]:
    """Each key that changed, and when that applies."""
    rows = service.client().ask(Reload(), Table).rows
    assert all(row["text"].startswith(row["key"]) for row in rows)
    return {row["key"]: row["applies"] for row in rows}


def files_max(pid: int) -> int:
    """What the kernel allows a process."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


def workers(service: Service) -> dict[int, dict[str, Any]]:
    return {row["seat"]: row for row in service.show("workers")}


def all_idle(service: Service) -> dict[int, dict[str, Any]]:
    """The workers when nobody does anything; else nothing."""
    found = workers(service)
    return found if all(row["state"] == "idle" for row in found.values()) else {}


def test_a_broken_file_is_refused_in_the_words_of_a_start_and_the_old_one_stays(
    service: Service, model: FakeModel
) -> None:
    write(service, model, workers="count = 2", turns='busy = "queue"\ncuont = 3')
    refused = service.hermesctl("reload")
    assert refused.returncode == 5
    assert "line" in refused.stderr
    assert "[turns] cuont is not known" in refused.stderr
    assert "have not changed" in refused.stderr
    started = subprocess.run(
        [sys.executable, "-m", "supervisor", "--home", str(service.home)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert started.stderr.splitlines()[0].partition(": ")[2] in refused.stderr
    # The good half of a broken file does not apply either.
    listener = service.listen("demo")
    service.say("demo", "[[silent]] wait")
    until(lambda: service.status()["running"] == 1)
    service.say("demo", "hello")
    assert listener.ending("demo/1").type == "turn.interrupted"


def test_policy_busy_modes_and_seats_change_at_once(service: Service, model: FakeModel) -> None:
    tables = {
        "workers": "count = 3",
        "turns": 'busy = "queue"\nwaiting_max = 1',
        'sessions."hasty*"': 'busy = "interrupt"',
        "agents.poet": 'system = "Rhyme."',
    }
    write(service, model, **tables)
    told = service.hermesctl("reload")
    assert told.returncode == 0
    assert "[turns] busy applies from now on" in told.stdout
    assert '[sessions."hasty*"] applies from now on' in told.stdout
    assert "[agents.poet] applies from now on" in told.stdout
    assert service.hermesctl("reload").stdout == "nothing has changed\n"
    assert service.status()["seats"] == 3
    assert len(workers(service)) == 4
    service.say("slow", "[[silent]] wait")
    service.say("hasty", "[[silent]] wait")
    until(lambda: service.status()["running"] == 2)
    listener = service.listen("hasty")
    service.say("hasty", "hello")
    assert listener.ending("hasty/1").type == "turn.interrupted"
    service.say("slow", "hello")
    assert service.hermesctl("send", "slow", "one too many", "--no-wait").returncode == 5
    assert [row["turn"] for row in service.show("turns", session="slow")] == ["slow/1"]


def test_fewer_seats_leave_at_once_and_what_was_scaled_by_hand_stays_unless_the_file_says_otherwise(
    service: Service, model: FakeModel
) -> None:
    write(service, model, workers="count = 1\nspares = 0")
    reload(service)
    until(lambda: len(workers(service)) == 1)
    assert service.hermesctl("scale", "2").returncode == 0
    write(service, model, workers="count = 1\nspares = 0", turns="attempts_max = 2")
    reload(service)
    assert service.status()["seats"] == 2


def test_new_limits_replace_idle_workers_one_by_one_and_the_busy_one_after_its_turn(
    service: Service, model: FakeModel
) -> None:
    before = until(lambda: all_idle(service))
    listener = service.listen("demo")
    service.say("demo", "[[silent]] wait")
    until(lambda: service.status()["running"] == 1)
    busy = next(row for row in workers(service).values() if row["state"] == "busy")
    write(service, model, workers="count = 2\nfiles_max = 512\nturns_max = 100")
    assert reload(service) == {"[workers] files_max": "new workers", "[workers] turns_max": "at once"}

    def renewed() -> bool:
        now = workers(service)
        return all(
            row["incarnation"] > before[seat]["incarnation"] and row["state"] == "idle"
            for seat, row in now.items()
            if seat != busy["seat"]
        )

    until(renewed)
    now = workers(service)
    assert now[busy["seat"]]["pid"] == busy["pid"]
    assert files_max(busy["pid"]) > 512
    assert {files_max(row["pid"]) for seat, row in now.items() if seat != busy["seat"]} == {512}
    assert listener.of_type("attempt.lost", "turn.interrupted", "turn.failed") == []
    killed = [line for line in service.log().splitlines() if "worker.killed" in line]
    assert len(killed) == 2
    # One by one: the second was killed only when the first one's successor had come.
    order = [line.split()[1] for line in service.log().splitlines() if " worker." in line]
    assert order[-4:] == ["worker.killed", "worker.started"] * 2
    service.interrupt("demo")
    until(lambda: all_idle(service))
    assert {files_max(row["pid"]) for row in workers(service).values()} == {512}


def test_what_needs_a_restart_is_named_until_it_has_been(service: Service, model: FakeModel) -> None:
    write(service, model, workers='count = 2\ncell = "sweep"')
    named = {"[workers] cell": "restart"}
    assert reload(service) == named
    assert reload(service) == named
    assert "[workers] cell needs a restart" in service.hermesctl("reload").stdout
    service.stop()
    service.start()
    assert reload(service) == {}


def test_new_turns_have_the_new_model_and_the_running_one_keeps_its_own(
    service: Service, model: FakeModel
) -> None:
    service.say("old", "[[silent]] wait")
    until(lambda: len(model.requests()) == 1)
    text = write(service, model, workers="count = 2")
    (service.home / "key").write_text("a-key")
    (service.home / "hermes.toml").write_text(text.replace('"fake"', '"other"\napi_key_file = "key"'))
    assert reload(service) == {"[model] name": "at once", "[model] api_key_file": "at once"}
    assert service.hermesctl("send", "new", "hello").returncode == 0
    assert [request.model for request in model.requests()] == ["fake", "other"]
    assert service.status()["model"].startswith("other at ")
    assert service.status()["running"] == 1
    (service.home / "key").unlink()
    assert service.hermesctl("reload").returncode == 5
    assert service.hermesctl("send", "new", "hello").returncode == 0


def test_the_embedded_model_takes_the_place_of_an_endpoint_and_gives_it_back(
    service: Service, model: FakeModel
) -> None:
    with_endpoint = (service.home / "hermes.toml").read_text()
    without = f"[workers]\ncount = 2\n[stt]\n{VOICELESS}\n[gateway]\n{NO_GATEWAY}\n"
    (service.home / "hermes.toml").write_text(without)
    refused = service.hermesctl("reload")
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "has no [model] any more: the embedded demonstration would replace fake" in refused.stderr
    assert "`hermesctl reload --yes`; the settings in force have not changed" in refused.stderr
    assert service.status()["model"].startswith("fake at ")
    assert service.hermesctl("reload", "--yes").stdout == "[model] applies from now on\n"
    # There are no weights in this home: the service that was started says so, and turns end with its words.
    until(lambda: any("weights" in hint or "models pull" in hint for hint in service.status()["hints"]))
    assert service.status()["model"].startswith("embedded")
    (service.home / "hermes.toml").write_text(with_endpoint)
    assert reload(service) == {"[model]": "at once"}
    assert service.hermesctl("send", "demo", "hello").returncode == 0
    until(lambda: service.show("services")[0]["pid"] is None)
    assert service.show("services")[0]["state"] == "stopped"


def test_voice_is_switched_on_changed_and_switched_off(service: Service, model: FakeModel) -> None:
    remote = f'engine = "openai"\nbase_url = "{model.base_url}"'

    def serving() -> int | None:
        rows = {row["service"]: row for row in service.show("services")}
        return rows["stt"]["pid"] if rows["stt"]["state"] == "ready" else None

    write(service, model, workers="count = 2", stt=remote)
    assert reload(service) == {"[stt] engine": "new service", "[stt] base_url": "new service"}
    first = until(serving)
    write(service, model, workers="count = 2", stt=f'{remote}\ndeadline = "5s"\nclips_keep = "1d"')
    assert set(reload(service).values()) == {"at once"}
    assert serving() == first
    write(service, model, workers="count = 2", stt=f'{remote}\nlanguage = "de"')
    assert reload(service)["[stt] language"] == "new service"
    until(lambda: serving() not in (None, first))
    write(service, model, workers="count = 2")
    reload(service)
    until(lambda: service.show("services")[0]["state"] == "stopped")


def test_a_hang_up_reloads_and_the_log_changes_its_form(service: Service, model: FakeModel) -> None:
    assert service.process is not None
    write(service, model, workers="count = 2", log='format = "json"')
    service.process.send_signal(signal.SIGHUP)
    until(lambda: '"settings.read"' in service.log())
    assert service.hermesctl("send", "demo", "the-secret-text-of-a-person").returncode == 0
    # Clients are told of a turn's end before it is logged.
    until(lambda: '"turn.done"' in service.log())
    lines = service.log().splitlines()
    after = lines[next(number for number, line in enumerate(lines) if '"settings.' in line) :]
    events = [json.loads(line)["event"] for line in after]
    assert {"settings.changed", "settings.read", "message.accepted", "turn.done"} <= set(events)
    assert "the-secret-text" not in service.log()
    (service.home / "hermes.toml").write_text("[log]\nformat = 'yaml'")
    service.process.send_signal(signal.SIGHUP)
    until(lambda: '"settings.refused"' in service.log())


def heard(ear: socket.socket, word: bytes) -> bytes:
    """The next that systemd hears with that word in it."""
    while word not in (said := ear.recv(4096)):
        pass
    return said


def test_systemd_hears_of_a_reload_and_of_its_end_also_when_it_is_refused(
    tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(DEADLINE_SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with Service(tmp_path / "home", settings_for(model)) as service:
            assert service.process is not None
            heard(ear, b"READY=1")
            for text in (settings_for(model), "[turns]\nbusy = 1"):
                (service.home / "hermes.toml").write_text(text)
                service.process.send_signal(signal.SIGHUP)
                said = heard(ear, b"RELOADING=1")
                assert int(said.partition(b"MONOTONIC_USEC=")[2].split()[0]) > 0
                heard(ear, b"READY=1")


def test_a_closed_terminal_ends_what_ran_in_it(tmp_path: Path, model: FakeModel) -> None:
    service = Service(tmp_path / "home", settings_for(model))
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "supervisor", "--home", str(service.home)]
        service.process = subprocess.Popen(command, stderr=theirs, start_new_session=True)
        until(service.answers)
        service.process.send_signal(signal.SIGHUP)
        assert service.process.wait(DEADLINE_SECONDS) == 0
    finally:
        os.close(ours)
        os.close(theirs)
