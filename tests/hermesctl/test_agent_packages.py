"""What is found about an agent without starting it, and how packages are laid beside its interpreter."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermesctl import agent_packages
from hermesctl.agent_rows import _found_fault, _is_missing
from hermesctl.command_result import steps, tell
from hermesctl.process import Ending
from ipc.places import find_places

ROW: dict[str, Any] = {
    "agent": "mine",
    "foreign": True,
    "python": "/gone/python",
    "state": "cold",
    "fault": "",
}


def test_the_interpreter_of_an_agent_is_asked_only_while_nothing_of_it_runs(tmp_path: Path) -> None:
    places = find_places(str(tmp_path))
    assert "does not exist" in _found_fault(places, ROW)["fault"]
    assert _found_fault(places, ROW | {"state": "warm"}) == {}
    assert _found_fault(places, ROW | {"foreign": False}) == {}
    assert _found_fault(places, ROW | {"fault": "it is broken"}) == {}


def test_a_program_is_missing_only_where_no_folder_could_have_it(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    assert _is_missing("gone", str(tmp_path))
    assert _is_missing(f"{tmp_path}/gone", "")
    assert not _is_missing("there", f"/nowhere:{tmp_path}")
    # In the workspace of each session.
    assert not _is_missing("./gone", str(tmp_path))
    assert not _is_missing("bin/gone", str(tmp_path))
    # A folder that cannot be looked into: here its name is too long.
    assert not _is_missing("gone", f"{tmp_path}:/{'x' * 300}")


def test_packages_can_be_read_by_the_user_of_the_agents() -> None:
    before = os.umask(0o077)
    try:
        assert agent_packages._run(["sh", "-c", "umask"], 60.0, "late").stdout.strip() == "0022"
    finally:
        os.umask(before)


def test_the_last_complaint_is_told_short_and_without_warnings() -> None:
    assert agent_packages._last_line("ERROR: no\n\nWARNING: pip is old\n") == "ERROR: no"
    assert agent_packages._last_line("x" * 1000) == "x" * 160
    assert agent_packages._last_line(" \n") == "it ended without a word"


def test_packages_of_an_older_release_are_not_those_that_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipc.foreign_python.fault", lambda python, path: None)
    (tmp_path / "msgspec-1.dist-info").mkdir()
    assert agent_packages._are_there("python", tmp_path, ["msgspec==1"])
    assert not agent_packages._are_there("python", tmp_path, ["msgspec==2"])
    assert not agent_packages._are_there("python", tmp_path, ["msgspec==1", "pyzmq==2"]), "one of two"


def test_steps_stand_beside_the_object_of_a_program_and_a_sentence_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps("json")("fetching …")
    tell("json", "done", folder="x")
    assert capsys.readouterr() == ('{"folder":"x"}\n', "fetching …\n")
    steps("words")("fetching …")
    tell("words", "done\nat last", folder="x")
    assert capsys.readouterr() == ("fetching …\ndone at last\n", "")


def test_a_process_that_has_ended_is_neither_waited_for_nor_killed() -> None:
    process = subprocess.Popen(["sleep", "60"])
    ending = Ending(process.pid)
    assert not ending.within(0)
    process.kill()
    process.wait()
    assert ending.within(60)
    ending.kill()
    ending.close()
    gone = Ending(process.pid)
    assert gone.within(0)
    gone.kill()
    gone.close()
