"""Tab in a real bash: commands, sessions with colons and spaces, ids; silence when nothing runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermesctl.commands.completion import SHELLS
from ipc.messages import Show
from tests.hermesctl.hand import ROOT, environment, hermesctl
from tests.hermesctl.peer import opened, tables
from tests.hermesctl.terminal import CTRL_U, TAB, Terminal

ROWS: dict[str, list[dict[str, Any]]] = {
    "sessions": [
        {"session": "telegram:42", "state": "free"},
        {"session": "telegram:77", "state": "free"},
        {"session": "my notes", "state": "free"},
        {"session": "evil\n$(touch owned)", "state": "free"},
    ],
    "turns": [{"turn": "demo/3", "state": "failed"}],
    "questions": [{"question": "demo/3#1", "kind": "clarify"}],
    "hosts": [{"name": "alpha", "state": "open"}, {"name": "beta", "state": "draining"}],
    "agents": [{"agent": "builder", "kind": "builtin"}, {"agent": "default", "kind": "builtin"}],
}


@pytest.fixture
def bash(tmp_path: Path) -> list[str]:
    """A bash that knows hermesctl as a command and has loaded its completion."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "hermesctl"
    command.write_text(
        f'#!/bin/sh\nexport HERMES_SUPERVISOR_HOME={tmp_path}\nexec {sys.executable} -m hermesctl "$@"\n'
    )
    command.chmod(0o755)
    rc = tmp_path / "rc"
    rc.write_text(
        f'PATH={folder}:$PATH\nPS1="> "\nbind "set bell-style none"\nsource <(hermesctl completion bash)\n'
    )
    return ["bash", "--noprofile", "--rcfile", str(rc), "-i"]


TYPED = {
    "hermesctl inter": "hermesctl interrupt ",
    "hermesctl turns --state pois": "hermesctl turns --state poison ",
    "hermesctl send tel": "hermesctl send telegram:",
    "hermesctl send telegram:4": "hermesctl send telegram:42 ",
    "hermesctl tail my": r"hermesctl tail my\ notes ",
    "hermesctl why de": "hermesctl why demo/3 ",
    "hermesctl answer demo/3": "hermesctl answer demo/3#1 ",
    "hermesctl doctor --isolation --agent bui": "hermesctl doctor --isolation --agent builder ",
    "hermesctl agents try bui": "hermesctl agents try builder ",
    "hermesctl drain --host be": "hermesctl drain --host beta ",
    "hermesctl journal move sq": "hermesctl journal move sqlite: ",
    "hermesctl models pull smol": "hermesctl models pull smollm2-135m ",
    "hermesctl send demo --audio pyproj": "hermesctl send demo --audio pyproject.toml ",
    "hermesctl journal backup pyproj": "hermesctl journal backup pyproject.toml ",
    "hermesctl send demo --busy col": "hermesctl send demo --busy collect ",
}


def test_tab_completes_in_a_real_bash(tmp_path: Path, bash: list[str]) -> None:
    with opened(tmp_path, tables(**ROWS)), Terminal(bash) as terminal:
        terminal.shows(">")
        for typed, completed in TYPED.items():
            # What is typed behind it shows where the cursor stands: after a space, or not.
            terminal.type(typed + TAB + "|")
            terminal.shows(f"> {completed}|")
            terminal.type(CTRL_U)
            terminal.becomes(lambda screen: screen.split() == [">"])
    assert not (ROOT / "owned").exists()


def test_nothing_is_said_when_nothing_runs(tmp_path: Path) -> None:
    result = completions(tmp_path, "hermesctl send tel")
    assert (result.returncode, result.stdout, result.stderr) == (0, "\n", "")


def test_a_name_of_several_lines_is_not_offered(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)) as peer:
        offered = completions(tmp_path, "hermesctl send ").stdout.splitlines()
        assert peer.requests(Show)[0].what == "sessions"
    assert offered == ["plain,telegram:42", "plain,telegram:77", r"plain,my\ notes"]


def test_commands_are_offered_without_loading_them(tmp_path: Path) -> None:
    probe = (
        "import sys\nfrom hermesctl.main import main\n"
        "try: main()\nfinally: print([n for n in sys.modules if n.startswith('hermesctl.commands.')])"
    )
    asked = environment(_HERMESCTL_COMPLETE="bash_complete", COMP_LINE="hermesctl s")
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, env=asked, capture_output=True, text=True)
    *offered, loaded = done.stdout.splitlines()
    assert "plain,send" in offered
    assert "plain,status" in offered
    assert loaded == "[]"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_its_shell_can_read(tmp_path: Path, shell: str) -> None:
    script = hermesctl(tmp_path, "completion", shell)
    assert (script.code, script.err) == (0, "")
    assert "_HERMESCTL_COMPLETE" in script.out
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(script.out)
        subprocess.run([shell, "-n", str(file)], check=True)


def test_an_unknown_shell_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "completion", "tcsh")
    assert result.code == 2
    assert "SHELL is bash, zsh or fish, not “tcsh”" in result.err


def completions(home: Path, line: str) -> "subprocess.CompletedProcess[str]":
    """What the shell is told for a line that ends where the cursor is."""
    asked = environment(
        _HERMESCTL_COMPLETE="bash_complete",
        COMP_LINE=line,
        HERMES_SUPERVISOR_HOME=str(home),
        PATH=os.environ["PATH"],
    )
    command = [sys.executable, "-m", "hermesctl"]
    return subprocess.run(command, cwd=ROOT, env=asked, capture_output=True, text=True)
