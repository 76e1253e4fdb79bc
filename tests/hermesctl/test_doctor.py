"""doctor in surroundings that are really broken: a bad file, wrong rights, no server, missing weights."""

import fcntl
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermesctl.doctor import (
    host_checks,
    kernel_checks,
    limit_checks,
    service_checks,
    settings_checks,
    storage_checks,
)
from hermesctl.doctor.all_checks import CHECKS
from hermesctl.doctor.finding import Finding, Surroundings
from ipc.places import find_places
from tests.fake_model import FakeModel
from tests.hermesctl.hand import ROOT, environment, hermesctl
from tests.raw_server import raw_server
from tests.service import Service, settings_for

KEY = "sk-very-secret-indeed"


@dataclass(frozen=True)
class Report:
    code: int
    text: str
    findings: dict[str, dict[str, str]]

    def verdict(self, check: str) -> str:
        return self.findings[check]["verdict"]


def doctor(home: Path, before: Callable[[], None] | None = None, **more: str) -> Report:
    done = subprocess.run(
        [sys.executable, "-m", "hermesctl", "--home", str(home), "doctor", "--json"],
        capture_output=True,
        text=True,
        env=environment(**more),
        cwd=ROOT,
        preexec_fn=before,
    )
    found = {row["check"]: row for row in json.loads(done.stdout)}
    return Report(done.returncode, done.stdout + done.stderr, found)


def around(home: Path, status: dict[str, Any] | None = None, **checkup: Any) -> Surroundings:
    """What one check looks at, without the cost of all."""
    home.mkdir(mode=0o700, exist_ok=True)
    return Surroundings(find_places(str(home)), checkup, status)


def make_private_home(tmp_path: Path, text: str) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "hermes.toml").write_text(text)
    return home


def test_a_sound_host_and_service_have_nothing_wrong(tmp_path: Path, model: FakeModel) -> None:
    with Service(tmp_path / "home", settings_for(model)) as running:
        running.home.chmod(0o700)
        report = doctor(running.home)
        assert running.process is not None
        assert report.findings["lock"]["fact"] == f"held by the service, pid {running.process.pid}"
    assert report.code == 0, report.text
    assert {row["verdict"] for row in report.findings.values()} <= {"good", "care"}
    assert report.verdict("model") == report.verdict("journal") == report.verdict("settings") == "good"
    assert report.findings["model"]["fact"] == f"fake at {model.base_url}"
    assert all(row["hint"] for row in report.findings.values() if row["verdict"] != "good")


def test_a_broken_host_is_named_line_by_line(tmp_path: Path) -> None:
    home = make_private_home(tmp_path, '[workers]\nper_cpu = "many"\n')
    home.chmod(0o755)

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    report = doctor(home, few_files)
    assert report.code == 5
    assert [check for check, row in report.findings.items() if row["verdict"] == "bad"] == [
        "open files",
        "rights",
        "settings",
    ]
    assert "line 2: [workers] per_cpu" in report.findings["settings"]["fact"]
    assert "write a number" in report.findings["settings"]["hint"]
    assert report.findings["rights"]["hint"] == f"chmod 700 {home}"
    assert report.findings["open files"]["fact"].startswith("100 for this shell")
    assert report.findings["service"]["hint"] == "hermesctl start"


def test_a_person_reads_a_sign_a_fact_and_a_remedy(tmp_path: Path) -> None:
    home = make_private_home(tmp_path, "not toml at all")
    done = subprocess.run(
        [sys.executable, "-m", "hermesctl", "--home", str(home), "doctor"],
        capture_output=True, text=True, env=environment(), cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("✘ settings"))
    assert "hermes.toml line 1" in lines[at]
    assert lines[at + 1].strip().startswith("→ correct that line")
    assert any(line.startswith("✔ python") for line in lines)
    assert lines[-1].startswith("1 ✘ to fix · ")


