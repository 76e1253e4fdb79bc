"""Reading and ending processes through /proc, with real processes of this test's own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.processes import procfs
from supervisor.processes.exit_reason import exited, how_it_ended, last_line, size
from supervisor.processes.memory import memory_bytes
from supervisor.processes.stuck_processes import named
from supervisor.processes.usage import Meter, Watched, _percent, read
from tests.waiting import until


@contextmanager
def shell(line: str, *held: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A shell in a group of its own, which has said `up`; `held` are descriptors that it inherits."""
    with subprocess.Popen(
        ["sh", "-c", line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        pass_fds=held,
    ) as made:
        try:
            assert made.stdout is not None
            assert made.stdout.readline() == b"up\n"
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(made.pid, signal.SIGKILL)


def process_of(pid: int) -> procfs.Process:
    found = procfs.status(pid)
    assert found is not None
    return found.process


def test_the_status_of_this_process_is_its_own() -> None:
    found = procfs.status(os.getpid())
    assert found is not None
    assert (found.process.pid, found.parent) == (os.getpid(), os.getppid())
    assert found.threads >= 1
    assert found.is_alive
    assert not found.is_stopped
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert found.process.started == int(fields[19])
    used = os.times()
    ticks = sum(used[:4]) * os.sysconf("SC_CLK_TCK")
    assert 0 < found.ticks <= ticks + 2


def test_a_process_whose_name_holds_brackets_and_blanks_is_read(tmp_path: Path) -> None:
    program = tmp_path / ") R 1 (x"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "100"]) as sleeper:
        until(lambda: Path(f"/proc/{sleeper.pid}/comm").read_text() == ") R 1 (x\n")
        found = procfs.status(sleeper.pid)
        assert found is not None
        assert found.parent == os.getpid()
        sleeper.kill()


def test_a_stopped_process_is_alive_and_an_unreaped_one_is_not() -> None:
    with shell("echo up; exec sleep 100") as sleeper:
        process = process_of(sleeper.pid)
        os.kill(sleeper.pid, signal.SIGSTOP)
        until(lambda: (found := procfs.living(process)) is not None and found.is_stopped)
        assert procfs.kill(process)
        until(lambda: procfs.living(process) is None)
        assert procfs.status(sleeper.pid) is not None
        assert not procfs.kill(process)
    assert procfs.status(sleeper.pid) is None
    assert procfs.children(process) == []


def test_descendants_are_found_to_any_depth_and_as_many_as_asked_for() -> None:
    with shell("sh -c 'sleep 100 & sleep 100 & echo up; wait' & wait") as top:
        process = process_of(top.pid)
        found = list(procfs.descendants(process, 100))
        assert len(found) == 3
        (middle,) = procfs.children(process)
        assert {status.parent for status in found} == {top.pid, middle}
        assert found[0].process.pid == middle
        assert len(list(procfs.descendants(process, 2))) == 2
        # Its pid with another start time is another process, which has no child.
        assert procfs.children(procfs.Process(process.pid, process.started + 1)) == []


def test_a_dead_child_is_no_descendant() -> None:
    with shell("sleep 0 & exec sh -c 'echo up; read line; :'") as top:
        until(lambda: not list(procfs.descendants(process_of(top.pid), 100)))
        assert procfs.children(process_of(top.pid)) != []


def test_a_kill_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with shell("echo up; exec sleep 100") as sleeper:
        with_pipes = len(os.listdir("/proc/self/fd"))
        process = process_of(sleeper.pid)
        assert not procfs.kill(procfs.Process(process.pid, process.started + 1))
        assert procfs.kill(process)
        assert sleeper.wait() == -signal.SIGKILL
        assert not procfs.kill(process)
        assert len(os.listdir("/proc/self/fd")) == with_pipes
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_pidfd_leads_to_its_pid_until_it_is_reaped() -> None:
    with shell("echo up; exec sleep 100") as sleeper:
        pidfd = os.pidfd_open(sleeper.pid)
        assert procfs.pid_of(pidfd) == sleeper.pid
        sleeper.kill()
        sleeper.wait()
        assert procfs.pid_of(pidfd) == -1
        os.close(pidfd)


def test_the_usage_of_a_tree_is_its_cpu_time_since_the_last_look() -> None:
    with shell("echo up; while :; do :; done") as busy:
        process = process_of(busy.pid)

        def members(at_most: int) -> list[procfs.Status]:
            return [found for found in [procfs.living(process)] if found is not None]

        meter = Meter()
        watched = {7: Watched(members, busy.pid, 0.0)}
        first = meter.read(watched)[7]
        assert (first.pid, first.processes) == (busy.pid, 1)
        assert first.memory_bytes > 0
        # Over its whole age, which is that of the host here, it has used next to nothing.
        assert first.cpu_percent < 50
        assert first.age_seconds > 0
        until(lambda: meter.read(watched)[7].cpu_percent > 5)
        # One that is no longer watched is forgotten.
        assert meter.read({}) == {}
        assert meter._last == {}


