"""A process of the fork server cannot be told from one that was executed, but by the time it took."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ipc import interpreter
from tests import warm
from tests.house_rules import ROOT
from tests.waiting import DEADLINE_SECONDS

Start = type[subprocess.Popen[str]]
LINE = [sys.executable, "-m", "tests.own_looks"]


def looks(
    start: Start, status: int, line: Sequence[str] = LINE, **options: Any
) -> tuple[dict[str, Any], str]:
    pipe = subprocess.PIPE
    started = start(
        [*line, str(status), "two words"], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options
    )
    with started as process:
        out, err = process.communicate("what was sent")
    assert process.returncode == status, err
    return json.loads(out), err


@pytest.mark.parametrize("new_session", [True, False])
@pytest.mark.parametrize("line", [LINE, interpreter.command("tests.own_looks")], ids=["plain", "isolated"])
def test_it_is_as_if_it_had_been_executed(tmp_path: Path, line: list[str], new_session: bool) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo", "HERMES_TEST": "two\nlines"}
    options = {"env": environment, "cwd": tmp_path, "start_new_session": new_session}
    executed = looks(subprocess.Popen, 3, line, **options)
    forked = looks(warm.Popen[str], 3, line, **options)
    assert forked == executed
    assert forked[0]["parent"] == os.getpid()
    assert forked[0]["stdin"] == "what was sent"


def test_descriptors_keep_their_numbers(tmp_path: Path) -> None:
    kept = os.open(tmp_path, os.O_RDONLY)
    # A free number: a fixed one may belong to this process, its fork server for example.
    high = fcntl.fcntl(kept, fcntl.F_DUPFD_CLOEXEC, 40)
    try:
        executed, forked = (
            looks(start, 0, cwd=ROOT, pass_fds=[high, kept])[0]["descriptors"]
            for start in (subprocess.Popen[str], warm.Popen[str])
        )
    finally:
        os.close(high)
        os.close(kept)
    assert {kept, high} <= set(forked)
    assert forked == executed


def test_a_signal_is_its_exit_status() -> None:
    with warm.Popen(LINE, stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_what_the_interpreter_obeys_is_obeyed(tmp_path: Path) -> None:
    """Not by the fork server: its interpreter has started already."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.exit('not today')\n")
    done = warm.run([*LINE, "0"], env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}, cwd=ROOT)
    assert done.returncode != 0
    assert "not today" in done.stderr


def test_a_fault_is_a_traceback_and_a_status() -> None:
    done = warm.run([*LINE, "no number"], input="", cwd=ROOT)
    assert done.returncode == 1
    assert "ValueError: invalid literal for int()" in done.stderr
    assert done.stdout.startswith("{")


def test_what_is_no_text_is_executed() -> None:
    done = warm.run([*LINE, "0", os.fsdecode(b"\xff")], input="", cwd=ROOT)
    assert json.loads(done.stdout)["argv"][-1] == os.fsdecode(b"\xff")


@pytest.mark.parametrize("options", [[], ["-B"]], ids=["forked", "executed"])
def test_it_has_a_terminal_of_its_own(options: list[str]) -> None:
    ours, theirs = pty.openpty()
    line = [sys.executable, *options, "-m", "tests.own_looks", "0"]
    with warm.InTerminal(line, theirs, env=dict(os.environ), cwd=ROOT) as process:
        os.close(theirs)
        os.write(ours, b"\x04")
        written = b""
        with contextlib.suppress(OSError):  # EIO: it has ended
            while piece := os.read(ours, 65536):
                written += piece
        assert process.wait(DEADLINE_SECONDS) == 0
    os.close(ours)
    assert b'"has_terminal": true' in written
    assert b'"leads_its_session": true' in written
