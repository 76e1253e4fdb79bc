"""`run`, `start` and `stop` of an installation whose supervisor is a stand-in."""

import os
import signal
from pathlib import Path

import pytest

from hermesctl.systemd import is_there
from tests.hermesctl.hand import ROOT, Result, Running, hermesctl
from tests.hermesctl.terminal import hermesctl_in

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
    """The module that is run in place of the supervisor, installed beside the real packages."""
    folder = tmp_path / "installed" / "supervisor"
    folder.mkdir(parents=True)
    for name in ("hermesctl", "ipc", "tests"):
        (folder.parent / name).symlink_to(ROOT / name)
    (folder / "__init__.py").touch()
    return folder / "__main__.py"


def ctl(tmp_path: Path, *line: str) -> Result:
    return hermesctl(tmp_path / "home", *line, cwd=tmp_path / "installed")


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


def test_e1_stop_says_what_it_waits_for_and_kills_when_the_time_is_over(
    tmp_path: Path, stand_in: Path
) -> None:
    waits = LIVING.replace('"busy": 0', '"waits_for": "waiting for 2 workers to end"')
    stand_in.write_text(waits.replace("peer._loop.call_soon(peer._loop.stop)", "pass"))
    started = ctl(tmp_path, "start")
    pid = int(started.out.split("pid ")[1].split(";")[0])
    try:
        result = ctl(tmp_path, "stop", "--timeout", "1.5")
        assert result.code == 0
        assert "waiting for 2 workers to end" in result.err
        assert result.out == f"killed after 1.5 s, pid {pid}; nothing accepted is lost\n"
        assert ctl(tmp_path, "stop").out == "not running\n"
    finally:
        end(pid)


def test_e1_stop_needs_no_answer_of_a_supervisor_that_stands_still(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text(LIVING)
    pid = int(ctl(tmp_path, "start").out.split("pid ")[1].split(";")[0])
    try:
        os.kill(pid, signal.SIGSTOP)
        result = ctl(tmp_path, "stop", "--timeout", "2")
    finally:
        end(pid)
    assert result.out.startswith("killed after 2 s")
    assert "waiting for the process itself to end, 2 s at most" in result.err


def test_restart_is_a_stop_and_a_start(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text(LIVING)
    first = int(ctl(tmp_path, "start").out.split("pid ")[1].split(";")[0])
    second = 0
    try:
        told = ctl(tmp_path, "restart").out
        second = int(told.split("started, pid ")[1].split(";")[0])
        assert told.startswith(f"stopped, pid {first}\n")
        assert second != first
    finally:
        for pid in filter(None, (first, second)):
            end(pid)


def test_logs_shows_the_last_lines_and_follows_through_a_rotation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert hermesctl(home, "logs").code == 69
    log = home / "logs" / "supervisor.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    assert hermesctl(home, "logs", "--lines", "2").out == "line 98\nline 99\n"
    assert hermesctl(home, "logs", "--lines", "1", "--json").out == '{"line": "line 99"}\n'
    with Running(home, "logs", "-f", "--lines", "1") as following:
        following.wait_for("line 99\n")
        with log.open("a") as file:
            file.write("fresh\n")
        following.wait_for("fresh\n")
        log.rename(log.with_suffix(".log.1"))
        log.write_text("in the next file\n")
        assert following.wait_for("in the next file\n") == "line 99\nfresh\nin the next file\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("1731700000.123 turn.opened session=demo", "2024-11-15 19:46:40.123 turn.opened session=demo"),
        (
            '{"at": 1731700000.123, "event": "turn.opened"}',
            '2024-11-15 19:46:40.123 {"event": "turn.opened"}',
        ),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
    ],
    ids=["logfmt", "json", "another line"],
)
def test_logs_shows_times_that_a_person_reads_on_a_terminal_only(
    tmp_path: Path, line: str, shown: str
) -> None:
    log = tmp_path / "logs" / "supervisor.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{line}\n")
    assert hermesctl(tmp_path, "logs").out == f"{line}\n"
    with hermesctl_in(tmp_path, "logs") as terminal:
        assert terminal.ends() == 0
        assert terminal.screen.strip() == shown


@pytest.mark.skipif(is_there(), reason="systemd runs this machine")
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_without_systemd_there_is_nothing_to_install(tmp_path: Path, command: str) -> None:
    result = hermesctl(tmp_path / "home", command, "--user", HOME=str(tmp_path))
    assert result.code == 5
    assert "hint: hermesctl" in result.err


def end(pid: int) -> None:
    """Leaves no stand-in behind, whatever the test found."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
