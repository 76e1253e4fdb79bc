"""A cgroup for each cell, where that of the supervisor is delegated to it.

The kernel then counts all that a cell uses, shared memory and files of its tmpfs included, and ends the whole
cell when it takes too much.

The zygote makes it when it prepares the cell, and the cell's first process starts in it: to move a process
later takes the kernel ten milliseconds. Who ends the cell removes it.
"""

import contextlib
import itertools
import os

from ipc.service_messages import CellSpec

_numbers = itertools.count(1)
# Those whose memory the kernel limits.
_limited: set[str] = set()


def make(spec: CellSpec) -> str:
    """Its path; `spec.cgroup` is what the paths of all of them begin with."""
    folder = f"{spec.cgroup}{next(_numbers)}"
    os.mkdir(folder)
    wanted = {"memory.oom.group": "1"}
    if spec.memory_bytes_max:
        wanted |= {"memory.max": str(spec.memory_bytes_max), "memory.swap.max": "0"}
    if spec.processes_max:
        wanted["pids.max"] = str(spec.processes_max)
    for name, value in wanted.items():
        # A controller that was not handed down has no files.
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", "w") as file:
                file.write(value)
            if name == "memory.max":
                _limited.add(folder)
    return folder


def limits_memory(folder: str) -> bool:
    """Asked from inside a cell, which sees no cgroup: by what `make` has found."""
    return folder in _limited


def remove(folder: str) -> None:
    """When all in it have ended."""
    _limited.discard(folder)
    with contextlib.suppress(OSError):
        os.rmdir(folder)
