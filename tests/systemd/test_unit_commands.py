"""The commands of systemd as hermesctl gives them, and what becomes of their refusals."""

from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.systemd import Unit
from hermesctl.unit_files import SERVICE, Scope


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for systemctl and journalctl; the file has their arguments, a line each."""
    programs = {
        "systemctl": 'case "$*" in *" start "*) echo "Job failed." >&2; exit 1;; '
        '*" show "*) echo "ExecMainStatus=${STATUS}";; esac',
        "journalctl": 'echo "the last words"',
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/said\n{text}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path / "said"


@pytest.mark.parametrize(("status", "code"), [("75", 75), ("78", 78), ("1", Exit.BUG), ("", Exit.BUG)])
def test_a_start_that_fails_has_the_code_and_the_words_of_this_start(
    said: Path, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    monkeypatch.setenv("STATUS", status)
    with pytest.raises(CommandError) as failed:
        Unit(Scope.USER).change("start", lambda: None)
    assert failed.value.code == code
    assert failed.value.fault == "systemd could not start it: Job failed.\n    the last words"
    lines = said.read_text().splitlines()
    assert "reset-failed" in lines[0]
    assert f" start {SERVICE}" in lines[1]
    assert f"--user-unit={SERVICE}" in lines[-1]
    assert "--since=@" in lines[-1]


def test_a_stop_keeps_the_count_of_crashes(said: Path) -> None:
    Unit(Scope.SYSTEM).change("stop", lambda: None)
    (line,) = said.read_text().splitlines()
    assert line.endswith(f" stop {SERVICE}")


def test_the_log_of_the_machines_unit_is_asked_for_by_its_unit() -> None:
    assert Unit(Scope.SYSTEM).journal("-f") == ["journalctl", f"--unit={SERVICE}", "-f"]
