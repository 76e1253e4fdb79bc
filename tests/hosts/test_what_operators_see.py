"""`hermesctl hosts` and its neighbours: every host shows all of them, and what each does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fake_model import FakeModel
from tests.hosts.several import HOLD, LEASE_SECONDS, Hosts, running
from tests.service import Service, settings_for
from tests.waiting import until


def listed(service: Service) -> dict[str, dict[str, Any]]:
    done = service.hermesctl("hosts", "--json")
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_each_host_lists_all_with_their_lease_seats_and_sessions(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta", 'labels = ["gpu"]')
    alpha.say("s", HOLD)
    until(lambda: listed(beta)["alpha"]["sessions"] == 1)
    until(lambda: (listed(beta)["alpha"]["free"], listed(beta)["beta"]["free"]) == (1, 2))
    for service, here in ((alpha, "alpha"), (beta, "beta")):
        found = listed(service)
        assert [name for name, row in found.items() if row["is_here"]] == [here]
        assert {name: row["state"] for name, row in found.items()} == {"alpha": "open", "beta": "open"}
        assert all(0 < row["lease_seconds"] <= LEASE_SECONDS for row in found.values())
        assert {row["version"] for row in found.values()} == {alpha.status()["version"]}
    assert found["beta"]["labels"] == ["gpu"]
    assert (found["alpha"]["seats"], found["beta"]["sessions"]) == (2, 0)
    assert (found["alpha"]["running"], found["beta"]["running"]) == (1, 0)
    shown = alpha.hermesctl("hosts").stdout.splitlines()
    assert shown[0].split()[:4] == ["HOST", "VERSION", "STATE", "LEASE"]
    assert [line.split()[0] for line in shown[1:]] == ["alpha", "beta"]


def test_a_turn_is_listed_with_its_host_wherever_it_runs(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    alpha.say("ended", "hello")
    alpha.listen("ended").ending("ended/1")
    alpha.say("s", HOLD)
    pid = running(alpha, "s")
    for service in (alpha, beta):
        found = {row["turn"]: row for row in service.show("turns")}
        assert {key: found["s/1"][key] for key in ("host", "pid")} == {"host": "alpha", "pid": pid}
        assert found["s/1"]["worker"] is not None
        assert "host" not in found["ended/1"]
        shown = service.hermesctl("turns", "--state", "running").stdout.splitlines()
        assert "HOST" in shown[0].split()
        assert "alpha" in shown[1].split()
    assert "HOST" not in beta.hermesctl("turns", "--session", "ended").stdout


def test_a_host_that_stopped_is_not_listed(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    assert beta.stop() == 0
    assert list(listed(alpha)) == ["alpha"]


def test_a_journal_in_a_file_has_one_host(tmp_path: Path, model: FakeModel) -> None:
    settings = settings_for(model, workers="count = 2", hosts='name = "alone"')
    with Service(tmp_path / "home", settings) as service:
        (row,) = listed(service).values()
        assert (row["name"], row["state"], row["seats"], row["lease_seconds"]) == ("alone", "open", 2, None)
        assert service.hermesctl("hosts").returncode == 0


def test_a_host_is_drained_and_undrained_from_another(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    beta.say("held", HOLD)
    until(lambda: listed(alpha)["beta"]["running"] == 1)
    done = alpha.hermesctl("drain", "--host", "beta", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"host": "beta", "draining": True, "running": 1}
    assert (beta.status()["state"], alpha.status()["state"]) == ("draining", "ready")
    assert listed(alpha)["beta"]["state"] == "draining"
    command = [
        sys.executable,
        "-m",
        "hermesctl",
        "--home",
        str(alpha.home),
        "drain",
        "--host",
        "beta",
        "--wait",
    ]
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    assert "1 turns running" in waiting.stderr.readline()
    beta.interrupt("held")
    assert waiting.communicate(timeout=30)[0] == "host beta begins no new turn; 0 still running\n"
    assert alpha.hermesctl("undrain", "--host", "beta").stdout == "host beta begins turns again\n"
    assert beta.status()["state"] == "ready"


def test_what_was_asked_once_is_not_asked_again(hosts: Hosts) -> None:
    """The host's own operator may undo it."""
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    assert alpha.hermesctl("drain", "--host", "beta").returncode == 0
    assert hosts.sql("SELECT asked FROM lives WHERE name = 'beta'") == [("",)]
    assert beta.hermesctl("undrain").returncode == 0
    renewed = hosts.sql("SELECT renewed_at FROM lives WHERE name = 'beta'")
    until(lambda: hosts.sql("SELECT renewed_at FROM lives WHERE name = 'beta'") != renewed)
    assert beta.status()["state"] == "ready"


def test_a_host_drains_itself_by_its_name(hosts: Hosts) -> None:
    alpha = hosts.start("alpha")
    assert alpha.hermesctl("drain", "--host", "alpha").returncode == 0
    assert alpha.status()["state"] == "draining"


def test_a_host_that_is_not_there_is_refused(hosts: Hosts, tmp_path: Path, model: FakeModel) -> None:
    alpha = hosts.start("alpha")
    with Service(tmp_path / "home", settings_for(model)) as alone:
        for service in (alpha, alone):
            done = service.hermesctl("drain", "--host", "gamma")
            assert done.returncode == 5
            assert "there is no host gamma" in done.stderr


def test_status_and_doctor_name_the_other_hosts(hosts: Hosts) -> None:
    alpha, beta = hosts.start("alpha"), hosts.start("beta")
    there = [{"name": "beta", "state": "open", "seats": 2, "free": 2}]
    until(lambda: alpha.status()["other_hosts"] == there)
    assert alpha.status()["host"] == "alpha"
    assert beta.hermesctl("drain").returncode == 0
    until(lambda: alpha.status()["other_hosts"][0]["state"] == "draining")
    assert "alpha (this one) · beta draining" in alpha.hermesctl("status").stdout
    lines = alpha.hermesctl("doctor").stdout.splitlines()
    assert [line.split()[2:] for line in lines if line.startswith("✔ hosts")] == [
        ["alpha", "open,", "beta", "draining"]
    ]
    hosts.sql("UPDATE lives SET version = '0.0.9' WHERE name = 'beta'")
    assert "beta 0.0.9" in alpha.hermesctl("doctor").stdout
