"""`run`, `start` and `stop` with a stand-in for the supervisor that `python -m supervisor` finds first."""

import os
import signal
from pathlib import Path

import pytest

from tests.hermesctl.hand import Result, hermesctl

LIVING = """
import os, sys
from pathlib import Path
from ipc.messages import Done, Show, Stop, Table
from tests.hermesctl.peer import Peer

looks = 0
def reply(peer, request):
    global looks
    if isinstance(request, Stop):
        peer._loop.call_soon(peer._loop.stop)
        return [Done()]
    looks += 1
    state = "ready" if looks > 2 else "starting"
    return [Table(({"pid": os.getpid(), "state": state, "model": "warming", "busy": 0},))]

print("supervisor says hello", sys.argv[1:], flush=True)
peer = Peer(Path(sys.argv[2]), reply).open()
peer._thread.join()
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    folder = tmp_path / "cwd" / "supervisor"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    return folder / "__main__.py"


def ctl(tmp_path: Path, *line: str) -> Result:
    return hermesctl(tmp_path / "home", *line, cwd=tmp_path / "cwd")


def test_start_returns_when_ready_and_stop_when_gone(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text(LIVING)
    started = ctl(tmp_path, "start")
    assert started.code == 0, started
    pid = int(started.out.split("pid ")[1].split(";")[0])
    try:
        assert "starting: model warming" in started.err
        assert os.getsid(pid) == pid
        again = ctl(tmp_path, "start")
        assert (again.code, again.out) == (0, f"already running, pid {pid}\n")
        stopped = ctl(tmp_path, "stop")
        assert (stopped.code, stopped.out) == (0, f"stopped, pid {pid}\n")
    finally:
        end(pid)
    assert ctl(tmp_path, "stop").out == "not running\n"
    log = tmp_path / "home" / "logs" / "supervisor.log"
    assert log.read_text() == f"supervisor says hello ['--home', '{tmp_path / 'home'}']\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("code", [75, 78])
def test_start_passes_the_code_and_the_last_words_through(tmp_path: Path, stand_in: Path, code: int) -> None:
    stand_in.write_text(f"print('key workers.per_cpu is odd', flush=True)\nraise SystemExit({code})\n")
    result = ctl(tmp_path, "start")
    assert result.code == code
    assert "key workers.per_cpu is odd" in result.err
    assert f"exit code {code}" in result.err


def test_start_shows_only_the_words_of_this_start(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text("raise SystemExit('the first fault')\n")
    ctl(tmp_path, "start")
    stand_in.write_text("raise SystemExit('the second fault')\n")
    result = ctl(tmp_path, "start")
    assert "the second fault" in result.err
    assert "the first fault" not in result.err


def test_run_becomes_the_supervisor(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text("import sys\nprint(sys.argv[1:])\nraise SystemExit(75)\n")
    result = ctl(tmp_path, "run")
    assert (result.code, result.out) == (75, f"['--home', '{tmp_path / 'home'}']\n")


def test_stop_says_what_it_waits_for_and_gives_up_in_time(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text(LIVING.replace("peer._loop.call_soon(peer._loop.stop)", "pass"))
    started = ctl(tmp_path, "start")
    pid = int(started.out.split("pid ")[1].split(";")[0])
    try:
        result = ctl(tmp_path, "stop", "--timeout", "1.5")
    finally:
        end(pid)
    assert result.code == 1
    assert "waiting for 0 busy workers" in result.err
    assert f"kill -9 {pid}" in result.err


def end(pid: int) -> None:
    """Leaves no stand-in behind, whatever the test found."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