def test_the_memory_of_a_tree_is_read_again_when_its_processes_have_done_something() -> None:
    """A file without a name, which grows while the process that holds it sleeps, shows when it was read."""
    file = os.memfd_create("held")
    work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    with shell(f"echo up; while read -r line; do {work}; echo done; done", file) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        process = process_of(holder.pid)

        def members(at_most: int) -> list[procfs.Status]:
            return [found for found in [procfs.living(process)] if found is not None]

        def read_bytes() -> int:
            return meter.read({7: Watched(members, holder.pid, 0.0)})[7].memory_bytes

        meter = Meter()
        until(lambda: members(1)[0].state == "S")
        before = read_bytes()
        os.write(file, bytes(64 << 20))
        assert read_bytes() == before
        holder.stdin.write(b"work\n")
        holder.stdin.flush()
        holder.stdout.readline()
        until(lambda: members(1)[0].state == "S")
        # Of its own few pages the kernel may have taken some back.
        assert read_bytes() >= 64 << 20
        os.ftruncate(file, 0)
        assert read_bytes() >= 64 << 20
        # After a time it is read in any case.
        meter._last[7] = replace(meter._last[7], memory_at=0.0)
        assert read_bytes() < before + (32 << 20)
    os.close(file)


def test_a_share_of_a_processor_is_not_negative_and_needs_time() -> None:
    second = os.sysconf("SC_CLK_TCK")
    assert _percent(second, 2.0) == 50.0
    assert _percent(-second, 2.0) == 0.0
    assert _percent(second, 0.0) == 0.0


def test_a_large_log_is_cut_and_a_small_or_missing_one_is_not(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text("words")
    with large.open("wb") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    assert read(Meter(), {}, [tmp_path / "missing", large, small]) == {}
    assert (small.read_text(), large.stat().st_size) == ("words", 0)


def test_the_memory_of_several_processes_is_added_and_an_anonymous_file_counts_once() -> None:
    hoard = "x = bytearray(b'x') * (64 << 20)"
    lines = f"import os; f = os.memfd_create('m'); os.write(f, bytes(32 << 20)); os.fork(); {hoard}"
    code = f"{lines}; os.write(1, b'up\\n'); import time; time.sleep(100)"
    with shell(f'exec {sys.executable} -c "{code}"') as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        pids = [parent.pid, *procfs.children(process_of(parent.pid))]
        assert len(pids) == 2
        both = memory_bytes(pids)
        # Twice 64 MiB, and once the 32 MiB of the file; the interpreters are some MiB each.
        assert 160 << 20 <= both < 190 << 20
        assert memory_bytes([2**22 + 1]) == 0


def test_how_a_process_ended_is_told_by_its_status(tmp_path: Path) -> None:
    assert how_it_ended(None) == "ended with an unknown status"
    assert [how_it_ended(status) for status in (-9, 137, 0, 3, 128, 255)] == [
        "ended by SIGKILL",
        "ended by SIGKILL",
        "exited with status 0",
        "exited with status 3",
        "exited with status 128",
        "exited with status 255",
    ]
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_bytes(b"early\n" + b"x" * 5000 + b"\n  the last one \n\n \n")
    assert last_line(log) == "the last one"
    assert str(exited(3, log)) == "exited with status 3; last line of its log: the last one"
    log.write_bytes(b"y" * 9000)
    assert last_line(log) == "y" * 300
    assert [size(count) for count in (512 << 20, (1 << 30) - (1 << 20), 1 << 30, 3 << 29)] == [
        "512 MiB",
        "1023 MiB",
        "1.0 GiB",
        "1.5 GiB",
    ]


def test_the_first_three_stuck_processes_are_named_and_the_others_counted() -> None:
    found = procfs.status(os.getpid())
    assert found is not None
    name = Path("/proc/self/comm").read_text().strip()
    one = f"{name} (pid {os.getpid()}, {found.state})"
    assert named([found]) == one
    assert named([found] * 3) == ", ".join([one] * 3)
    assert named([found] * 5) == ", ".join([one] * 3) + " and 2 more"
    waiting = procfs.Status(found.process, "D", found.parent, 1, 0)
    assert named([waiting]).startswith(f"{name} (pid {os.getpid()}) waits in the kernel")
    gone = procfs.Status(procfs.Process(2**22 + 1, 1), "D", 1, 1, 0)
    assert named([gone]) == f"? (pid {2**22 + 1}) waits in the kernel"


def test_a_process_whose_first_thread_has_ended_is_alive_and_can_be_killed() -> None:
    program = (
        "import ctypes, sys, threading; threading.Thread(target=sys.stdin.read).start();"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdin=subprocess.PIPE) as made:
        process = process_of(made.pid)
        until(lambda: (now := procfs.status(made.pid)) is not None and now.state == "Z")
        assert procfs.living(process) is not None
        assert procfs.kill(process)
        assert made.wait() == -signal.SIGKILL
        assert procfs.living(process) is None


def test_a_pid_that_another_process_has_got_since_it_was_listed_is_no_descendant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(procfs, "children", lambda parent: [os.getppid()])
    assert list(procfs.descendants(process_of(os.getpid()), 10)) == []
