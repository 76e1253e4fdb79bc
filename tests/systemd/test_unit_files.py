"""The unit files themselves: they agree with the code, and systemd has no complaint about them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hermesctl.unit_files import SERVICE, SYSTEM_USER, Program, Scope, render, state_of
from ipc import time_budgets
from ipc.places import SYSTEM, find_places
from tests.systemd.samples import FOLDER, PROGRAM, YOURS, samples


def keys(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w*=", line))


def seconds(value: str) -> float:
    assert value.isdecimal(), value
    return float(value)


@pytest.mark.parametrize("scope", list(Scope))
def test_e8_the_stop_budget_lies_within_what_systemd_waits(scope: Scope) -> None:
    unit = keys(render(scope, YOURS, PROGRAM)[SERVICE])
    waits = seconds(unit["TimeoutStopSec"])
    assert (
        time_budgets.PROCESSES_END_SECONDS
        < time_budgets.STOP_SECONDS
        < time_budgets.STOP_PATIENCE_SECONDS
        < waits
    )
    assert time_budgets.STOP_SECONDS < seconds(unit["WatchdogSec"]) < waits
    # Only the supervisor is asked, and whatever is left after it is killed at once.
    assert unit["KillMode"] == "mixed"


@pytest.mark.parametrize("path", samples(), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_the_units_shown_are_the_units_written(path: Path) -> None:
    assert path.read_text() == samples()[path], "python -m tests.systemd.samples writes it anew"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
@pytest.mark.parametrize("scope", list(Scope))
def test_systemd_has_no_complaint(scope: Scope, tmp_path: Path) -> None:
    files = render(scope, YOURS, Program.running())
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    line = ["systemd-analyze", f"--{scope}", "verify", *(str(tmp_path / name) for name in files)]
    found = subprocess.run(line, capture_output=True, text=True, timeout=60)
    complaints = [said for said in found.stderr.splitlines() if any(name in said for name in files)]
    assert complaints == []


def test_a_unit_tells_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / SERVICE).write_text(render(Scope.USER, YOURS, PROGRAM)[SERVICE])
    assert state_of(tmp_path / SERVICE) == YOURS.state
    assert state_of(tmp_path / "none") is None


def test_a_home_of_ones_own_and_odd_paths_reach_the_unit(tmp_path: Path) -> None:
    home = tmp_path / "a % home"
    odd = Program("/opt/50% of $ two/python", Path("/opt/50% of"), ())
    unit = keys(render(Scope.USER, find_places(str(home)), odd)[SERVICE])
    launcher = '"/opt/50%% of/ipc/launch.py"'
    assert unit["ExecStart"] == f'"/opt/50%% of $$ two/python" -P -E -s {launcher} hermesctl run'
    assert unit["WorkingDirectory"] == "/"
    assert unit["Environment"] == f'"HERMES_SUPERVISOR_HOME={tmp_path}/a %% home"'


def test_a_program_in_a_home_stays_visible_where_homes_are_hidden() -> None:
    program = Program("python", Path("/x"), (Path("/home/you/venv"), Path("/opt/x"), Path("/tmp/y")))

    def shown(user: str) -> tuple[str, str]:
        unit = keys(render(Scope.SYSTEM, SYSTEM, program, user)[SERVICE])
        return unit["ProtectHome"], unit["BindReadOnlyPaths"]

    assert shown(SYSTEM_USER) == ("tmpfs", "/home/you/venv /tmp/y")
    assert shown("you") == ("no", "/tmp/y")


def test_the_machines_service_has_the_machines_folders() -> None:
    unit = keys(render(Scope.SYSTEM, SYSTEM, PROGRAM)[SERVICE])
    for folder, root, key in (
        (SYSTEM.config, "/etc", "ConfigurationDirectory"),
        (SYSTEM.state, "/var/lib", "StateDirectory"),
        (SYSTEM.runtime, "/run", "RuntimeDirectory"),
    ):
        assert Path(root, unit[key].split()[0]) == folder