def test_a_missing_key_is_named_and_no_key_is_ever_printed(tmp_path: Path, model: FakeModel) -> None:
    home = make_private_home(tmp_path, settings_for(model).replace("[stt]", 'api_key_env = "MY_KEY"\n[stt]'))
    missing = doctor(home)
    found = doctor(home, MY_KEY=KEY)
    assert "MY_KEY" in missing.findings["model"]["fact"]
    assert missing.code == 5
    assert found.verdict("model") == "good"
    assert KEY not in missing.text + found.text


def test_every_named_model_has_a_line_and_the_list_of_agents_agrees(tmp_path: Path, model: FakeModel) -> None:
    tables = f"""
        [models.spare]
        base_url = "{model.base_url}"
        name = "fake"
        [models.closed]
        base_url = "{model.base_url}"
        name = "fake"
        api_key_env = "MY_KEY"
        [models.other]
        base_url = "{model.base_url}"
        name = "gpt-9"
        [models.gone]
        base_url = "http://127.0.0.1:9/v1"
        name = "x"
        [agents.default]
        fallback = ["spare", "closed"]
        [agents.own]
        model = "gone"
        fallback = ["default"]
    """
    home = make_private_home(tmp_path, settings_for(model) + tables)
    report = doctor(home)
    listed = json.loads(hermesctl(home, "agents", "list", "--json").out)
    with_key = json.loads(hermesctl(home, "agents", "list", "--json", MY_KEY=KEY).out)
    found = doctor(home, MY_KEY=KEY)
    rows = {name: report.findings[f"model {name}"] for name in ("spare", "closed", "other", "gone")}
    assert rows["spare"]["verdict"] == "good"
    assert rows["spare"]["fact"] == f"fake at {model.base_url}; asked by default"
    assert rows["closed"]["verdict"] == rows["gone"]["verdict"] == "bad"
    assert "MY_KEY, named by [models.closed] api_key_env, is not set" in rows["closed"]["fact"]
    assert rows["gone"]["fact"].endswith("; asked by own")
    assert rows["gone"]["hint"] == "start that server, or correct [models.gone] base_url"
    assert (rows["other"]["verdict"], rows["other"]["hint"]) == ("care", "it lists fake: name one")
    assert rows["other"]["fact"].endswith("; no agent asks it")
    assert found.verdict("model closed") == "good"
    agents = {row["agent"]: row for row in listed}
    assert agents["default"]["models"] == ["default", "spare", "closed"]
    assert agents["own"]["models"] == ["gone", "default"]
    assert "MY_KEY" in agents["default"]["fault"]
    assert report.findings["agent default"]["fact"] == agents["default"]["fault"]
    assert agents["own"]["fault"] == ""
    assert [row["fault"] for row in with_key] == ["", ""]


ENDPOINT = {"base_url": "", "name": "fake", "api_key_env": None, "api_key_file": None}


def test_an_endpoint_that_does_not_answer_is_wrong(tmp_path: Path) -> None:
    with FakeModel() as model:
        gone = model.base_url
    finding = settings_checks.model(around(tmp_path, model=ENDPOINT | {"base_url": gone}))
    assert finding.verdict == "bad"
    assert "does not answer" in finding.fact


def test_h15_a_redirect_carries_the_key_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with raw_server(lambda: iter(())) as elsewhere:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere.base_url}\r\nContent-Length: 0\r\n\r\n".encode()
        with raw_server(lambda: iter([moved])) as server:
            endpoint = ENDPOINT | {"base_url": server.base_url, "api_key_env": "MY_KEY"}
            finding = settings_checks.model(around(tmp_path, model=endpoint))
            assert b"sk-secret" in server.heard[0]
        assert elsewhere.heard == []
    assert (finding.verdict, finding.hint) == ("care", "write the address itself as base_url")


def test_a_model_that_is_not_listed_deserves_a_look(tmp_path: Path, model: FakeModel) -> None:
    other = settings_checks.model(
        around(tmp_path, model=ENDPOINT | {"base_url": model.base_url, "name": "gpt-9"})
    )
    path = settings_checks.model(
        around(tmp_path, model=ENDPOINT | {"base_url": model.base_url[: -len("/v1")]})
    )
    assert (other.verdict, other.hint) == ("care", "it lists fake: name one")
    assert (path.verdict, path.hint) == ("care", "is base_url right? it often ends in /v1")


