"""Limits of the kernel for processes; of the running service its own, else those of this shell."""

import resource
from pathlib import Path

import psutil

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good

# The supervisor's own files, and for each worker its pidfds, its log and its connections, generously.
_FILES_OWN, _FILES_PER_WORKER = 128, 16
_PROCESSES_OWN, _PROCESSES_PER_WORKER = 64, 8
_PID_MAX_LEAST = 32768
# A user and a pid namespace for each worker, and one prepared ahead.
_NAMESPACES_PER_WORKER = 4
# sun_path holds 108 bytes with its terminator.
_SOCKET_PATH_MAX = 107


def open_files(around: Surroundings) -> Finding:
    soft, hard = _limit(around, resource.RLIMIT_NOFILE)
    needed = _FILES_OWN + _FILES_PER_WORKER * _workers(around)
    whose = _whose(around)
    hint = f"ulimit -n {max(4096, needed)} before the start, or LimitNOFILE= in the unit"
    if soft < needed:
        return bad("open files", f"{_shown(soft)} {whose}, {needed} may be needed", hint)
    wanted = around.number("files_max", 0)
    if hard < wanted:
        return care("open files", f"{_shown(hard)} at most {whose}; [workers] files_max is {wanted}", hint)
    return good("open files", f"{_shown(soft)} {whose}")


def processes(around: Surroundings) -> Finding:
    soft, _ = _limit(around, resource.RLIMIT_NPROC)
    needed = _PROCESSES_OWN + _PROCESSES_PER_WORKER * _workers(around)
    if soft < needed:
        hint = f"ulimit -u {max(4096, needed)} before the start, or LimitNPROC= in the unit"
        return bad("processes", f"{_shown(soft)} {_whose(around)}, {needed} may be needed", hint)
    return good("processes", f"{_shown(soft)} {_whose(around)}")


def pid_numbers(around: Surroundings) -> Finding:
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    if most < _PID_MAX_LEAST:
        return care("pid numbers", f"only {most} for the whole host", "sudo sysctl -w kernel.pid_max=4194304")
    return good("pid numbers", f"{most} for the whole host")


def namespace_count(around: Surroundings) -> Finding:
    try:
        most = int(Path("/proc/sys/user/max_user_namespaces").read_text())
    except OSError:
        return good("namespace count", "not limited by this kernel")
    needed = _NAMESPACES_PER_WORKER * _workers(around)
    if most < needed:
        hint = f"sudo sysctl -w user.max_user_namespaces={max(10_000, needed)}"
        return care("namespace count", f"{most} allowed, {needed} may be needed", hint)
    return good("namespace count", f"{most} allowed")


def socket_paths(around: Surroundings) -> Finding:
    longest = max((around.places.control, around.places.services), key=len)
    if len(longest.encode()) > _SOCKET_PATH_MAX:
        fact = f"{longest} is longer than a socket's path may be"
        return bad("socket paths", fact, "set TMPDIR to a short folder, or choose a shorter --home")
    return good("socket paths", f"in {around.places.runtime}")


def _workers(around: Surroundings) -> int:
    return around.number("seats", 1) + around.number("spares", 1)


def _limit(around: Surroundings, number: int) -> tuple[float, float]:
    """Soft and hard."""
    try:
        soft, hard = psutil.Process(around.pid).rlimit(number)
    except psutil.Error:
        soft, hard = resource.getrlimit(number)
    return _endless(soft), _endless(hard)


def _endless(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)


def _shown(limit: float) -> str:
    return "unlimited" if limit == float("inf") else f"{limit:.0f}"


def _whose(around: Surroundings) -> str:
    return "for the service" if around.pid else "for this shell"
