"""`python -m tests.acceptance.recycled_pids PLAY FOLDER`, in a pid namespace of its own: pids are used again.

It prints what became of the processes that have the pids of others now, as one line of JSON.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ipc import interpreter
from supervisor.processes import procfs
from supervisor.processes.cells import Held, Limits
from supervisor.processes.cells.contract import Cell
from supervisor.processes.cells.pidns import PidNamespaceCell
from supervisor.processes.cells.sweep import SweepCell
from tests.service import Service
from tests.waiting import until

_SETTINGS = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "nobody asks it"
[workers]
count = 2
[stt]
engine = "off"
"""
_CELLS: dict[str, Cell] = {"pidns": PidNamespaceCell(Limits()), "sweep": SweepCell(Limits())}
# A process with one below it, which gets the next pid.
_TWO = "sleep 300 & wait"


def _identity(pid: int) -> procfs.Process:
    found = procfs.status(pid)
    assert found is not None
    return found.process


def _use_again(pid: int, *command: str) -> procfs.Process:
    """Starts the command under this pid, once it is no longer the number of a session either."""

    def is_started() -> bool:
        _reap_orphans()
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        started = subprocess.Popen(command)
        if started.pid != pid:
            started.kill()
            started.wait()
        return started.pid == pid

    until(is_started)
    return _identity(pid)


def _two_processes(pid: int = 0) -> list[procfs.Process]:
    command = ("sh", "-c", _TWO)
    first = _use_again(pid, *command) if pid else _identity(subprocess.Popen(command).pid)
    (second,) = until(lambda: procfs.children(first))
    return [first, _identity(second)]


def _let_a_tick_pass(than: procfs.Process) -> None:
    """Start times count in ticks of the clock: nothing may start in the tick of another process."""
    ticks = os.sysconf("SC_CLK_TCK")
    until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * ticks > than.started + 2)


def _is_free(process: procfs.Process) -> bool:
    _reap_orphans()
    return procfs.status(process.pid) is None


def _reap_orphans() -> None:
    """This is the first process of its namespace: orphans are its children, and keep their pids."""
    for pid in procfs.children(_identity(os.getpid())):
        found = procfs.status(pid)
        if found is not None and not found.is_alive:
            os.waitpid(pid, os.WNOHANG)


def _strike(kind: str) -> dict[str, Any]:
    old = _two_processes()
    cell = _CELLS[kind]
    held = Held(1, old[0], os.pidfd_open(old[0].pid))
    seen = list(cell.members(held, 10))
    assert old[1] in [found.process for found in seen]
    for process in reversed(old):
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: all(map(_is_free, old)))
    _let_a_tick_pass(old[1])
    new = _two_processes(old[0].pid)
    cell.strike(held, seen)
    return {
        "recycled": [is_.pid == was.pid and is_ != was for is_, was in zip(new, old, strict=True)],
        "killed one by one": [procfs.kill(process) for process in old],
        "members": [found.process.pid for found in cell.members(held, 10)],
        "alive": [_runs(process) for process in new],
    }


def _runs(process: procfs.Process) -> bool:
    found = procfs.living(process)
    return found is not None and not found.is_stopped


class _Executed(Service):
    """In a namespace of its own there is no fork server yet, and to start one takes longer."""

    def launch(self) -> None:
        command = interpreter.command("supervisor", "--home", str(self.home))
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _start(folder: Path) -> dict[str, Any]:
    with _Executed(folder / "home", _SETTINGS) as service:
        until(lambda: [row["state"] for row in service.show("workers")] == ["idle"] * 3)
        lines = service.places.processes.read_text().splitlines()[1:]
        recorded = [procfs.Process(*map(int, line.split()[:2])) for line in lines]
        service.kill()
        until(lambda: all(map(_is_free, recorded)))
        _let_a_tick_pass(recorded[-1])
        new = [_use_again(process.pid, "sleep", "300") for process in recorded]
        service.start()
        return {
            "recorded": [process.pid for process in recorded],
            "recycled": [process.pid for process in new],
            "alive": [process.pid for process in new if _runs(process)],
            "epoch": service.status()["epoch"],
        }


if __name__ == "__main__":
    play = sys.argv[1]
    print(json.dumps(_start(Path(sys.argv[2])) if play == "start" else _strike(play)))
    sys.stdout.flush()
    # The others end with the first process of their namespace.
    os._exit(0)
