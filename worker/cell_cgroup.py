"""A cgroup for each cell, where the supervisor's cgroup is delegated to it.

The kernel then counts everything that a cell uses, shared memory and files of its tmpfs included, and ends
the whole cell when it uses too much.

The zygote makes it when it prepares the cell, and the cell's first process starts in it: to move a process
later takes the kernel ten milliseconds. The process that ends the cell removes it.
"""

import contextlib
import itertools
import os

from ipc.service_messages import CellSpec

_numbers = itertools.count(1)
# Cgroups whose memory the kernel limits.
_limited: set[str] = set()


def make(spec: CellSpec) -> str:
    """Makes the cgroup and returns its path; `spec.cgroup` is the common prefix of the paths."""
    folder = f"{spec.cgroup}{next(_numbers)}"
    os.mkdir(folder)
    wanted = {"memory.oom.group": "1"}
    if spec.memory_bytes_max:
        wanted |= {"memory.max": str(spec.memory_bytes_max), "memory.swap.max": "0"}
    if spec.processes_max:
        wanted["pids.max"] = str(spec.processes_max)
    for name, value in wanted.items():
        # A controller that was not delegated has no files.
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", "w") as file:
                file.write(value)
            if name == "memory.max":
                _limited.add(folder)
    return folder


def limits_memory(folder: str) -> bool:
    """True when `make` could set a limit; a cell itself sees no cgroup."""
    return folder in _limited


def remove(folder: str) -> None:
    """Removes the cgroup after its last process has ended."""
    _limited.discard(folder)
    with contextlib.suppress(OSError):
        os.rmdir(folder)