@pytest.mark.parametrize(("status", "verdict"), [(401, "bad"), (403, "bad"), (404, "care"), (500, "care")])
def test_the_answer_of_a_server_is_read(status: int, verdict: str) -> None:
    found = settings_checks._status(
        "model", ENDPOINT | {"base_url": "http://x/v1", "api_key_env": "MY_KEY"}, status
    )
    assert found.verdict == verdict
    assert str(status) in found.fact
    assert (verdict == "bad") == ("MY_KEY" in found.hint)


def test_weights_are_missing_damaged_or_not_needed(tmp_path: Path) -> None:
    wanted = around(tmp_path, weights=["smollm2-135m", "tiny.en"])
    language, speech = settings_checks.weights(wanted)
    assert (language.verdict, language.hint) == ("bad", "hermesctl models pull smollm2-135m")
    assert speech.verdict == "care"
    folder = wanted.places.models / "tiny.en"
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(b"half")
    assert settings_checks.weights(wanted)[1].fact == "damaged"
    assert settings_checks.weights(around(tmp_path, weights=[])) == []


def test_folders_and_files_of_others_are_found(tmp_path: Path) -> None:
    seen = around(tmp_path / "home")
    assert storage_checks.rights(seen).verdict == "good"
    seen.places.journal.write_bytes(b"")
    seen.places.journal.chmod(0o640)
    assert storage_checks.rights(seen).hint == f"chmod 600 {seen.places.journal}"
    seen.places.journal.chmod(0o600)
    seen.places.settings_file.write_text("")
    seen.places.settings_file.chmod(0o666)
    assert storage_checks.rights(seen).hint == f"chmod go-w {seen.places.settings_file}"


def test_a_journal_from_the_future_means_a_wrong_clock(tmp_path: Path) -> None:
    seen = around(tmp_path)
    seen.places.journal.write_bytes(b"")
    assert host_checks.clock(seen).verdict != "bad"
    os.utime(seen.places.journal, (4e9, 4e9))
    assert host_checks.clock(seen).verdict == "bad"


def test_a_damaged_journal_is_wrong(tmp_path: Path) -> None:
    seen = around(tmp_path)
    assert service_checks.journal(seen).fact == "not made yet"
    seen.places.journal.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    assert service_checks.journal(seen).fact == "damaged: file is not a database"


def test_processes_of_an_earlier_life_are_found(tmp_path: Path) -> None:
    seen = around(tmp_path)
    seen.places.runtime.mkdir()
    record = seen.places.runtime / "processes"
    where = (
        f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    )
    record.write_text(f"{where}\n{os.getpid()} {service_checks._started(os.getpid())}\n1 99999999999\n")
    found = service_checks.leftovers(seen)
    assert (found.verdict, found.fact) == ("bad", f"processes of an earlier life still run: {os.getpid()}")
    record.write_text(f"another boot\n{os.getpid()} {service_checks._started(os.getpid())}\n")
    assert service_checks.leftovers(seen).verdict == "good"


def test_a_lock_whose_holder_does_not_answer_is_wrong(tmp_path: Path) -> None:
    seen = around(tmp_path)
    with seen.places.lock.open("w") as lock:
        assert service_checks.lock(seen).fact == "free"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"kill -9 {os.getpid()}" in service_checks.lock(seen).hint
        assert service_checks.lock(around(tmp_path, {"pid": os.getpid()})).verdict == "good"


def test_the_service_speaks_for_itself(tmp_path: Path) -> None:
    def of(**status: Any) -> Finding:
        return service_checks.service(
            around(tmp_path, {"state": "ready", "pid": 1, "version": "1", **status})
        )

    assert of().verdict == "good"
    assert of(hints=["two workers cannot start"]).hint == "two workers cannot start"
    assert of(state="stuck", hints=["no room"]).verdict == "bad"


