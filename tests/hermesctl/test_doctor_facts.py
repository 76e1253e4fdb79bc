"""More checks of doctor by themselves: what a running service, a unit or an endpoint may show of itself."""

import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermesctl.doctor import (
    all_checks,
    baits,
    cell_look,
    host_checks,
    isolation_report,
    limit_checks,
    promises,
    service_checks,
    settings_checks,
    software_checks,
    storage_checks,
)
from ipc.isolation import ATTACKS, Result, tried_agent
from tests.hermesctl.test_doctor import ENDPOINT, around
from tests.raw_server import raw_server


def test_every_folder_and_file_with_words_of_people_is_looked_at(tmp_path: Path) -> None:
    seen = around(tmp_path / "home")
    places = seen.places
    for folder in (places.runtime, places.logs, places.clips):
        folder.mkdir()
        folder.chmod(0o750)
        finding = storage_checks.rights(seen)
        assert (finding.verdict, finding.hint) == ("bad", f"chmod 700 {folder}")
        folder.chmod(0o700)
    for file in (places.token, places.journal):
        file.touch()
        file.chmod(0o640)
        assert storage_checks.rights(seen).hint == f"chmod 600 {file}"
    assert storage_checks.rights(seen).fact.endswith("others may look into it (and 1 more)")


@pytest.mark.parametrize(("kind", "verdict"), [("nfs4", "care"), ("tmpfs", "care"), ("ext4", "good")])
def test_a_file_system_without_locks_or_without_a_disk_deserves_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, verdict: str
) -> None:
    monkeypatch.setattr(storage_checks, "_file_system", lambda folder: kind)
    assert storage_checks.file_system(around(tmp_path)).verdict == verdict


def test_a_state_folder_that_takes_no_file_is_wrong(tmp_path: Path) -> None:
    seen = around(tmp_path / "home")
    seen.places.state.rmdir()
    assert storage_checks.sync_speed(seen).verdict == "good"
    seen.places.state.touch()
    assert storage_checks.sync_speed(seen).verdict == "bad"


def test_a_process_that_has_ended_is_nothing_left_over() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert service_checks._started(process.pid) == ""
    finally:
        process.wait()


def test_a_worker_with_a_workspace_is_read_from_the_record(tmp_path: Path) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    record = tmp_path / "processes"
    record.write_text(f"{boot} {os.readlink('/proc/self/ns/pid')}\n12 34 /a workspace\n5 x\n6\n\n7 8\n")
    assert service_checks._recorded(record) == [(12, "34"), (7, "8")]


def test_a_service_without_its_lock_deserves_a_look(tmp_path: Path) -> None:
    assert service_checks.lock(around(tmp_path, {"pid": 1})).verdict == "care"
    assert service_checks.lock(around(tmp_path)).verdict == "good"


@pytest.mark.parametrize(
    ("url", "hint"), [(None, "hermesctl journal backup FILE"), ("postgresql://x/y", "restore the database")]
)
def test_damage_is_mended_where_the_journal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, hint: str
) -> None:
    monkeypatch.setattr(
        service_checks, "_checked_online", lambda around: {"ok": False, "findings": ["a row is gone"]}
    )
    seen = around(tmp_path, {"pid": 1}, journal_url=url)
    if url is None:
        seen.places.journal.touch()
    finding = service_checks.journal(seen)
    assert (finding.verdict, finding.fact) == ("bad", "damaged: a row is gone")
    assert finding.hint.startswith(hint)
    assert service_checks.journal(around(tmp_path, journal_url="postgresql://x/y")).verdict == "good"


def test_a_list_of_models_is_asked_for_at_the_path_and_with_the_key_as_the_service_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", " sk-secret\n")
    (tmp_path / "key").write_text("sk-secret\n")
    body = b'{"data": [%s]}' % b", ".join(b'{"id": "m%d"}' % number for number in range(9))
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    for key in ({"api_key_env": "MY_KEY"}, {"api_key_file": str(tmp_path / "key")}):
        with raw_server(lambda: iter([answer])) as server:
            endpoint = {**ENDPOINT, "base_url": f"{server.base_url}/", **key}
            finding = settings_checks.model(around(tmp_path, model=endpoint))
            head = server.heard[0].decode()
        assert "//models" not in head
        assert "Authorization: Bearer sk-secret\r\n" in head
        assert finding.hint == "it lists m0, m1, m2, m3, m4: name one"


def test_an_answer_nested_too_deep_is_no_list(tmp_path: Path) -> None:
    body = b"[" * 200_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with raw_server(lambda: iter([answer])) as server:
        finding = settings_checks.model(around(tmp_path, model=ENDPOINT | {"base_url": server.base_url}))
    assert (finding.verdict, "with no list of models" in finding.fact) == ("care", True)


def test_a_caution_of_the_settings_is_told_with_its_hint(tmp_path: Path) -> None:
    finding = settings_checks.settings(around(tmp_path, file="x", cautions=["a key is old: remove it"]))
    assert (finding.verdict, finding.fact, finding.hint) == ("care", "a key is old", "remove it")


@pytest.mark.parametrize("said", ["", "not JSON", "[]", "3"])
def test_a_check_of_the_service_that_says_nothing_useful_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr("ipc.interpreter.command", lambda *line: ["printf", "%s", said])
    seen = around(tmp_path)
    assert all_checks._checkup(seen.places) == {}
    assert settings_checks.settings(seen).verdict == "bad"


