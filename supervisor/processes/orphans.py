"""Orphans of an earlier supervisor: identified by (boot, pid, start time), ended at the next start."""

import os
import select
from pathlib import Path

from supervisor.clock import monotonic
from supervisor.processes import procfs

# The kernel ends a killed process in milliseconds; a longer wait is given up.
_SWEEP_SECONDS_MAX = 2.0
_LOOK_AGAIN_SECONDS = 0.01
_TREE_MAX = 4096
# Lines for some hours of an ordinary day before the file is rewritten.
_LINES_MAX = 512


class Record:
    """The file of processes that must not outlive this supervisor: one line each, below a line with the boot.

    Lines of dead processes stay until the file is rewritten: no other process can have their identity.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._processes: set[procfs.Process] = set()
        self._lines = _LINES_MAX

    def add(self, process: procfs.Process) -> None:
        self._processes.add(process)
        if self._lines < _LINES_MAX:
            with self._file.open("a") as file:
                file.write(_line(process))
            self._lines += 1
        else:
            self._write()

    def remove(self, process: procfs.Process) -> None:
        self._processes.discard(process)

    def close(self) -> None:
        """Remove the file: all its processes have ended."""
        self._file.unlink(missing_ok=True)

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{_where()}\n" + "".join(map(_line, self._processes)))
        fresh.replace(self._file)
        self._lines = len(self._processes)


def sweep_leftovers(file: Path) -> int:
    """Kill the recorded processes that are alive, with their descendants; return how many were killed."""
    recorded = _read(file)
    killed: set[procfs.Process] = set()
    deadline = monotonic() + _SWEEP_SECONDS_MAX
    while monotonic() < deadline:
        left = _alive(recorded)
        if not left:
            break
        killed.update(process for process in left if procfs.kill(process))
        select.select([], [], [], _LOOK_AGAIN_SECONDS)
    file.unlink(missing_ok=True)
    return len(killed)


def _alive(recorded: list[procfs.Process]) -> list[procfs.Process]:
    """Return living processes, recorded ones last: while they live, their descendants can be found."""
    tops = [process for process in recorded if procfs.living(process) is not None]
    below = [found.process for top in tops for found in procfs.descendants(top, _TREE_MAX)]
    return below or tops


def _read(file: Path) -> list[procfs.Process]:
    try:
        where, *lines = file.read_text(errors="replace").splitlines() or [""]
    except FileNotFoundError:
        return []
    return [process for line in lines if (process := _process(line))] if where == _where() else []


def _line(process: procfs.Process) -> str:
    return f"{process.pid} {process.started}\n"


def _process(line: str) -> procfs.Process | None:
    """Return None for an incomplete line."""
    numbers = line.split()
    if len(numbers) == 2 and all(number.isdecimal() for number in numbers):
        return procfs.Process(int(numbers[0]), int(numbers[1]))
    return None


def _where() -> str:
    """Return the boot and the pid namespace: elsewhere the same numbers mean other processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"