def test_a_unit_whose_program_is_gone_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "systemd" / "user"
    folder.mkdir(parents=True)
    unit = folder / "hermes-supervisor.service"
    unit.write_text(f"[Service]\nExecStart={tmp_path}/gone/hermesctl run\n")
    found = host_checks.unit(around(tmp_path))
    assert (found.verdict, found.hint) == ("bad", "hermesctl install --user")
    unit.write_text(f"[Service]\nExecStart={sys.executable} -m hermesctl run\n")
    assert host_checks.unit(around(tmp_path)).verdict != "bad"
    assert host_checks.lingering(around(tmp_path)) is not None


def test_a_cell_that_cannot_be_had_is_told_with_its_reason(tmp_path: Path) -> None:
    refused = kernel_checks.cell(
        around(tmp_path, cell={"fault": "workers cannot be held here", "hint": "mend it"})
    )
    assert (refused.verdict, refused.hint) == ("bad", "mend it")
    weaker = kernel_checks.cell(around(tmp_path, cell={"kind": "sweep", "description": "sweeps"}))
    assert (weaker.verdict, weaker.fact) == ("care", "sweep: sweeps")
    older = {"kind": "pidns", "description": "namespaces", "shortcomings": ["sockets can be reached"]}
    assert (
        kernel_checks.cell(around(tmp_path, cell=older)).fact == "pidns: namespaces; sockets can be reached"
    )


def test_limits_of_a_running_service_are_its_own(tmp_path: Path) -> None:
    found = limit_checks.open_files(around(tmp_path, {"pid": os.getpid()}))
    assert "for the service" in found.fact


def test_every_check_is_small_and_says_what_it_is_about() -> None:
    names = [check.__name__ for check in CHECKS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("controllers", "is_root", "release", "fact", "hint"),
    [
        ("cpu memory pids", False, "6.1.0-13-amd64", "v2, writable", ""),
        ("cpu memory pids", True, "6.18.44", "v2, writable", ""),
        ("cpu memory pids", False, "5.10.0", "no cgroup.kill", "Linux 5.14"),
        ("", True, "6.18.44", "no controller for memory and pids", "systemd.unified_cgroup_hierarchy=1"),
        ("memory", False, "6.18.44", "no controller for pids", "Delegate=yes"),
    ],
    ids=["own cgroup", "root of all", "old kernel", "beside version 1", "not delegated"],
)
def test_the_cgroup_is_judged_with_the_remedy_that_helps(
    tmp_path: Path, controllers: str, is_root: bool, release: str, fact: str, hint: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text(f"{controllers}\n")
    if not is_root:
        (tmp_path / "cgroup.type").write_text("domain\n")
    found = kernel_checks.judged_cgroup(tmp_path, release)
    assert found.verdict == ("care" if hint else "good")
    assert fact in found.fact
    assert hint in found.hint
    assert ("5.14" in found.hint) == (release == "5.10.0")


def test_a_new_kernel_without_cgroup_v2_is_not_told_to_be_newer() -> None:
    found = kernel_checks.judged_cgroup(None, "6.18.44")
    assert (found.verdict, found.fact) == ("care", "no cgroup v2 is mounted")
    assert "5.14" not in found.hint


def test_for_a_unit_the_remedy_of_a_missing_key_is_no_export(tmp_path: Path) -> None:
    home = make_private_home(
        tmp_path, '[model]\nbase_url = "http://127.0.0.1:9/v1"\nname = "x"\napi_key_env = "NO_SUCH_KEY"\n'
    )
    hints = []
    for unit in ([], ["--unit"]):
        line = [sys.executable, "-m", "supervisor.host.preflight", "--home", str(home), *unit]
        done = subprocess.run(line, capture_output=True, text=True, env=environment(), cwd=ROOT, check=True)
        hints.append(json.loads(done.stdout)["model"]["hint"])
    assert "export NO_SUCH_KEY" in hints[0]
    assert "export" not in hints[1]
    assert "api_key_file" in hints[1]
