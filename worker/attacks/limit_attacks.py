"""Limits that a cell should have: of processes, files, and memory that belongs to no process."""

import os
import resource
import threading
from pathlib import Path

from ipc.isolation import Targets
from worker.attacks.outcome import Outcome, held, opened

_FOLDERS = ("/tmp", "/run", "/dev/shm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Above the limit: the cell has a few processes already.
_MORE = 32
_STACK_BYTES = 64 * 1024


def processes(targets: Targets) -> Outcome:
    """Threads count as processes do, and cost less; they end with this process."""
    if not targets.processes_max:
        return opened("the settings have no limit")
    enough = threading.Event()
    threading.stack_size(_STACK_BYTES)
    started = 0
    try:
        while started < targets.processes_max + _MORE:
            threading.Thread(target=enough.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        return held(f"the kernel refused one more after {started}")
    finally:
        enough.set()
    return opened(f"{started} were started, the limit is {targets.processes_max}")


def open_files(targets: Targets) -> Outcome:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most == resource.RLIM_INFINITY or not targets.files_max or most > targets.files_max:
        return opened("no limit" if most == resource.RLIM_INFINITY else f"a process may open {most}")
    return held(f"a process may open {most}")


def memory_files(targets: Targets) -> Outcome:
    for folder in _FOLDERS:
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        size = found.f_blocks * found.f_frsize
        if not size or not targets.memory_bytes_max or size > targets.memory_bytes_max:
            return opened(f"{folder} holds {size} bytes" if size else f"{folder} has no limit")
    return held("each is bounded by memory_max")


def shared_memory(targets: Targets) -> Outcome:
    most = int(Path("/proc/sys/kernel/shmall").read_text()) * _PAGE_BYTES
    if not targets.memory_bytes_max or most > targets.memory_bytes_max:
        return opened("no limit of the cell")
    return held("bounded by memory_max")


def oom_score(targets: Targets) -> Outcome:
    """As low as the supervisor's; of this process alone, which ends at once."""
    try:
        Path("/proc/self/oom_score_adj").write_text("0")
    except OSError as error:
        return held(error.strerror or str(error))
    return opened("it was set to 0")
