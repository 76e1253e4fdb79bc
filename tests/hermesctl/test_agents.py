"""`hermesctl agents`: from a running service, from hermes.toml alone, and with interpreters of all sorts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import Show, Submit
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.package_index import only_from
from tests.hermesctl.peer import opened, tables

ROWS: list[dict[str, Any]] = [
    {"agent": "default", "kind": "builtin", "python": "/usr/bin/python3", "foreign": False, "entry": "",
     "state": "warm", "pid": 12, "fault": "", "hint": ""},
    {"agent": "mine", "kind": "python", "python": "/venv/bin/python", "foreign": True, "entry": "my:agent",
     "state": "failed", "pid": None, "fault": "there is no module my", "hint": "correct entry"},
]  # fmt: skip


def settings(home: Path, python: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    agent = f'kind = "python"\nentry = "my:agent"\npython = "{python}"\n'
    (home / "hermes.toml").write_text(f"[agents.mine]\n{agent}")


def test_the_list_shows_states_faults_and_remedies(tmp_path: Path) -> None:
    with opened(tmp_path, tables(agents=ROWS)):
        head, default, mine, hint = hermesctl(tmp_path, "agents", "list").out.splitlines()
        in_json = json.loads(hermesctl(tmp_path, "agents", "list", "--json").out)
    assert head.split()[:3] == ["AGENT", "KIND", "STATE"]
    assert default.split()[:3] == ["default", "builtin", "warm"]
    assert mine.split()[:3] == ["mine", "python", "failed"]
    assert "there is no module my" in mine
    assert hint == "mine: correct entry"
    assert in_json == ROWS


def test_without_the_service_the_list_is_that_of_the_settings(tmp_path: Path) -> None:
    settings(tmp_path, str(tmp_path / "gone" / "python"))
    result = hermesctl(tmp_path, "agents", "list", "--json")
    rows = {row["agent"]: row for row in json.loads(result.out)}
    assert result.code == 0
    assert (rows["default"]["state"], rows["default"]["fault"]) == ("cold", "")
    assert rows["mine"]["fault"] == f"the interpreter {tmp_path}/gone/python does not exist"
    assert "hermesctl agents add mine" in rows["mine"]["hint"]


def test_settings_with_a_fault_are_named_instead_of_listed(tmp_path: Path) -> None:
    tmp_path.joinpath("hermes.toml").write_text("[agents.mine]\nknd = 1\n")
    result = hermesctl(tmp_path, "agents", "list")
    assert (result.code, "knd" in result.err, "hint:" in result.err) == (78, True, True)


def test_an_agent_that_does_not_exist_is_neither_tried_nor_added(tmp_path: Path) -> None:
    settings(tmp_path, sys.executable)
    with opened(tmp_path, tables(agents=ROWS)) as peer:
        tried = hermesctl(tmp_path, "agents", "try", "mien")
        assert peer.requests(Submit) == []
        assert peer.requests(Show) == [Show("agents")]
    added = hermesctl(tmp_path, "agents", "add", "mien")
    for result in (tried, added):
        assert (result.code, "did you mean mine?" in result.err) == (5, True)


def test_an_agent_in_the_interpreter_of_the_service_needs_nothing(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "agents", "add", "default", "--json")
    added = json.loads(result.out)
    assert (result.code, added["agent"], added["folder"]) == (0, "default", None)


def test_an_agent_is_added_as_the_settings_have_it_and_not_as_the_service_has_read_them(
    tmp_path: Path,
) -> None:
    settings(tmp_path, "/gone/python")
    with opened(tmp_path, tables(agents=[])) as peer:
        result = hermesctl(tmp_path, "agents", "add", "mine")
        assert (result.code, "/gone/python" in result.err) == (5, True), result.err
        assert peer.requests(Show) == []


@pytest.mark.parametrize("line", ["exit 3", "echo cpython-39 3 9 none"])
def test_an_interpreter_that_is_none_or_too_old_is_refused_with_its_remedy(tmp_path: Path, line: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    settings(tmp_path / "home", str(program))
    result = hermesctl(tmp_path / "home", "agents", "add", "mine")
    assert (result.code, str(program) in result.err.replace("\n    ", " ")) == (5, True)
    assert "[agents.mine]" in result.err
    assert not (tmp_path / "home" / "interpreters").exists()


def test_an_index_out_of_reach_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    settings(tmp_path, sys.executable)
    unreachable: Any = {**only_from(9), "PIP_RETRIES": "0"}
    result = hermesctl(tmp_path, "agents", "add", "mine", **unreachable)
    assert (result.code, "pip could not fetch the packages" in result.err) == (5, True)
    assert "hint: check pip's settings" in result.err
    assert [path for path in tmp_path.rglob("*") if path.name in ("site-packages", "msgspec")] == []