def test_a_limit_that_can_be_raised_is_compared_at_its_top_and_no_limit_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {resource.RLIMIT_NOFILE: (1024, 4096), resource.RLIMIT_NPROC: (resource.RLIM_INFINITY,) * 2}
    monkeypatch.setattr("psutil.Process.rlimit", lambda self, number: limits[number])
    assert limit_checks.open_files(around(tmp_path, seats=1, files_max=4096)).verdict == "good"
    assert limit_checks.open_files(around(tmp_path, seats=1, files_max=4097)).verdict == "care"
    processes = limit_checks.processes(around(tmp_path, seats=1))
    assert (processes.verdict, processes.fact) == ("good", "unlimited for this shell")


def test_namespaces_are_compared_with_what_the_seats_may_need(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/user/max_user_namespaces").read_text())
    assert limit_checks.namespace_count(around(tmp_path, seats=most)).verdict == "care"


@pytest.mark.parametrize(
    "started", ["/bin/sh -m x", '"/bin/sh" -m x', "-/bin/sh", "@/bin/sh sh", "+/bin/sh", "!/bin/sh"]
)
def test_the_program_of_a_unit_is_read_as_systemd_reads_it(tmp_path: Path, started: str) -> None:
    unit = tmp_path / "hermes.service"
    unit.write_text(f"[Service]\nExecStartPre=/gone\nExecStart={started}\n")
    assert host_checks._started_by(unit) == "/bin/sh"


def test_a_unit_that_is_disabled_and_one_that_ends_with_the_login_deserve_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = {scope: tmp_path / scope / "hermes-supervisor.service" for scope in ("user", "system")}
    for unit in scopes.values():
        unit.parent.mkdir()
        unit.write_text("[Service]\nExecStart=/bin/sh\n")
    said = {"systemctl": "disabled", "loginctl": "no"}
    monkeypatch.setattr(host_checks, "_said", lambda *line: said[line[0]])
    monkeypatch.setattr(host_checks, "_unit_file", lambda: scopes["system"])
    assert host_checks.lingering(around(tmp_path)) is None
    assert host_checks.unit(around(tmp_path)).hint == "systemctl --system enable hermes-supervisor.service"
    said["systemctl"] = "enabled"
    assert host_checks.unit(around(tmp_path)).verdict == "good"
    monkeypatch.setattr(host_checks, "_unit_file", lambda: scopes["user"])
    assert host_checks.lingering(around(tmp_path)) is not None


def test_a_package_of_two_that_an_extra_needs_is_enough_to_be_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ['pytest>=1 ; extra == "voice"', 'no-such-package>=1 ; extra == "voice"', "pytest>=1"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: wanted)
    assert software_checks.packages(around(tmp_path)).fact.endswith("and all it needs, without voice")


def test_a_supervisor_that_cannot_be_seen_leaves_the_question_of_its_user_open() -> None:
    assert cell_look._other_user(1000, None).verdict == "broken"
    assert cell_look._other_user(1000, 1000).verdict == "open"
    assert cell_look._other_user(1000, 1001).verdict == "held"
    assert (cell_look._root(0).verdict, cell_look._root(1).verdict) == ("open", "held")


def test_a_trial_names_no_more_targets_than_its_message_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / str(number) for number in range(100)]
    for file in files:
        file.touch()
    assert len(baits._existing("", *map(str, files), str(files[0]))) == 64
    monkeypatch.setattr(baits, "_running", lambda pid: pid)
    services: list[dict[str, Any]] = [
        {"service": "stt", "address": "other"},
        {"service": "model", "address": "/run/model.sock"},
    ]
    workers = [{"pid": number} for number in range(1, 100)] + [{"pid": None}]
    with baits.laid(around(tmp_path).places, os.getpid(), workers, services) as targets:
        assert len(targets.outside) == 62
        assert targets.model == "/run/model.sock"
        assert "/" not in [spot.path for spot in targets.parents]
        assert Path(targets.host_file[0].path).parent.stat().st_mode & 0o777 == 0o755
        assert Path(targets.unix[0]).stat().st_mode & 0o777 == 0o777


def test_a_process_whose_name_has_a_bracket_has_its_start_time(tmp_path: Path) -> None:
    program = tmp_path / "a) b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([program, "60"])
    try:
        assert str(baits._running(process.pid).started) == service_checks._started(process.pid) != ""
    finally:
        process.kill()
        process.wait()


def test_the_buses_of_a_session_are_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/a,guid=1;tcp:host=x;unix:path=/b")
    assert baits._buses() == ["/a", "/b"]


def test_only_a_session_that_begins_with_the_word_is_a_trial() -> None:
    assert [tried_agent(each) for each in ("isolation:mine", "my isolation:x", "demo")] == ["mine", "", ""]


def test_without_a_network_only_the_loopback_is_promised_anew() -> None:
    assert promises.promise("loopback", "host", "none") == "held"
    assert promises.promise("host files", "host", "none") == "open"


def test_a_fault_is_not_counted_among_what_is_let_through() -> None:
    judged = [
        promises.judge(attack, Result(attack.name, verdict), "workspace", "host")
        for attack in ATTACKS
        for verdict in ("open",)
        if attack.name in ("loopback", "host files")
    ]
    summary = isolation_report._summary(judged)
    assert summary == "0 held · 1 ✘ that should be held · 1 ! open, as settings and host have it"
