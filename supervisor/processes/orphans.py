"""What an earlier supervisor may have left: known by (boot, pid, start time), ended at the next start.

A line of the record also names the workspace that the process has, if it has one: of what cannot be ended
yet, the next supervisor knows which session it belongs to.
"""

import os
import select
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from supervisor.clock import monotonic
from supervisor.processes import procfs

# The kernel ends a killed process in milliseconds; a longer wait is given up.
_SWEEP_SECONDS_MAX = 2.0
# For the parents of such a process, which are killed last.
_PARENTS_SECONDS_MAX = 0.5
_LOOK_AGAIN_SECONDS = 0.01
_TREE_MAX = 4096
# Lines for some hours of an ordinary day before the file is rewritten.
_LINES_MAX = 512


class Record:
    """The file of processes that must not outlive this supervisor: one line each, below a line with the boot.

    Lines of dead processes stay until the file is rewritten: no other process can have their identity.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._processes: dict[procfs.Process, str] = {}
        self._lines = _LINES_MAX

    def add(self, process: procfs.Process, workspace: str = "") -> None:
        """Again with its workspace, when a process gets one."""
        self._processes[process] = workspace
        if self._lines < _LINES_MAX:
            with self.file.open("a") as file:
                file.write(_line(process, workspace))
            self._lines += 1
        else:
            self._write()

    def take_over(self, left: "Left") -> None:
        """Those that an earlier supervisor has left, in place of its record."""
        for workspace, processes in left.items():
            self._processes.update(dict.fromkeys(processes, workspace))
        self._write()

    def remove(self, process: procfs.Process) -> None:
        self._processes.pop(process, None)

    def close(self) -> None:
        """What was not seen to end stays, for the next supervisor."""
        if self._processes:
            self._write()
        else:
            self.file.unlink(missing_ok=True)

    def _write(self) -> None:
        fresh = self.file.with_suffix(".new")
        lines = (_line(*each) for each in self._processes.items())
        fresh.write_text(f"{_where()}\n" + "".join(lines))
        fresh.replace(self.file)
        self._lines = len(self._processes)


# Processes that were killed and are still there, by the workspace that they have; "" for those without.
Left = Mapping[str, Sequence[procfs.Process]]


class Swept(NamedTuple):
    """How many were ended, and which could not be."""

    killed: int
    left: Left


def sweep_orphans(file: Path) -> Swept:
    """Ends what is still alive of the processes in the record, with all below them."""
    recorded = _read(file)
    killed: set[procfs.Process] = set()
    deadline = monotonic() + _SWEEP_SECONDS_MAX
    while (alive := _alive(recorded)) and monotonic() < deadline:
        killed.update(process for process in alive if procfs.kill(process))
        select.select([], [], [], _LOOK_AGAIN_SECONDS)
    return Swept(len(killed), _left(recorded) if alive else {})


def _left(recorded: Mapping[procfs.Process, str]) -> Left:
    """From here on the parents are killed, too: whatever is below them is known by now."""
    members = {
        each: workspace
        # Those that have a workspace last: below the zygote everything is found once more.
        for top, workspace in sorted(recorded.items(), key=lambda item: bool(item[1]))
        if procfs.living(top) is not None
        for each in (top, *(found.process for found in procfs.descendants(top, _TREE_MAX)))
    }
    deadline = monotonic() + _PARENTS_SECONDS_MAX
    while members and monotonic() < deadline:
        members = {each: workspace for each, workspace in members.items() if procfs.kill(each)}
        select.select([], [], [], _LOOK_AGAIN_SECONDS)
    left: dict[str, list[procfs.Process]] = {}
    for process, workspace in members.items():
        left.setdefault(workspace, []).append(process)
    return left


def _alive(recorded: Mapping[procfs.Process, str]) -> list[procfs.Process]:
    """The recorded ones last: as long as they live, what is below them can be found."""
    tops = [process for process in recorded if procfs.living(process) is not None]
    below = [found.process for top in tops for found in procfs.descendants(top, _TREE_MAX)]
    return below or tops


def _read(file: Path) -> dict[procfs.Process, str]:
    """The last line of a process counts."""
    try:
        where, *lines = file.read_text(errors="replace").splitlines() or [""]
    except FileNotFoundError:
        return {}
    return dict(found for line in lines if (found := _process(line))) if where == _where() else {}


def _line(process: procfs.Process, workspace: str) -> str:
    return f"{process.pid} {process.started} {workspace}".rstrip() + "\n"


def _process(line: str) -> tuple[procfs.Process, str] | None:
    """None for a line that was not written to its end."""
    words = line.split()
    if len(words) in (2, 3) and all(number.isdecimal() for number in words[:2]):
        return procfs.Process(int(words[0]), int(words[1])), "".join(words[2:])
    return None


def _where() -> str:
    """Return the boot and the pid namespace: elsewhere the same numbers mean other processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"
