"""An interpreter of a user's own is asked what it is, and cannot be made to run or to say anything else."""

import sys
from pathlib import Path

import pytest

from ipc import foreign_python


def program(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "python"
    file.write_text("\n".join(("#!/bin/sh", *lines)))
    file.chmod(0o755)
    return str(file)


def test_a_module_in_the_current_folder_is_not_executed_by_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("msgspec", "zmq"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    foreign_python.version(sys.executable)
    assert not (tmp_path / "executed").exists()


def test_it_gets_no_key_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    python = program(tmp_path, f"env > {tmp_path}/seen", "echo cpython-311 3 11 all")
    assert foreign_python.version(python) == ("cpython-311", ("", ""))
    assert "PATH=" in (tmp_path / "seen").read_text()
    assert "sk-secret" not in (tmp_path / "seen").read_text()


def test_a_program_that_never_answers_is_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_python, "_ANSWER_SECONDS_MAX", 0.05)
    found = foreign_python.fault(program(tmp_path, "exec sleep 600"), ())
    assert found is not None
    assert "cannot be run as a Python interpreter" in found[0]


@pytest.mark.parametrize(("minor", "is_taken"), [(10, False), (11, True)])
def test_the_oldest_version_is_taken_and_the_one_before_is_not(
    tmp_path: Path, minor: int, is_taken: bool
) -> None:
    found = foreign_python.fault(program(tmp_path, f"echo tag 3 {minor} all"), ())
    assert (found is None) == is_taken


def test_one_that_is_too_old_for_an_option_is_named_as_too_old(tmp_path: Path) -> None:
    python = program(tmp_path, 'for each in "$@"; do [ "$each" = -P ] && exit 2; done', "echo tag 3 9 none")
    _, (fault, _) = foreign_python.version(python)
    assert fault == f"{python} is Python 3.9, and agents need 3.11 or later"


@pytest.mark.parametrize("line", ["exit 0", "echo tag 3 11", "echo tag 3 x all", "printf '\\377 3 11 all'"])
def test_a_program_that_answers_something_else_is_no_interpreter(tmp_path: Path, line: str) -> None:
    python = program(tmp_path, line)
    found = foreign_python.fault(python, ())
    assert found is not None
    assert found[0] == f"{python} cannot be run as a Python interpreter"


def test_a_program_that_fails_after_its_answer_is_no_interpreter(tmp_path: Path) -> None:
    assert foreign_python.fault(program(tmp_path, "echo tag 3 11 all", "exit 3"), ()) is not None


def test_a_folder_is_named_as_no_executable_file(tmp_path: Path) -> None:
    found = foreign_python.fault(str(tmp_path), ())
    assert found is not None
    assert found[0] == f"{tmp_path} is not an executable file"
