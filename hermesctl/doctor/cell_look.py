"""Facts about a cell from outside: the user of its processes, and the limits of the kernel."""

from pathlib import Path

import psutil

from ipc.isolation import Result

LOOKS = ("root", "other user", "memory")


def look(worker: int, supervisor: int) -> list[Result]:
    """Examines the worker of a trial while it runs; returns the result of each of LOOKS."""
    return [_root(uid_of(worker)), _other_user(uid_of(worker), uid_of(supervisor)), memory(_cgroup(worker))]


def _root(uid: int | None) -> Result:
    if uid is None:
        return Result("root", "broken", "its process cannot be seen from here")
    return Result("root", "open" if uid == 0 else "held", f"its processes belong to uid {uid}")


def _other_user(uid: int | None, supervisor: int | None) -> Result:
    if uid is None or supervisor is None:
        return Result("other user", "broken", "its process cannot be seen from here")
    seen = f"uid {uid}, the supervisor has uid {supervisor}"
    return Result("other user", "open" if uid == supervisor else "held", seen)


def memory(folder: Path | None) -> Result:
    """From the cgroup of the process; None without a cgroup of version 2."""
    try:
        limit = (folder / "memory.max").read_text().strip() if folder else "max"
    except OSError:
        limit = "max"
    if limit == "max":
        return Result("memory", "open", "measured twice a second, not limited by the kernel")
    return Result("memory", "held", f"limited by the kernel to {limit} bytes")


def uid_of(pid: int) -> int | None:
    """From its status: the folder in /proc of a process that refuses inspection belongs to root."""
    try:
        uid: int = psutil.Process(pid).uids().real
    except psutil.Error:
        return None
    return uid


def _cgroup(pid: int) -> Path | None:
    """The leaf of the process, where cgroups of version 2 are mounted."""
    try:
        own = [line[3:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line[:3] == "0::"]
    except OSError:
        return None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            return Path(fields.split()[4]) / own[0].lstrip("/")
    return None
